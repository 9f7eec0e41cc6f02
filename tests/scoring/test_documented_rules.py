"""Every row of the table of extraction rules on the scoring page does what it says."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from nel.scoring import extract_choice, extract_code, extract_json, extract_line, extract_math, extract_number

PAGE = Path(__file__).parents[2] / "docs" / "scoring.md"
ROW = re.compile(
    r"\| `(?P<extractor>\w+)` \| (?P<rule>[\w ]+) \| (?P<ticks>`+) ?(?P<reply>.+?) ?(?P=ticks) \| (?P<answer>.+) \|"
)
EXTRACTORS = {
    "number": (extract_number, Fraction, lambda found: found.value),
    "choice": (extract_choice, str, lambda found: found.text),
    "line": (extract_line, str, lambda found: found.text),
    "math": (extract_math, str, lambda found: found.text),
    "code": (lambda reply: extract_code(reply, "f"), str, lambda found: found.text.strip()),
    "json": (extract_json, json.loads, lambda found: found.value),
}
ROWS = [
    ROW.fullmatch(line).groupdict()
    for line in PAGE.read_text().splitlines()
    if re.match(rf"\| `(?:{'|'.join(EXTRACTORS)})` \|", line)
]


def test_the_table_has_every_extractor():
    assert {row["extractor"] for row in ROWS} == set(EXTRACTORS)
    assert len(ROWS) > 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['extractor']}: {row['reply'][:40]}")
def test_a_documented_rule_does_what_the_page_says(row):
    extract, read, taken = EXTRACTORS[row["extractor"]]
    found = extract(row["reply"].replace("⏎", "\n"))
    if row["answer"] == "∅":
        assert found is None
    else:
        assert (taken(found), found.rule) == (read(row["answer"]), row["rule"])


def test_every_scorer_is_on_the_page():
    from nel.scoring import VERSIONS

    page = PAGE.read_text()
    assert [name for name in VERSIONS if f"`{name}`" not in page and name != "extract_code"] == []
