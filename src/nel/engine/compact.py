"""Compaction: a completed cell's logs hold one line for each attempt of its plan, in problem order.

Lines that the plan does not use move to `superseded.jsonl`, which is written first; then each log is replaced by write,
fsync, rename. After a crash anywhere in between, every line is still in at least one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from nel.core.contract import Record, encode_json
from nel.core.log import replace_log
from nel.engine.ledger import RESULTS, SUPERSEDED, TRAJECTORIES, Ledger, whole_lines
from nel.observability.records import AttemptRecord, ScoreRecord

Ints = npt.NDArray[np.int64]
_BATCH = 4096


@dataclass(frozen=True, slots=True)
class _Column:
    """The lines that one log shall hold: for each unit a file, an offset and a length."""

    path: Path
    record: type[AttemptRecord | ScoreRecord]
    file: npt.NDArray[np.int8]
    offset: Ints
    length: npt.NDArray[np.int32]


def compact(cell: Path, ledger: Ledger, indexes: Ints, repeats: int) -> None:
    """Rewrites the logs of `cell`; `indexes` are the plan's problems in the ledger's order."""
    by_problem = np.argsort(indexes, kind="stable")
    units = (by_problem[:, None] * repeats + np.arange(repeats)).ravel()
    columns = [
        _Column(
            cell / TRAJECTORIES,
            AttemptRecord,
            ledger.attempt_file[units],
            ledger.attempt_offset[units],
            ledger.attempt_length[units],
        ),
        _Column(
            cell / RESULTS,
            ScoreRecord,
            ledger.score_file[units],
            ledger.score_offset[units],
            ledger.score_length[units],
        ),
    ]
    moved = ledger.moved[units]
    labels = np.repeat(indexes[by_problem], repeats)
    if any((column.file < 0).any() for column in columns):
        raise ValueError("compaction needs a line for every attempt of the plan")
    if not moved.any() and all(_is_compact(column) for column in columns):
        return
    superseded = cell / SUPERSEDED
    superseded.touch()
    with superseded.open("rb") as old:
        leftovers = [column for column in columns if not _covers(column)]
        if leftovers:
            replace_log(superseded, _united(old, (line for column in leftovers for line in _unused(column))))
        for column in columns:
            replace_log(column.path, _lines(column, old, moved, labels))
        promoted = np.concatenate([column.offset[column.file == 1] for column in columns])
    if len(promoted):
        with superseded.open("rb") as current:
            replace_log(superseded, _without(current, set(promoted.tolist())))
    if not superseded.stat().st_size:
        superseded.unlink()


def _covers(column: _Column) -> bool:
    """Whether the plan uses every line of the log."""
    return int((column.length[column.file == 0].astype(np.int64) + 1).sum()) == column.path.stat().st_size


def _is_compact(column: _Column) -> bool:
    """Whether the log holds just these lines in this order."""
    if (column.file != 0).any():
        return False
    ends = column.offset + column.length + 1
    return (
        bool((column.offset[1:] == ends[:-1]).all())
        and (not len(ends) or column.offset[0] == 0)
        and column.path.stat().st_size == (int(ends[-1]) if len(ends) else 0)
    )


def _unused(column: _Column) -> Iterator[bytes]:
    used = np.sort(column.offset[column.file == 0])
    for offset, line in whole_lines(column.path):
        at = int(np.searchsorted(used, offset))
        if at == len(used) or used[at] != offset:
            yield line


def _lines(column: _Column, superseded: BinaryIO, moved: npt.NDArray[np.bool_], labels: Ints) -> Iterator[bytes]:
    with column.path.open("rb") as log:
        sources = {0: log.fileno(), 1: superseded.fileno()}
        for start in range(0, len(column.file), _BATCH):
            part = slice(start, start + _BATCH)
            rows = (column.file[part], column.offset[part], column.length[part], moved[part], labels[part])
            for file, offset, length, has_moved, label in zip(*(row.tolist() for row in rows), strict=True):
                line = os.pread(sources[file], length, offset)
                yield _relabelled(column.record, line, label) if has_moved else line


def _relabelled(record: type[AttemptRecord | ScoreRecord], line: bytes, label: int) -> bytes:
    value: Record = record.from_json(line)
    value.problem_idx = label  # type: ignore[attr-defined]
    if isinstance(value, AttemptRecord):
        value.step_id = step_id(label, value.repeat)
    return encode_json(value)


def step_id(problem_idx: int, repeat: int) -> str:
    """The name of an attempt among those of its cell."""
    return f"p{problem_idx}_r{repeat}"


def _united(old: BinaryIO, unused: Iterator[bytes]) -> Iterator[bytes]:
    """The old lines at their old offsets, then the new ones that are not among them."""
    seen: set[bytes] = set()
    for line in old:
        seen.add(sha256(line.rstrip(b"\n")).digest())
        yield line.rstrip(b"\n")
    for line in unused:
        digest = sha256(line).digest()
        if digest not in seen:
            seen.add(digest)
            yield line


def _without(lines: BinaryIO, offsets: set[int]) -> Iterator[bytes]:
    at = 0
    for line in lines:
        if at not in offsets:
            yield line.rstrip(b"\n")
        at += len(line)
