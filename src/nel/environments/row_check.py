"""`check_rows`: every row is put as a problem once before the first request, so that bad data cost no answer."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nel.core.errors import DataError
from nel.environments.base import SeedResult
from nel.environments.rows import PreparedRows, SkipRow

_SCALARS = ("text", "number")


@dataclass(slots=True)
class Excluded:
    """Rows that are set aside, counted."""

    reasons: Counter[str] = field(default_factory=Counter)
    first: str = ""
    """Where the first of them stands."""

    def add(self, reason: str, place: str) -> None:
        """One more row."""
        self.first = self.first or place
        self.reasons[reason] += 1

    def identity(self) -> dict[str, Any]:
        """What the bundle says of them; empty where there are none."""
        if not self.reasons:
            return {}
        return {"excluded": {"rows": self.reasons.total(), "reasons": dict(self.reasons), "first": self.first}}


class KeptRows:
    """The rows that are asked: problem number to row number; 8 bytes a row where some are set aside, else nothing."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._numbers: array[int] | None = None
        self.excluded = Excluded()

    def __len__(self) -> int:
        return self._rows if self._numbers is None else len(self._numbers)

    def number(self, idx: int) -> int:
        """Which row problem `idx` is."""
        return idx if self._numbers is None else self._numbers[idx]

    def without(self, numbers: Sequence[int]) -> None:
        """Sets rows aside."""
        if numbers:
            aside = set(numbers)
            self._numbers = array("Q", (number for number in range(self._rows) if number not in aside))


def check_rows(
    rows: PreparedRows, problem: Callable[[int], SeedResult], columns: Iterable[str], *, exclude: bool
) -> KeptRows:
    """Which rows can be asked.

    Args:
        rows: all rows.
        problem: makes the problem of a row.
        columns: the columns that the prompt uses, whose values must be of one kind in all rows.
        exclude: set a row aside that cannot be used, and count it, instead of raising.

    Raises:
        DataError: the first row that cannot be used: no such column, null where a value is needed, a value of another
            kind than in the rows before, an id that an earlier row has.
    """
    kept = KeptRows(len(rows))
    check = _Check(rows, list(columns))
    aside = []
    for number in range(len(rows)):
        try:
            check.row(number, problem(number))
        except SkipRow as skipped:
            aside.append(number)
            kept.excluded.add(str(skipped) or "set aside by the benchmark", rows.source.place(number))
        except DataError as error:
            if not exclude:
                raise
            aside.append(number)
            place = rows.source.place(number)
            kept.excluded.add(error.message.partition(f"{place}: ")[2] or error.message, place)
    kept.without(aside)
    return kept


class _Check:
    """What the rows so far were like."""

    def __init__(self, rows: PreparedRows, columns: list[str]) -> None:
        self._rows = rows
        self._columns = columns
        self._kinds: dict[str, tuple[str, int]] = {}
        self._ids: dict[str, int] = {}

    def row(self, number: int, problem: SeedResult) -> None:
        found = {column: problem.metadata[column] for column in self._columns if column in problem.metadata}
        for column, value in found.items():
            self._check_kind(f"column {column!r}", _kind(value), number)
        if problem.expected_answer is not None:
            kind = _kind(problem.expected_answer)
            self._check_kind("the expected answer", "text" if kind == "list" else kind, number)
        if problem.problem_id is not None:
            first = self._ids.setdefault(problem.problem_id, number)
            if first != number:
                raise self._rows.error(
                    number,
                    f"the id {problem.problem_id!r} is that of an earlier row",
                    f"The first one is {self._rows.source.place(first)}.",
                )

    def _check_kind(self, what: str, kind: str, number: int) -> None:
        if kind in _SCALARS:
            kind = "text or number"
        first, where = self._kinds.setdefault(what, (kind, number))
        if kind != first:
            raise self._rows.error(number, f"{what} is {kind}, and {first} in {self._rows.source.place(where)}")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list | tuple) else "object"
