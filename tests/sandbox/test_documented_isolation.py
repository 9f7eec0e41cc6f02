"""Every cell of the table in `docs/sandboxes.md` is a test that runs on that backend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_attacks
from sandboxes import BACKENDS

PAGE = Path(__file__).parents[2] / "docs" / "sandboxes.md"
CELLS = r" \| ".join(f"(?P<{name}>[^|]+)" for name in BACKENDS)
ROW = re.compile(rf"\| (?P<attack>[^|]+) \| {CELLS} \| `(?P<test>\w+)` \|")
ROWS = [found.groupdict() for line in PAGE.read_text().splitlines() if (found := ROW.fullmatch(line))]


def backends_of(test):
    """The backends that a test is run on."""
    marks = [mark for mark in test.pytestmark if mark.name == "parametrize" and mark.args[0] == "backend"]
    return {name for mark in marks for name in mark.args[1]}


def test_the_table_names_every_attack():
    attacks = {name.removeprefix("test_") for name in vars(test_attacks) if name.startswith("test_")}
    shown = {row["test"] for row in ROWS}
    assert attacks - shown == {"on_an_internal_network_only_the_declared_server_answers", "local_is_not_isolated"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["test"])
def test_what_the_table_says_is_held_is_tested_on_that_backend(row):
    tested = backends_of(getattr(test_attacks, f"test_{row['test']}"))
    held = {name for name in BACKENDS if row[name] == "held"}
    assert held <= tested
    assert {row[name] for name in BACKENDS} <= {"held", "open", "no network"}
