"""`FewShot`: solved examples before the question, from rows that are never the asked one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nel.core.contract import canonical_json
from nel.core.errors import DataError, UsageError
from nel.environments.base import SeedResult
from nel.environments.data import DataSpec
from nel.environments.rows import PreparedRows, SkipRow

STYLES = ("text", "turns")
CHOICES = ("random", "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class FewShot:
    """Where examples come from, and how they stand before the question; `num_fewshot` says how many."""

    rows: DataSpec
    """A file, folder, address, function or rows, as for `dataset`; or `{"split": "dev"}`: another split of the
    benchmark's own data set."""
    answer: str = ""
    """A template of an example's answer; without one, the expected answer."""
    style: Literal["text", "turns"] = "text"
    """`text`: in front of the prompt; `turns`: as earlier turns of the conversation."""
    between: str = " "
    """Stands between the prompt of an example and its answer (style `text`)."""
    separator: str = "\n\n"
    """Stands after each example (style `text`)."""
    choice: Literal["random", "first"] = "random"
    """`random`: other examples for each problem, by its content and `row_seed` alone; `first`: in the rows' order."""
    same: str | None = None
    """Take only examples that share this column with the asked row (a subject)."""

    def __post_init__(self) -> None:
        for name, value, known in (("style", self.style, STYLES), ("choice", self.choice, CHOICES)):
            if value not in known:
                raise UsageError(f"FewShot: {name} is {value!r}; {' or '.join(map(repr, known))} is expected")


@dataclass(frozen=True, slots=True)
class Example:
    """A solved problem."""

    prompt: str
    answer: str


class Examples:
    """The examples of one benchmark.

    Args:
        spec: how they are chosen and shown.
        count: how many each problem has.
        rows: where they come from.
        solved: makes the example of a row.

    Raises:
        DataError: a row that is no example, or too few of them for a problem.
    """

    def __init__(
        self, spec: FewShot, count: int, rows: PreparedRows, solved: Callable[[dict[str, Any], int], Example]
    ) -> None:
        self._spec = spec
        self._count = count
        self._rows = rows
        self._solved = solved
        self._groups: dict[bytes, list[int]] = {}

    def prepare(self) -> None:
        """Reads every row once."""
        for number in range(len(self._rows)):
            try:
                row = self._rows.row(number)
                self._solved(row, number)
            except SkipRow:
                continue
            if self._spec.same is not None and self._spec.same not in row:
                raise self._rows.no_column("FewShot.same", self._spec.same, row, number)
            self._groups.setdefault(self._group(row), []).append(number)

    def identity(self) -> dict[str, Any]:
        """What the examples were made from, and how many each problem has."""
        return {"num_fewshot": self._count, **self._rows.source.identity()}

    def before(self, problem: SeedResult, row: Mapping[str, Any], place: str) -> None:
        """Puts the examples in front of a problem, in place."""
        examples = self._chosen(problem.prompt, row, place)
        if self._spec.style == "turns":
            turns: list[dict[str, Any]] = []
            for example in examples:
                turns.append({"role": "user", "content": example.prompt})
                turns.append({"role": "assistant", "content": example.answer})
            problem.messages = [*turns, {"role": "user", "content": problem.prompt}]
            return
        spec = self._spec
        text = "".join(f"{item.prompt}{spec.between}{item.answer}{spec.separator}" for item in examples)
        problem.prompt = text + problem.prompt
        contexts = problem.metadata.get("option_contexts")
        if isinstance(contexts, list):
            problem.metadata = {**problem.metadata, "option_contexts": [text + context for context in contexts]}

    def _chosen(self, asked: str, row: Mapping[str, Any], place: str) -> list[Example]:
        """Examples other than the question itself; equal rows count as the question, wherever they stand."""
        numbers = self._groups.get(self._group(row), [])
        # One more than needed, as the asked row may be among them; all where it stands there several times.
        for size in (self._count + 1, len(numbers)):
            found = [self._example(number) for number in self._order(numbers, size, asked)]
            found = [example for example in found if example.prompt != asked][: self._count]
            if len(found) == self._count:
                return found
        alike = f" with its {self._spec.same!r}" if self._spec.same is not None else ""
        raise DataError(
            f"{place}: {self._count} examples are wanted, and {self._rows.source.name} has {len(found)} others{alike}",
            hint="Lower params.num_fewshot.",
        )

    def _order(self, numbers: list[int], size: int, asked: str) -> list[int]:
        if self._spec.choice == "first":
            return numbers[:size]
        return self._rows.random(b"fewshot/" + canonical_json(asked)).sample(numbers, min(size, len(numbers)))

    def _example(self, number: int) -> Example:
        return self._solved(self._rows.row(number), number)

    def _group(self, row: Mapping[str, Any]) -> bytes:
        return canonical_json(row.get(self._spec.same)) if self._spec.same is not None else b""

    def close(self) -> None:
        """Closes the examples' files."""
        self._rows.source.close()
