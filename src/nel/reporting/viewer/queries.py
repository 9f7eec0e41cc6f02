"""What the list of samples shows: filters and orders as SQL, and the positions that they give, kept for paging."""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nel.core.errors import UsageError
from nel.reporting.viewer.index import Contents

STANDINGS = {
    "right": "u.outcome = 'scored' AND u.value >= 1",
    "wrong": "u.outcome = 'scored' AND u.value <= 0",
    "partial": "u.outcome = 'scored' AND u.value > 0 AND u.value < 1",
}
CHANGES = {
    "worse": "u.value > v.value",
    "better": "u.value < v.value",
    "same": "u.value = v.value",
    "unmeasured": "(u.value IS NULL OR v.value IS NULL)",
}
_ORDERS = {"value": "u.value", "tokens": "u.tokens", "latency": "u.latency"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to see; empty fields are no filter."""

    cell: int | None = None
    text: str = ""
    outcome: str = ""
    standing: str = ""
    category: str = ""
    failure: str = ""
    change: str = ""
    sort: str = ""

    @classmethod
    def of(cls, parameters: dict[str, str]) -> Wish:
        """From the parameters of an address; `UsageError` names one that is unknown."""
        known = dict(parameters)
        cell = known.pop("cell", "")
        unknown = known.keys() - set(cls.__dataclass_fields__)
        if unknown or (cell and not cell.isdecimal()):
            raise UsageError(f"There is no filter {', '.join(sorted(unknown)) or f'cell={cell}'}.")
        wish = cls(cell=int(cell) if cell else None, **known)
        for value, table in ((wish.standing, STANDINGS), (wish.change, CHANGES), (wish.sort.lstrip("-"), _ORDERS)):
            if value and value not in table:
                raise UsageError(f"{value!r} is none of {', '.join(table)}.")
        return wish

    def where(self, *, texts: bool) -> tuple[str, list[Any]]:
        """The conditions, over `units u` and, with a search in texts, `texts t`."""
        conditions, values = ["1"], list[Any]()
        for column in ("outcome", "category", "failure"):
            if wanted := getattr(self, column):
                conditions.append(f"u.{column} = ?")
                values.append(wanted)
        if self.cell is not None:
            conditions.append("u.cell = ?")
            values.append(self.cell)
        if self.standing:
            conditions.append(STANDINGS[self.standing])
        if self.change:
            conditions.append(CHANGES[self.change])
        names = "lower(coalesce(u.problem_id, u.problem_idx) || ' ' || coalesce(u.category, '') || ' ' || "
        searched = "t.words" if texts else f"{names}coalesce(u.failure, ''))"
        for word in self.text.lower().split():
            conditions.append(f"instr({searched}, ?)")
            values.append(word)
        return " AND ".join(conditions), values

    def order(self) -> str:
        """The order, with attempts that have no such value at the end."""
        name = self.sort.lstrip("-")
        way = " DESC" if self.sort.startswith("-") else ""
        return f"ORDER BY {_ORDERS[name]} IS NULL, {_ORDERS[name]}{way}, u.pos" if name else "ORDER BY u.pos"


class Kept[T]:
    """The last results by key, so that a list is computed once and then only paged."""

    def __init__(self, most: int = 24) -> None:
        self._most = most
        self._values: OrderedDict[Any, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], T]) -> T:
        """The value of `key`, made where it is not known."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


def positions(database: sqlite3.Connection, contents: Contents, wish: Wish) -> Sequence[int]:
    """The positions of the attempts that `wish` describes, in its order."""
    if wish == Wish(cell=wish.cell):
        return range(1, contents.count + 1) if wish.cell is None else span(contents, wish.cell)
    searching = contents.texts and bool(wish.text.split())
    condition, values = wish.where(texts=searching)
    join = " JOIN texts t ON t.pos = u.pos" if searching else ""
    query = f"SELECT u.pos FROM units u{join} WHERE {condition} {wish.order()}"  # noqa: S608 - values are bound
    return array("q", (row[0] for row in database.execute(query, values)))


def span(contents: Contents, number: int) -> range:
    """The positions of one cell; empty where there is no such cell."""
    if number >= len(contents.cells):
        return range(0)
    cell = contents.cells[number]
    return range(cell.first, cell.first + cell.count)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Attempts that were made at the same problem in two runs."""

    first: Sequence[int]
    second: Sequence[int]


_PAIRED = "FROM units u JOIN other.units v ON v.key = u.key AND v.repeat = u.repeat"


def pairs(database: sqlite3.Connection, contents: Contents, other_cell: int, wish: Wish) -> Pairs:
    """The pairs that `wish` describes (its conditions are on the first), with the second run attached as `other`."""
    searching = contents.texts and bool(wish.text.split())
    condition, values = wish.where(texts=searching)
    join = " JOIN texts t ON t.pos = u.pos" if searching else ""
    query = f"SELECT u.pos, v.pos {_PAIRED}{join} WHERE {condition} AND v.cell = ? {wish.order()}"
    first, second = array("q"), array("q")
    for one, two in database.execute(query, [*values, other_cell]):
        first.append(one)
        second.append(two)
    return Pairs(first, second)


@dataclass(frozen=True, slots=True)
class PairCounts:
    """How the pairs of two cells differ."""

    pairs: int
    worse: int
    better: int
    same: int
    unmeasured: int
    """Not scored in at least one of the two."""
    first_mean: float | None
    """Over the pairs that are scored in both."""
    second_mean: float | None


def count_pairs(database: sqlite3.Connection, first_cell: int, other_cell: int) -> PairCounts:
    """The counts of `pairs` without any filter."""
    sums = ", ".join(f"coalesce(sum({CHANGES[name]}), 0)" for name in ("worse", "better", "same", "unmeasured"))
    both = "CASE WHEN u.value IS NOT NULL AND v.value IS NOT NULL THEN {} END"
    query = (
        f"SELECT count(*), {sums}, avg({both.format('u.value')}), avg({both.format('v.value')}) "
        f"{_PAIRED} WHERE u.cell = ? AND v.cell = ?"
    )
    return PairCounts(*database.execute(query, (first_cell, other_cell)).fetchone())
