"""`docs/reports.md` lists the formats, the columns, every status, and every key of the JSON report."""

import json
import re
from pathlib import Path

from memory_run import MemoryRun, cell, estimate
from real_run import Adder, evaluate

from nel.core.rundir import Stage
from nel.reporting.formats import FORMATS, SUFFIXES, render
from nel.reporting.run_view import open_run

PAGE = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
FREE = {"runtime", "failures", "config", "data", "identity", "versions"}
"""Objects that other pages describe."""


def first_column(heading):
    """The names in the first table under a heading, without its head."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n## ")[0]
    rows = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()
    return [row.split("|")[1].strip().strip("`") for row in rows[2:]]


def keys_of(value, path=()):
    if isinstance(value, dict) and value and (not path or path[-1] not in FREE):
        for key, child in value.items():
            yield from keys_of(child, (*path, key))
    else:
        yield path


def documented(path):
    """A real key as the page writes it."""
    names = list(path)
    for place, parent in ((1, "benchmarks"), (3, "scores"), (3, "categories")):
        if len(names) > place and names[place - 1] == parent:
            names[place] = "*"
    return ".".join(names[:4] if "categories" in names else names)


def test_every_key_of_the_json_report_is_listed_and_nothing_else(tmp_path):
    evaluate(tmp_path, solver=Adder(down=(1,)))
    found = {documented(path) for path in keys_of(json.loads(render(open_run(tmp_path), "json")))}
    listed = set(first_column("## JSON"))
    assert found - listed == set()
    assert {key for key in listed - found if not any(other.startswith(f"{key}.") for other in found)} == set()


def test_the_columns_are_those_of_the_table():
    head = render(MemoryRun(cell()), "markdown").split("## Results\n\n")[1].splitlines()[0]
    assert first_column("## The table of results") == [name.strip() for name in head.strip("|").split("|")]


def test_every_status_is_explained():
    section = PAGE.split("| Status | Meaning |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == {*map(str, Stage), "degraded"}


def test_the_formats_are_those_that_can_be_rendered():
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*) \|$", PAGE.split("## The table")[0], re.MULTILINE))
    assert rows == {name: f"`report{SUFFIXES[name]}`" if name in SUFFIXES else "none" for name in FORMATS}


def test_the_page_knows_how_many_categories_are_shown():
    text = render(MemoryRun(cell(categories={str(number): estimate() for number in range(201)})), "markdown")
    assert "1 more categories" in text
    assert "The first 200 are shown" in PAGE
