"""The web application of `nel view`: pages, and the JSON that their lists read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from nel.core.contract import encode_json
from nel.core.errors import NelError, RunDirError, UsageError
from nel.observability.format import format_count
from nel.reporting import content
from nel.reporting.html import plots
from nel.reporting.html.overview import overview, templates
from nel.reporting.html.page import asset, embedded_json
from nel.reporting.html.samples import row_of
from nel.reporting.run_view import CellView, RunView, Unit
from nel.reporting.text import one_line
from nel.reporting.viewer.guard import LOOPBACK, Guard
from nel.reporting.viewer.index import Contents
from nel.reporting.viewer.library import Entry, Library
from nel.reporting.viewer.queries import Kept, PairCounts, Pairs, Wish, count_pairs, pairs, positions

if TYPE_CHECKING:
    import sqlite3

    from jinja2 import Environment

PAGE = 200
"""Most rows of one answer."""

_ASSETS = {
    "style.css": ("text/css", lambda: asset("style.css")),
    "viewer.js": ("text/javascript", lambda: asset("samples.js") + asset("viewer.js")),
}


def make_app(
    library: Library, *, hosts: frozenset[str] = LOOPBACK, token: str | None = None
) -> Starlette:
    """The application over `library`; see `Guard` for `hosts` and `token`."""
    viewer = _Viewer(library)
    routes = [
        Route("/", _page(viewer.list_page)),
        Route("/run/{run}", _page(viewer.run_page)),
        Route("/run/{run}/overview", _page(viewer.overview_part)),
        Route("/compare/{first}/{second}", _page(viewer.compare_page)),
        Route("/api/runs", _json(viewer.runs)),
        Route("/api/run/{run}", _json(viewer.state)),
        Route("/api/run/{run}/samples", _json(viewer.samples)),
        Route("/api/run/{run}/sample", _json(viewer.sample)),
        Route("/api/compare/{first}/{second}", _json(viewer.pair_counts)),
        Route("/api/compare/{first}/{second}/samples", _json(viewer.pair_samples)),
        Route("/api/compare/{first}/{second}/sample", _json(viewer.pair_sample)),
        Route("/assets/{name}", _asset),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts, token=token)])


Handler = Callable[[dict[str, str], dict[str, str]], Any]
"""From the names in the path and the parameters of the address to what is answered."""


def _json(handler: Handler) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        status = 200
        try:
            value = await run_in_threadpool(handler, request.path_params, dict(request.query_params))
        except NelError as error:
            status = _status(error)
            value = {"error": str(error)}
        return Response(encode_json(value), status, media_type="application/json")

    return answer


def _page(handler: Handler) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            return HTMLResponse(await run_in_threadpool(handler, request.path_params, dict(request.query_params)))
        except NelError as error:
            return HTMLResponse(_template("error.html").render(error=error), _status(error))

    return answer


def _status(error: NelError) -> int:
    return 404 if isinstance(error, RunDirError) else 400 if isinstance(error, UsageError) else 500


async def _asset(request: Request) -> Response:
    found = _ASSETS.get(request.path_params["name"])
    return Response(found[1](), media_type=found[0]) if found else Response("", 404)


@cache
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, PackageLoader

    shared = templates()
    own = PackageLoader("nel.reporting.viewer", "templates")
    return shared.overlay(loader=ChoiceLoader([own, shared.loader] if shared.loader else [own]))


def _template(name: str) -> Any:
    return _environment().get_template(name)


class _Viewer:
    """Answers each address; runs in threads, so everything shared is kept behind a lock of its own."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._positions: Kept[Sequence[int]] = Kept()
        self._pairs: Kept[Pairs] = Kept()
        self._counts: Kept[PairCounts] = Kept()

    def list_page(self, _names: dict[str, str], _given: dict[str, str]) -> str:
        """All runs."""
        return str(_template("runs.html").render(title="Runs", runs=[self._line(entry) for entry in self._all()]))

    def runs(self, _names: dict[str, str], _given: dict[str, str]) -> Any:
        """The rows of the list of runs, as HTML that has been escaped, and whether any is going on."""
        lines = [self._line(entry) for entry in self._all()]
        rows = str(_template("rows.html").render(runs=lines))
        return {"rows": rows, "running": any(line["stage"] == "running" for line in lines)}

    def _all(self) -> list[Entry]:
        return self.library.entries()

    def _line(self, entry: Entry) -> dict[str, Any]:
        from nel.reporting.run_view import open_run

        try:
            view = open_run(entry.path, unfinished=True)
            cells = view.cells()
        except NelError as error:
            return {"ident": entry.ident, "place": entry.place, "title": entry.place, "stage": "failed",
                    "models": "", "started": "", "results": [], "more": 0, "problem": error.message}  # fmt: skip
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
        view, contents = entry.index.refresh()
        others = [other for other in self.library.entries() if other.ident != entry.ident]
        return str(
            _template("run.html").render(
                page=overview(view, _spread(contents), texts=False),
                place=entry.place,
                run=entry.ident,
                count=format_count(contents.count),
                others=[(other.ident, other.place) for other in others[:200]],
            )
        )

    def overview_part(self, names: dict[str, str], _given: dict[str, str]) -> str:
        """The overview alone, to be put into the page of a run in progress."""
        view, contents = self.library.get(names["run"]).index.refresh()
        return str(_template("overview.html").render(page=overview(view, _spread(contents), texts=False)))

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
        start, end = _range(given)
        entry = self.library.get(names["run"])
        view, contents = entry.index.refresh()
        wish = Wish.of(given)
        with entry.index.connect() as database:
            found = self._positions.get(
                (entry.ident, contents.version, wish), lambda: positions(database, contents, wish)
            )
            units = entry.index.units(database, found[start:end])
        total = contents.count if wish.cell is None else len(positions_of_cell(contents, wish.cell))
        rows = [_row(view, number, position, unit) for position, number, unit in units]
        return {"count": len(found), "total": total, "rows": rows, "note": _note(contents, wish)}

    def sample(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """One attempt with its texts: by its position `pos`, or by `cell`, `idx` and `repeat`."""
        entry = self.library.get(names["run"])
        view, contents = entry.index.refresh()
        with entry.index.connect() as database:
            return _opened(view, entry.index.units(database, [_position(database, contents, given)]))

    def compare_page(self, names: dict[str, str], given: dict[str, str]) -> str:
        """Two runs side by side."""
        first, second = self.library.get(names["first"]), self.library.get(names["second"])
        views = [first.index.refresh()[0], second.index.refresh()[0]]
        one, two = _cells_asked(given, views)
        cells = [views[0].cells()[one], views[1].cells()[two]]
        scale = plots.scale_of(cell.headline_metric for cell in cells)
        counts = self._pair_counts(first, second, one, two)
        return str(
            _template("compare.html").render(
                title=f"{cells[0].name} compared",
                sides=[
                    {"mark": mark, "entry": entry, "cell": cell, "row": row, "picture": plots.interval(
                        cell.headline_metric, scale)}
                    for mark, entry, cell, row in zip(
                        "AB",
                        (first, second),
                        cells,
                        (content.rows(views[0])[one], content.rows(views[1])[two]),
                        strict=True,
                    )
                ],  # fmt: skip
                counts=counts,
                tiles=_tiles(counts),
                means=[content.number(counts.first_mean), content.number(counts.second_mean)],
                difference=_difference(counts),
                choices=_choices(views, one, two),
                setup=embedded_json({"first": first.ident, "second": second.ident, "cells": [one, two],
                                     "names": [first.place, second.place]}),  # fmt: skip
            )
        )

    def pair_counts(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """What two cells have in common and how they differ; with versions, to notice a change."""
        first, second = self.library.get(names["first"]), self.library.get(names["second"])
        found = [first.index.refresh(), second.index.refresh()]
        counts = self._pair_counts(first, second, *_cells_asked(given, [view for view, _ in found]))
        return {
            "counts": msgspec.to_builtins(counts),
            "version": "-".join(contents.version for _, contents in found),
            "running": any(view.manifest.stage == "running" for view, _ in found),
        }

    def pair_samples(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """Rows of pairs: an attempt of the first run with what became of it in the second."""
        start, end = _range(given)
        first, second = self.library.get(names["first"]), self.library.get(names["second"])
        (view, contents), (_, other_contents) = first.index.refresh(), second.index.refresh()
        one, two = _cells_asked(given, [view, second.index.refresh()[0]])
        given.pop("other", None)
        wish = Wish.of({**given, "cell": str(one)})
        key = (first.ident, second.ident, contents.version, other_contents.version, two, wish)
        with _both(first, second) as database:
            found = self._pairs.get(key, lambda: pairs(database, contents, two, wish))
            units = first.index.units(database, found.first[start:end])
        with second.index.connect() as database:
            others = second.index.units(database, found.second[start:end])
        counts = self._pair_counts(first, second, one, two)
        rows = [
            _row(view, number, position, unit)
            | {"other": other[0], "other_value": other[2].values.get("reward"), "other_outcome": str(other[2].outcome)}
            for (position, number, unit), other in zip(units, others, strict=True)
        ]
        return {"count": len(found.first), "total": counts.pairs, "rows": rows, "note": _note(contents, wish)}

    def pair_sample(self, names: dict[str, str], given: dict[str, str]) -> Any:
        """Both attempts of a pair with their texts: `pos` of the first and `other` of the second."""
        return [
            self.sample({"run": names["first"]}, {"pos": given.get("pos", "")}),
            self.sample({"run": names["second"]}, {"pos": given.get("other", "")}),
        ]

    def _pair_counts(self, first: Entry, second: Entry, one: int, two: int) -> PairCounts:
        versions = [entry.index.refresh()[1].version for entry in (first, second)]
        key = (first.ident, second.ident, *versions, one, two)

        def count() -> PairCounts:
            with _both(first, second) as database:
                return count_pairs(database, one, two)

        return self._counts.get(key, count)


@contextlib.contextmanager
def _both(first: Entry, second: Entry) -> Iterator[sqlite3.Connection]:
    with first.index.connect() as database:
        database.execute("ATTACH ? AS other", [f"{second.index.file.as_uri()}?mode=ro"])
        yield database


def positions_of_cell(contents: Contents, number: int) -> range:
    """The positions of one cell; empty where there is no such cell."""
    if number >= len(contents.cells):
        return range(0)
    cell = contents.cells[number]
    return range(cell.first, cell.first + cell.count)


def _spread(contents: Contents) -> dict[str, Any]:
    return {cell.key: cell.spread for cell in contents.cells}


def _merged(contents: Contents, name: str) -> list[tuple[str, int]]:
    sums: dict[str, int] = {}
    for cell in contents.cells:
        for value, count in getattr(cell, name).items():
            sums[value] = sums.get(value, 0) + count
    return sorted(sums.items(), key=lambda item: -item[1])[:500]


def _range(given: dict[str, str]) -> tuple[int, int]:
    bounds = [given.pop(name, default) for name, default in (("start", "0"), ("end", str(PAGE)))]
    if not all(bound.isdecimal() for bound in bounds):
        raise UsageError("start and end must be whole numbers.")
    start = int(bounds[0])
    return start, min(int(bounds[1]), start + PAGE)


def _row(view: RunView, number: int, position: int, unit: Unit) -> dict[str, Any]:
    cell = _cell(view, number)
    try:
        detail = view.detail(cell, unit)
    except NelError:
        detail = None  # the list is shown although a line of the log cannot be read; opening it says why
    return {"pos": position, "cell": number, **row_of(unit, detail)}


def _cell(view: RunView, number: int) -> CellView:
    return view.cells()[number]


def _opened(view: RunView, units: list[tuple[int, int, Unit]]) -> Any:
    if not units:
        raise RunDirError("There is no such attempt.", hint="The run may have changed: load the page again.")
    position, number, unit = units[0]
    detail = view.detail(_cell(view, number), unit)
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
    span = positions_of_cell(contents, cell)
    found = database.execute(
        "SELECT pos FROM units WHERE pos >= ? AND pos < ? AND problem_idx = ? AND repeat = ?",
        (span.start, span.stop, idx, repeat),
    ).fetchone()
    return found[0] if found else 0


def _note(contents: Contents, wish: Wish) -> str:
    said = [cell.problem for cell in contents.cells if cell.problem]
    if wish.text and not contents.texts:
        said.append("This run is too large to search its texts: ids, categories and failures are searched.")
    return " ".join(said)


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
        (f"?cell={a}&other={b}", f"{cells[0][a].name} and {cells[1][b].name}", (a, b) == (one, two))
        for a, b in _common(views)[:100]
    ]


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


def listen(library: Library, host: str, port: int, token: str | None) -> tuple[Callable[[], None], int]:
    """A bound server, as the function that runs it until it is interrupted, and the port that it got.

    `UsageError` where the address cannot be had.
    """
    import socket

    import uvicorn

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint="--port 0 takes any that is free."
        ) from None
    hosts = LOOPBACK if token is None else LOOPBACK | {host.lower(), socket.gethostname().lower(), socket.getfqdn()}
    app = make_app(library, hosts=frozenset(hosts), token=token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    return lambda: server.run(sockets=[bound]), int(bound.getsockname()[1])


