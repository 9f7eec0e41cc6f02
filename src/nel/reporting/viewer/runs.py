"""What the pages of runs show: the list, one run, its samples."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from nel.core.errors import NelError, RunDirError, UsageError
from nel.observability.format import format_count
from nel.reporting import content
from nel.reporting.html import plots
from nel.reporting.html.overview import overview, templates
from nel.reporting.html.samples import row_of
from nel.reporting.run_view import RunView, Unit, open_run
from nel.reporting.text import one_line
from nel.reporting.viewer.index import Contents
from nel.reporting.viewer.library import Entry, Library
from nel.reporting.viewer.queries import Kept, Wish, positions, span

if TYPE_CHECKING:
    from jinja2 import Environment, Template

PAGE = 200
"""Most rows of one answer."""


@cache
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, PackageLoader

    shared = templates()
    own = PackageLoader("nel.reporting.viewer", "templates")
    return shared.overlay(loader=ChoiceLoader([own, shared.loader] if shared.loader else [own]))


def template(name: str) -> Template:
    """A page of the viewer."""
    return _environment().get_template(name)


class RunPages:
    """Answers each address; runs in threads, so everything shared is kept behind a lock of its own."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._positions: Kept[Sequence[int]] = Kept()

    def list_page(self, _names: dict[str, str], _given: dict[str, str]) -> str:
        """All runs."""
        return template("runs.html").render(title="Runs", runs=[self._line(entry) for entry in self._all()])

    def runs(self, _names: dict[str, str], _given: dict[str, str]) -> Any:
        """The rows of the list of runs, as HTML that has been escaped, and whether any is going on."""
        lines = [self._line(entry) for entry in self._all()]
        rows = template("rows.html").render(runs=lines)
        return {"rows": rows, "running": any(line["stage"] == "running" for line in lines)}

    def _all(self) -> list[Entry]:
        return self.library.entries()

    def _line(self, entry: Entry) -> dict[str, Any]:
        try:
            view = open_run(entry.path, unfinished=True)
            cells = view.cells()
        except NelError as error:
            nothing = {"title": "", "models": "", "started": "", "results": [], "more": 0}
            return {"ident": entry.ident, "place": entry.place, "stage": "failed", "problem": error.message, **nothing}
        scale = plots.scale_of(cell.headline_metric for cell in cells)
        results = [
            (row.cell, row.metric, row.value, row.interval, plots.interval(cell.headline_metric, scale), row.status)
            for cell, row in zip(cells, content.rows(view), strict=True)
        ]
        return {
            "ident": entry.ident,
            "place": entry.place,
            "title": ", ".join(dict.fromkeys(one_line(cell.benchmark) for cell in cells)) or view.manifest.run_id,
            "models": ", ".join(dict.fromkeys(one_line(cell.model) for cell in cells if cell.model)),
            "stage": str(view.manifest.stage),
            "started": content.moment(view.manifest.started),
            "results": results[:6],
            "more": max(0, len(results) - 6),
            "problem": "",
        }

    def run_page(self, names: dict[str, str], _given: dict[str, str]) -> str:
        """One run: its overview and its samples."""
        entry = self.library.get(names["run"])
        if not entry.index.begin():
            return template("waiting.html").render(places=[entry.place])
        view, contents = entry.index.refresh()
        others = [other for other in self.library.entries() if other.ident != entry.ident]
        return template("run.html").render(
            page=overview(view, _spread(contents), texts=False),
            place=entry.place,
            run=entry.ident,
            count=format_count(contents.count),
            others=[(other.ident, other.place) for other in others[:200]],
        )

    def overview_part(self, names: dict[str, str], _given: dict[str, str]) -> str:
        """The overview alone, to be put into the page of a run in progress."""
        view, contents = self.library.get(names["run"]).index.refresh()
        return template("overview.html").render(page=overview(view, _spread(contents), texts=False))

    def state(self, names: dict[str, str], _given: dict[str, str]) -> Any:
        """What the list can be filtered by, how far the run is, and a version that changes with its files."""
        view, contents = self.library.get(names["run"]).index.refresh()
        planned = [entry.info.get("planned", 0) for entry in view.manifest.cells.values()]
        return {
            "version": contents.version,
            "stage": str(view.manifest.stage),
            "done": contents.count,
            "planned": max(contents.count, sum(planned)),
            "cells": [{"name": cell.name, "count": cell.count} for cell in contents.cells],
            **{name: _merged(contents, name) for name in ("outcomes", "categories", "failures")},
        }

    def samples(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """The rows from `start` to `end` of the list that the other parameters describe."""
        start, end = rows_asked(given)
        entry = self.library.get(names["run"])
        wish = Wish.of(given)
        with entry.index.open() as (view, contents, database):
            key = (entry.ident, contents.version, wish)
            found = self._positions.get(key, lambda: positions(database, contents, wish))
            units = entry.index.units(database, found[start:end])
        total = contents.count if wish.cell is None else len(span(contents, wish.cell))
        rows = [row(view, number, position, unit) for position, number, unit in units]
        return {"count": len(found), "total": total, "rows": rows, "note": note(contents, wish)}

    def sample(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """One attempt with its texts: by its position `pos`, or by `cell`, `idx` and `repeat`."""
        entry = self.library.get(names["run"])
        with entry.index.open() as (view, contents, database):
            return _opened(view, entry.index.units(database, [_position(database, contents, given)]))


def _spread(contents: Contents) -> dict[str, Any]:
    return {cell.key: cell.spread for cell in contents.cells}


def _merged(contents: Contents, name: str) -> list[tuple[str, int]]:
    sums: dict[str, int] = {}
    for cell in contents.cells:
        for value, count in getattr(cell, name).items():
            sums[value] = sums.get(value, 0) + count
    return sorted(sums.items(), key=lambda item: -item[1])[:500]


def rows_asked(given: dict[str, str]) -> tuple[int, int]:
    """The part of a list that the parameters ask for, which are taken out of `given`."""
    bounds = [given.pop(name, default) for name, default in (("start", "0"), ("end", str(PAGE)))]
    if not all(bound.isdecimal() for bound in bounds):
        raise UsageError("start and end must be whole numbers.")
    start = int(bounds[0])
    return start, min(int(bounds[1]), start + PAGE)


def row(view: RunView, number: int, position: int, unit: Unit) -> dict[str, Any]:
    """An attempt as a line of the list."""
    cell = view.cells()[number]
    try:
        detail = view.detail(cell, unit)
    except NelError:
        detail = None  # the list is shown although a line of the log cannot be read; opening it says why
    return {"pos": position, "cell": number, **row_of(unit, detail)}


def _opened(view: RunView, units: list[tuple[int, int, Unit]]) -> Any:
    if not units:
        raise RunDirError("There is no such attempt.", hint="The run may have changed: load the page again.")
    position, number, unit = units[0]
    detail = view.detail(view.cells()[number], unit)
    return {
        "row": {"pos": position, "cell": number, **row_of(unit, detail)},
        "detail": {**msgspec.to_builtins(detail), "values": unit.values},
    }


def _position(database: sqlite3.Connection, contents: Contents, given: dict[str, str]) -> int:
    if "pos" in given and given["pos"].isdecimal():
        return int(given["pos"])
    names = ("cell", "idx", "repeat")
    if not all(given.get(name, "").isdecimal() for name in names):
        raise UsageError("Name an attempt by pos, or by cell, idx and repeat.")
    cell, idx, repeat = (int(given[name]) for name in names)
    among = span(contents, cell)
    found = database.execute(
        "SELECT pos FROM units WHERE pos >= ? AND pos < ? AND problem_idx = ? AND repeat = ?",
        (among.start, among.stop, idx, repeat),
    ).fetchone()
    return found[0] if found else 0


def note(contents: Contents, wish: Wish) -> str:
    """What somebody who reads the list must know."""
    said = [cell.problem for cell in contents.cells if cell.problem]
    if wish.text and not contents.texts:
        said.append("This run is too large to search its texts: ids, categories and failures are searched.")
    return " ".join(said)
