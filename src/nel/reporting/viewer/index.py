"""The index of a run: its attempts in SQLite, in the user's cache, made anew when a file of the run has changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nel.core.errors import RecordError
from nel.core.rundir import Stage
from nel.observability.records import Outcome
from nel.reporting.html import plots
from nel.reporting.html.overview import Distributions
from nel.reporting.html.samples import content_text
from nel.reporting.run_view import CellView, RunView, Unit, UnitDetail, open_run

TEXTS = 50_000
"""Runs with more attempts are searched by id, category and failure alone."""

_LAYOUT = "1"
"""Changes with the tables below."""
_WORDS = 20_000
"""Characters of each text that are searched."""
_BATCH = 2_000
_SLOW = 2.0
"""Seconds that somebody who waits for a page can be asked to wait for an index."""
_SUFFIXES = (".json", ".jsonl")
_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE units(
  pos INTEGER PRIMARY KEY, cell INTEGER, key BLOB, repeat INTEGER, outcome TEXT, category TEXT, failure TEXT,
  value REAL, problem_idx INTEGER, problem_id TEXT, tokens INTEGER, latency REAL, rest TEXT);
CREATE TABLE texts(pos INTEGER PRIMARY KEY, words TEXT);
"""
_COLUMNS = "pos, cell, repeat, outcome, category, failure, value, problem_idx, problem_id, tokens, latency, rest"


class CellIndex(msgspec.Struct):
    """What the index knows of a cell."""

    key: str
    name: str
    first: int
    """Position of its first attempt; they follow one another."""
    count: int = 0
    outcomes: dict[str, int] = {}
    categories: dict[str, int] = {}
    failures: dict[str, int] = {}
    spread: Distributions = Distributions()
    problem: str = ""
    """Why attempts are missing, where the logs could not be read to their end."""


class Contents(msgspec.Struct):
    """What the index holds."""

    version: str
    """Changes whenever a file of the run does."""
    cells: list[CellIndex]
    texts: bool
    """Whether the texts can be searched."""

    @property
    def count(self) -> int:
        """Attempts of all cells."""
        return sum(cell.count for cell in self.cells)


def cache_directory() -> Path:
    """Where the indexes are: `$XDG_CACHE_HOME/nel/viewer`, by default under `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "nel" / "viewer"


def fingerprint(directory: Path) -> str:
    """Digest of the names, times and sizes of the files that a run's numbers and texts are read from."""
    digest = hashlib.blake2b(_LAYOUT.encode(), digest_size=12)
    folders = [directory, *sorted(item for item in directory.iterdir() if item.is_dir())]
    for folder in folders:
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
            for entry in sorted(found, key=lambda item: item.name):
                if entry.name.endswith(_SUFFIXES):
                    stat = entry.stat()
                    digest.update(f"{folder.name}/{entry.name} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return digest.hexdigest()


class RunIndex:
    """The index of the run in `directory`, kept as one file of `cache`."""

    def __init__(self, directory: Path, cache: Path) -> None:
        self.directory = directory
        self.file = cache / f"{hashlib.sha256(str(directory).encode()).hexdigest()[:24]}.sqlite"
        self._known: tuple[RunView, Contents] | None = None
        self._making = threading.Lock()
        self._swapping = threading.Lock()
        self._made, self._took = 0.0, 0.0

    def refresh(self) -> tuple[RunView, Contents]:
        """The run and its index as they are now.

        A run in progress changes all the time; its index is not made anew more often than it takes four times over, and
        where that takes long, the one before serves until it is done.
        """
        known = self._known
        if known is None or not self.file.is_file():
            return self._renew()
        resting = time.monotonic() - self._made < 4 * self._took
        if resting or self._making.locked() or known[1].version == fingerprint(self.directory):
            return known
        if self._took > _SLOW:
            self._renew_in_background()
            return known
        return self._renew()

    def begin(self) -> bool:
        """Whether `refresh` will answer soon; where it would not, the work is begun, and one should ask again."""
        if self._known is not None or self._stored(fingerprint(self.directory)) is not None:
            return True
        if not self._making.locked():
            if sum(map(_attempts, open_run(self.directory, unfinished=True).cells())) <= TEXTS:
                return True
            self._renew_in_background()
        return False

    def _renew_in_background(self) -> None:
        threading.Thread(target=self._renew, name="nel-view-index", daemon=True).start()

    def _renew(self) -> tuple[RunView, Contents]:
        with self._making:
            version = fingerprint(self.directory)
            if self._known is not None and self._known[1].version == version and self.file.is_file():
                return self._known
            view = open_run(self.directory, unfinished=True)
            contents = self._stored(version)
            if contents is not None:
                self._known = (view, contents)
                return self._known
            started = time.monotonic()
            with _fresh(self.file) as fresh:
                contents = _build(view, fresh, version)
                with self._swapping:
                    fresh.replace(self.file)
                    self._known = (view, contents)
            self._made = time.monotonic()
            self._took = self._made - started
            return self._known

    def _stored(self, version: str) -> Contents | None:
        if not self.file.is_file():
            return None
        with (
            contextlib.suppress(sqlite3.Error, msgspec.DecodeError, TypeError),
            contextlib.closing(self._connect()) as database,
        ):
            found = database.execute("SELECT value FROM meta WHERE name = 'contents'").fetchone()
            contents = msgspec.json.decode(found[0], type=Contents)
            if contents.version == version:
                return contents
        return None

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[RunView, Contents, sqlite3.Connection]]:
        """What `refresh` gives, and the database that belongs to it, for reading."""
        known = self.refresh()
        with self._swapping:
            view, contents = self._known or known
            database = self._connect()
        with contextlib.closing(database):
            yield view, contents, database

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.file.as_uri()}?mode=ro", uri=True)

    def units(self, database: sqlite3.Connection, positions: Sequence[int]) -> list[tuple[int, int, Unit]]:
        """Position, number of the cell and attempt, in the order of `positions`."""
        marks = ",".join("?" * len(positions))
        query = f"SELECT {_COLUMNS} FROM units WHERE pos IN ({marks})"  # noqa: S608 - question marks
        rows = database.execute(query, list(positions))
        found = {row[0]: (row[0], row[1], _unit(row)) for row in rows}
        return [found[position] for position in positions if position in found]


