"""The units of a cell as columns: 60 bytes an attempt, so that a million attempts are compared in memory.

A large run is read by a process of its own (`python -m nel.decisions.columns RUN CELL METRIC`), so that two of
them take the time of one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nel.core.errors import UsageError
from nel.metrics.grouping import LARGEST, Floats, Ints
from nel.observability.records import Outcome
from nel.reporting.run_view import CellView, NotInOrderError, RunView, ScoreRow, ScoreRows, Unit, open_run

_BATCH = 1 << 14
_NOTHING = bytes(8)
_UNKNOWN = float("nan")
PARALLEL = 100_000
"""Attempts from which a process of its own is worth its start."""
_OUTCOMES = {Outcome.SCORED: 0, Outcome.UNSCORED: 1, Outcome.ERROR: 2}

Keys = NDArray[np.uint64]


@dataclass(slots=True)
class Columns:
    """One entry per attempt in each array, in the order in which the run gives its units."""

    keys: Keys
    """The first 8 bytes of each unit's key: what it is paired by."""
    asked: Keys
    """Likewise of what was asked alone; 0 where the run does not tell."""
    values: Floats
    """NaN where the attempt was not scored."""
    outcomes: NDArray[np.int8]
    """0 scored, 1 unscored, 2 error."""
    clusters: Ints
    """A code per attempt, -1 for none; codes mean nothing beyond this run."""
    categories: Ints
    """Places in `category_names`, -1 for none."""
    category_names: list[str]
    by_index: bool
    """Keys are the problems' places in the data, since the run does not hold what was asked."""


_ARRAYS = ("keys", "asked", "values", "outcomes", "clusters", "categories")


def read_columns(view: RunView, cell: CellView, metric: str, *, by_index: bool = False) -> Columns:
    """The units of `cell` with their values of `metric`; `UsageError` on a value that is no finite number.

    `by_index`: the place in the data stands for the key, as it does in a run whose units have none.
    """
    if isinstance(view, ScoreRows) and not by_index:
        with suppress(NotInOrderError):
            return _collected(view, cell, metric, view.score_rows(cell, metric), by_index=False)
    units = view.units(cell)
    first = next(units, None)
    if first is None:
        return _collected(view, cell, metric, iter(()), by_index=by_index)
    by_index = by_index or not first.unit_key
    rows = (_row(unit, metric, by_index=by_index) for unit in chain([first], units))
    return _collected(view, cell, metric, rows, by_index=by_index)


def _row(unit: Unit, metric: str, *, by_index: bool) -> ScoreRow:
    key = unit.problem_idx.to_bytes(8, "big") if by_index else _short(unit.unit_key)
    return key, unit.asked, unit.values.get(metric), unit.outcome, unit.cluster, unit.category


def _collected(view: RunView, cell: CellView, metric: str, rows: Iterator[ScoreRow], *, by_index: bool) -> Columns:
    keys, questions, values = bytearray(), bytearray(), array("d")
    outcomes, clusters, categories = array("b"), array("q"), array("q")
    cluster_codes: dict[str | None, int] = {None: -1}
    category_codes: dict[str | None, int] = {None: -1}
    while batch := list(islice(rows, _BATCH)):
        key, asked, value, outcome, cluster, category = zip(*batch, strict=True)
        keys += b"".join([one[:8] for one in key])
        questions += b"".join([_short(one) if one else _NOTHING for one in asked])
        values.extend([_UNKNOWN if one is None else one for one in value])
        _refuse_nonfinite(view, cell, metric, value, len(outcomes))
        outcomes.extend([_OUTCOMES[one] for one in outcome])
        clusters.extend(_codes(cluster_codes, cluster))
        categories.extend(_codes(category_codes, category))
    del category_codes[None]
    return Columns(
        keys=np.frombuffer(bytes(keys), dtype=">u8").astype(np.uint64),
        asked=np.frombuffer(bytes(questions), dtype=">u8").astype(np.uint64),
        values=np.array(values, dtype=np.float64),
        outcomes=np.array(outcomes, dtype=np.int8),
        clusters=np.array(clusters, dtype=np.int64),
        categories=np.array(categories, dtype=np.int64),
        category_names=[str(name) for name in category_codes],
        by_index=by_index,
    )


