"""What the page of two runs shows: pairs of attempts at the same problem, and how they differ."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import product
from typing import Any

from nel.core.errors import UsageError
from nel.observability.format import format_count
from nel.reporting import content
from nel.reporting.html import plots
from nel.reporting.html.page import embedded_json
from nel.reporting.run_view import RunView
from nel.reporting.viewer.library import Entry, Library
from nel.reporting.viewer.queries import Kept, PairCounts, Pairs, Wish, count_pairs, pairs
from nel.reporting.viewer.runs import RunPages, note, row, rows_asked, template


class ComparePages:
    """Answers each address about two runs."""

    def __init__(self, library: Library, runs: RunPages) -> None:
        self.library = library
        self._runs = runs
        self._pairs: Kept[Pairs] = Kept()
        self._counts: Kept[PairCounts] = Kept()

    def compare_page(self, runs: dict[str, str], given: dict[str, str]) -> str:
        """Two runs side by side."""
        first, second = self._entries(runs)
        if waited := [entry.place for entry in (first, second) if not entry.index.begin()]:
            return template("waiting.html").render(places=waited)
        views = [first.index.refresh()[0], second.index.refresh()[0]]
        one, two = _cells_asked(given, views)
        counts = self._pair_counts(first, second, one, two)
        setup = {
            "first": first.ident,
            "second": second.ident,
            "cells": [one, two],
            "names": [first.place, second.place],
        }
        return template("compare.html").render(
            title=f"{views[0].cells()[one].name} compared",
            sides=_sides(views, (first, second), (one, two), counts),
            counts=counts,
            tiles=_tiles(counts),
            difference=_difference(counts),
            choices=_choices(views, one, two),
            swapped=f"/compare/{second.ident}/{first.ident}?cell={two}&other={one}",
            setup=embedded_json(setup),
        )

    def _entries(self, names: dict[str, str]) -> tuple[Entry, Entry]:
        return self.library.get(names["first"]), self.library.get(names["second"])

    def pair_samples(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """Rows of pairs: an attempt of the first run with what became of it in the second."""
        start, end = rows_asked(given)
        first, second = self._entries(names)
        with first.index.open() as (view, contents, database), second.index.open() as (other_view, others, other):
            one, two = _cells_asked(given, [view, other_view])
            given.pop("other", None)
            wish = Wish.of({**given, "cell": str(one)})
            _attach(database, second)
            key = (first.ident, second.ident, contents.version, others.version, two, wish)
            found = self._pairs.get(key, lambda: pairs(database, contents, two, wish))
            firsts = first.index.units(database, found.first[start:end])
            seconds = second.index.units(other, found.second[start:end])
        rows = [
            row(view, number, position, unit) | {"other": opposite[0], "other_value": opposite[2].values.get("reward")}
            for (position, number, unit), opposite in zip(firsts, seconds, strict=True)
        ]
        total = self._pair_counts(first, second, one, two).pairs
        return {"count": len(found.first), "total": total, "rows": rows, "note": note(contents, wish)}

    def pair_sample(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """Both attempts of a pair with their texts: `pos` of the first and `other` of the second."""
        return [
            self._runs.sample({"run": names["first"]}, {"pos": given.get("pos", "")}),
            self._runs.sample({"run": names["second"]}, {"pos": given.get("other", "")}),
        ]

    def _pair_counts(self, first: Entry, second: Entry, one: int, two: int) -> PairCounts:
        with first.index.open() as (_, contents, database):
            key = (first.ident, second.ident, contents.version, second.index.refresh()[1].version, one, two)

            def count() -> PairCounts:
                _attach(database, second)
                return count_pairs(database, one, two)

            return self._counts.get(key, count)


def _attach(database: sqlite3.Connection, second: Entry) -> None:
    database.execute("ATTACH ? AS other", [f"{second.index.file.as_uri()}?mode=ro"])


def _sides(
    views: Sequence[RunView], entries: Sequence[Entry], numbers: Sequence[int], counts: PairCounts
) -> list[dict[str, Any]]:
    cells = [view.cells()[number] for view, number in zip(views, numbers, strict=True)]
    scale = plots.scale_of(cell.headline_metric for cell in cells)
    means = (counts.first_mean, counts.second_mean)
    return [
        {
            "mark": mark,
            "entry": entry,
            "cell": cell,
            "row": content.rows(view)[number],
            "picture": plots.interval(cell.headline_metric, scale),
            "mean": content.number(mean),
        }
        for mark, entry, view, number, cell, mean in zip("AB", entries, views, numbers, cells, means, strict=True)
    ]


def _cells_asked(given: dict[str, str], views: Sequence[RunView]) -> tuple[int, int]:
    """The cells to compare: those that are named, else the first two of one benchmark."""
    counts = [len(view.cells()) for view in views]
    asked = [given.get(name, "") for name in ("cell", "other")]
    if all(text.isdecimal() and int(text) < count for text, count in zip(asked, counts, strict=True)):
        return int(asked[0]), int(asked[1])
    if not all(counts):
        raise UsageError("One of the runs has no cells.", hint="Compare it when something has been measured.")
    common = _common(views)
    return common[0] if common else (0, 0)


def _common(views: Sequence[RunView]) -> list[tuple[int, int]]:
    numbered = [list(enumerate(view.cells())) for view in views]
    return [(one, two) for (one, a), (two, b) in product(*numbered) if a.benchmark == b.benchmark]


def _choices(views: Sequence[RunView], one: int, two: int) -> list[tuple[str, str, bool]]:
    """Address, label and whether it is shown, for each two cells of one benchmark."""
    cells = [view.cells() for view in views]
    return [
        (f"?cell={a}&other={b}", _both_names(cells[0][a].name, cells[1][b].name), (a, b) == (one, two))
        for a, b in _common(views)[:100]
    ]


def _both_names(first: str, second: str) -> str:
    return first if first == second else f"{first} and {second}"


def _tiles(counts: PairCounts) -> list[tuple[str, str, str]]:
    """Change, label and count."""
    return [
        ("worse", "worse in B", format_count(counts.worse)),
        ("better", "better in B", format_count(counts.better)),
        ("same", "the same", format_count(counts.same)),
        ("unmeasured", "not scored in both", format_count(counts.unmeasured)),
    ]


def _difference(counts: PairCounts) -> str:
    if counts.first_mean is None or counts.second_mean is None:
        return content.ABSENT
    difference = counts.second_mean - counts.first_mean
    return f"{'+' if difference > 0 else ''}{content.number(difference)}"