def _unit(row: tuple[Any, ...]) -> Unit:
    _, _, repeat, outcome, category, failure, value, problem_idx, problem_id, tokens, latency, rest = row
    key, cluster, values, place = msgspec.json.decode(rest)
    return Unit(
        unit_key=key,
        repeat=repeat,
        cluster=cluster,
        category=category,
        outcome=Outcome(outcome),
        values={**values, "reward": value},
        problem_idx=problem_idx,
        problem_id=problem_id,
        failure_category=failure,
        tokens=tokens,
        latency_ms=latency,
        place=tuple(place),
    )


@contextlib.contextmanager
def _fresh(file: Path) -> Iterator[Path]:
    """An empty file beside `file`, for the user alone; removed unless it is moved away."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_suffix(f".{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    try:
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def _build(view: RunView, file: Path, version: str) -> Contents:
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {_TABLES}")
        contents = _fill(view, database, version)
        database.execute("CREATE INDEX by_key ON units(key, repeat)")
        database.execute("INSERT INTO meta VALUES ('contents', ?)", [msgspec.json.encode(contents).decode()])
        database.commit()
    return contents


def _fill(view: RunView, database: sqlite3.Connection, version: str) -> Contents:
    cells = view.cells()
    searchable = sum(_attempts(cell) for cell in cells) <= TEXTS
    contents = Contents(version=version, cells=[], texts=searchable)
    position = 1
    for number, cell in enumerate(cells):
        known = CellIndex(key=cell.key, name=cell.name, first=position)
        contents.cells.append(known)
        position = _fill_cell(view, cell, number, known, database, searchable)
    return contents


def _attempts(cell: CellView) -> int:
    counts = cell.counts
    return max(counts.planned, counts.scored + counts.unscored + counts.error, cell.problems * cell.repeats)


def _fill_cell(
    view: RunView, cell: CellView, number: int, known: CellIndex, database: sqlite3.Connection, searchable: bool
) -> int:
    outcomes, categories, failures = Counter[str](), Counter[str](), Counter[str]()
    latencies: list[float] = []
    lengths: list[float] = []
    rows: list[tuple[Any, ...]] = []
    words: list[tuple[int, str]] = []
    position = known.first
    try:
        for unit in view.units(cell):
            rows.append(_row(position, number, unit))
            outcomes[str(unit.outcome)] += 1
            if unit.category:
                categories[unit.category] += 1
            if unit.failure_category:
                failures[unit.failure_category] += 1
            if unit.latency_ms > 0:
                latencies.append(unit.latency_ms)
            if searchable:
                detail = view.detail(cell, unit)
                lengths.append(len(detail.answer))
                words.append((position, _searched(unit, detail)))
            position += 1
            if len(rows) >= _BATCH:
                _insert(database, rows, words)
    except RecordError as error:
        known.problem = error.message
    _insert(database, rows, words)
    known.count = position - known.first
    known.outcomes, known.categories, known.failures = dict(outcomes), dict(categories), dict(failures)
    known.spread = Distributions(plots.histogram(latencies), plots.histogram(lengths))
    if cell.stage is not Stage.RUNNING and known.problem:
        known.problem = f"{cell.name}: {known.problem}"
    return position


def _row(position: int, number: int, unit: Unit) -> tuple[Any, ...]:
    values = {name: value for name, value in unit.values.items() if name != "reward"}
    return (
        position,
        number,
        hashlib.blake2b(unit.unit_key.encode(), digest_size=12).digest(),
        unit.repeat,
        str(unit.outcome),
        unit.category,
        unit.failure_category,
        unit.values.get("reward"),
        unit.problem_idx,
        unit.problem_id,
        unit.tokens,
        unit.latency_ms,
        msgspec.json.encode((unit.unit_key, unit.cluster, values, unit.place)).decode(),
    )


def _searched(unit: Unit, detail: UnitDetail) -> str:
    asked = [content_text(message.get("content")) for message in detail.messages]
    said = [detail.reasoning or "", detail.answer, detail.error or ""]
    said += [msgspec.json.encode(value).decode() for value in (detail.tool_calls, detail.scoring)]
    known = [unit.problem_id or str(unit.problem_idx), unit.category or "", unit.failure_category or ""]
    facts = [str(value) for value in (detail.expected, detail.extracted) if value is not None]
    return "\n".join(text[:_WORDS] for text in (*known, *facts, *asked, *said)).lower()


def _insert(database: sqlite3.Connection, rows: list[tuple[Any, ...]], words: list[tuple[int, str]]) -> None:
    database.executemany(f"INSERT INTO units VALUES ({','.join('?' * 13)})", rows)  # noqa: S608 - question marks
    database.executemany("INSERT INTO texts VALUES (?, ?)", words)
    rows.clear()
    words.clear()