def _refuse_nonfinite(view: RunView, cell: CellView, metric: str, values: Sequence[float | None], before: int) -> None:
    for place, value in enumerate(values):
        if value is not None and not abs(value) <= LARGEST:
            raise UsageError(
                f"{view.path / cell.name}: {metric} of row {before + place + 1} is {value}: only finite numbers can be "
                "compared.",
                hint="Correct or remove that row, or score the run again.",
            )


def _codes(codes: dict[str | None, int], names: Sequence[str | None]) -> list[int]:
    """A code for each name, -1 for none; new names get the next ones."""
    for name in names:
        if name not in codes:
            codes[name] = len(codes) - 1
    return [codes[name] for name in names]


def _short(key: str) -> bytes:
    try:
        digest = bytes.fromhex(key[:16])
    except ValueError:
        digest = b""
    return digest if len(digest) == 8 else blake2b(key.encode(), digest_size=8).digest()


Source = tuple[RunView, CellView]


def read_all(sources: Sequence[Source], metric: str) -> list[Columns]:
    """The columns of several cells, all keyed by place in the data where one run does not hold what was asked.

    Large cells are read two at a time.
    """
    found: list[Columns] = []
    for start in range(0, len(sources), 2):
        found += _read_two(sources[start : start + 2], metric)
    if any(columns.by_index for columns in found):
        return [
            columns if columns.by_index else read_columns(*source, metric, by_index=True)
            for source, columns in zip(sources, found, strict=True)
        ]
    return found


def _read_two(sources: Sequence[Source], metric: str) -> list[Columns]:
    if len(sources) < 2 or not all(_is_large(*source) for source in sources):
        return [read_columns(*source, metric) for source in sources]
    reader = _start_reader(*sources[1], metric)
    try:
        first = read_columns(*sources[0], metric)
        return [first, _received(reader) or read_columns(*sources[1], metric)]
    finally:
        reader.kill()
        reader.communicate()


def _is_large(view: RunView, cell: CellView) -> bool:
    return cell.counts.planned >= PARALLEL and (view.path / "manifest.json").is_file()


def _start_reader(view: RunView, cell: CellView, metric: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nel.decisions.columns", str(view.path), cell.key, metric]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _received(reader: subprocess.Popen[bytes]) -> Columns | None:
    """What the reader sent; None where it failed, so that reading here says why."""
    assert reader.stdout is not None
    header = reader.stdout.readline()
    if not header.endswith(b"\n"):
        return None
    said = json.loads(header)
    dtypes, size = said.pop("dtypes"), said.pop("size")
    parts = {name: reader.stdout.read(size * np.dtype(dtype).itemsize) for name, dtype in dtypes.items()}
    arrays: dict[str, Any] = {name: np.frombuffer(part, dtype=dtypes[name]) for name, part in parts.items()}
    return Columns(**said, **arrays) if all(len(column) == size for column in arrays.values()) else None


def _send(columns: Columns, file: IO[bytes]) -> None:
    arrays = {name: getattr(columns, name) for name in _ARRAYS}
    header = {
        "category_names": columns.category_names,
        "by_index": columns.by_index,
        "dtypes": {name: column.dtype.str for name, column in arrays.items()},
        "size": len(columns.keys),
    }
    file.write(json.dumps(header).encode() + b"\n")
    for column in arrays.values():
        file.write(column.tobytes())
    file.flush()


def _main(path: str, key: str, metric: str) -> None:
    view = open_run(Path(path), unfinished=True)
    cell = next(cell for cell in view.cells() if cell.key == key)
    _send(read_columns(view, cell, metric), sys.stdout.buffer)


if __name__ == "__main__":
    _main(*sys.argv[1:])
