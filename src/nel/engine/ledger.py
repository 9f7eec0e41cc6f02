"""What an earlier run left, and which line of the logs each attempt of the present plan uses.

Everything is kept in flat arrays: about 66 bytes for a known attempt and 27 for a planned one, so a hundred thousand
attempts are a few megabytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from nel.core.log import scan_log
from nel.engine.identity import KEY_BYTES
from nel.observability.records import Outcome

TRAJECTORIES = "trajectories.jsonl"
RESULTS = "results.jsonl"
SUPERSEDED = "superseded.jsonl"


class Line(NamedTuple):
    """Where a line stands: in `superseded.jsonl` (file 1) or in its own log (file 0)."""

    file: int
    offset: int
    length: int
    label: int
    """`problem_idx` as the line says it."""
    good: bool
    """An answer (attempts), a scored measurement (scores)."""


class _ErrorHead(msgspec.Struct):
    permanent: bool = False


class AttemptHead(msgspec.Struct, tag_field="schema", tag="nel.attempt/1"):
    """What resuming needs of an attempt's line."""

    attempt: str
    problem_idx: int
    model_error: _ErrorHead | None = None


class MetricHead(msgspec.Struct):
    """How one metric of a score ended."""

    outcome: Outcome = Outcome.SCORED


class ScoreHead(msgspec.Struct, tag_field="schema", tag="nel.score/1"):
    """What resuming needs of a score's line."""

    score: str
    problem_idx: int
    outcome: Outcome = Outcome.SCORED
    scorer_rewards: dict[str, MetricHead] = {}

    @property
    def is_complete(self) -> bool:
        """Whether every metric has its value, so that nothing is left to be measured."""
        scored = Outcome.SCORED
        return self.outcome is scored and all(metric.outcome is scored for metric in self.scorer_rewards.values())


_heads = msgspec.json.Decoder(AttemptHead | ScoreHead)


class _Index:
    """From a key to its best line: a good one before another, a later one before an earlier."""

    def __init__(self) -> None:
        self._keys = bytearray()
        self._file = array("b")
        self._offset = array("q")
        self._length = array("l")
        self._label = array("l")
        self._good = array("b")
        self._order: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._high: npt.NDArray[np.uint64] = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self._file)

    def add(self, key: str, line: Line) -> None:
        self._keys += bytes.fromhex(key)
        self._file.append(line.file)
        self._offset.append(line.offset)
        self._length.append(line.length)
        self._label.append(line.label)
        self._good.append(line.good)

    def freeze(self) -> None:
        halves = np.frombuffer(self._keys, dtype=">u8").reshape(-1, 2).astype(np.uint64)
        place = np.arange(len(halves))
        good = np.frombuffer(self._good, dtype=np.int8) if len(halves) else np.empty(0, np.int8)
        self._order = np.lexsort((place, good, halves[:, 1], halves[:, 0]))
        self._high = halves[self._order, 0]

    def find(self, key: bytes) -> Line | None:
        high = np.uint64(int.from_bytes(key[:8], "big"))
        at = int(self._high.searchsorted(high, side="right")) - 1
        while at >= 0 and self._high[at] == high:
            line = int(self._order[at])
            if self._keys[line * KEY_BYTES : (line + 1) * KEY_BYTES] == key:
                return Line(
                    self._file[line], self._offset[line], self._length[line], self._label[line], bool(self._good[line])
                )
            at -= 1
        return None


@dataclass(slots=True)
class Known:
    """Attempts and scores that the logs of a cell already hold, found by their keys."""

    attempts: _Index
    scores: _Index
    problems: list[str]
    """Lines that could not be read, each with its file and number."""

    @classmethod
    def scan(cls, cell: Path, *, permanent_errors: bool) -> Known:
        """Reads both logs and `superseded.jsonl`; an error counts as known only where it is permanent and
        `permanent_errors` says so."""
        known = cls(_Index(), _Index(), [])
        # The older file first: of two good lines the later one wins.
        for offset, line in whole_lines(cell / SUPERSEDED):
            try:
                known._add(1, offset, len(line), _heads.decode(line), permanent_errors)
            except msgspec.DecodeError as error:
                known.problems.append(f"{cell / SUPERSEDED}: at byte {offset}: {error}")
        for offset, length, attempt in scan_log(cell / TRAJECTORIES, AttemptHead, problems=known.problems):
            known._add(0, offset, length, attempt, permanent_errors)
        for offset, length, score in scan_log(cell / RESULTS, ScoreHead, problems=known.problems):
            known._add(0, offset, length, score, permanent_errors)
        known.attempts.freeze()
        known.scores.freeze()
        return known

    def _add(self, file: int, offset: int, length: int, head: AttemptHead | ScoreHead, permanent_errors: bool) -> None:
        line = Line(file, offset, length, head.problem_idx, good=True)
        if isinstance(head, ScoreHead):
            self.scores.add(head.score, line._replace(good=head.is_complete))
        elif head.model_error is None:
            self.attempts.add(head.attempt, line)
        elif head.model_error.permanent and permanent_errors:
            self.attempts.add(head.attempt, line._replace(good=False))


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Offset and text of each line of a log that nobody appends to."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            yield offset, line.rstrip(b"\n")
            offset += len(line)


class Ledger:
    """For each attempt of the plan, the lines that hold it."""

    def __init__(self, size: int) -> None:
        self.attempt_file = np.full(size, -1, np.int8)
        self.attempt_offset = np.zeros(size, np.int64)
        self.attempt_length = np.zeros(size, np.int32)
        self.score_file = np.full(size, -1, np.int8)
        self.score_offset = np.zeros(size, np.int64)
        self.score_length = np.zeros(size, np.int32)
        self.moved = np.zeros(size, np.bool_)
        """The line says another `problem_idx` than the problem has now."""

    def cut(self, size: int) -> None:
        """Forgets every attempt of the plan from `size` on."""
        for name in ("attempt_file", "attempt_offset", "attempt_length", "score_file", "score_offset", "score_length"):
            setattr(self, name, getattr(self, name)[:size])
        self.moved = self.moved[:size]

    def attempt(self, unit: int, file: int, offset: int, length: int) -> None:
        """Attempt `unit` is the line at `offset`."""
        self.attempt_file[unit] = file
        self.attempt_offset[unit] = offset
        self.attempt_length[unit] = length

    def score(self, unit: int, file: int, offset: int, length: int) -> None:
        """The score of attempt `unit` is the line at `offset`."""
        self.score_file[unit] = file
        self.score_offset[unit] = offset
        self.score_length[unit] = length
