"""Whether two mathematical answers are equal: exact fast paths first, computer algebra in killable processes after.

Known false equalities of rounding comparisons (`1/2004!` and `1/2006!`, `n = 2, 3, 4` and `n = 1, 2, 3`, `12:00` and
`1:00`) stay unequal: numbers are compared exactly, and structures member by member.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from nel.core.errors import DataError
from nel.scoring.extract import Extraction, extract_number, find_answer, first_sentence, statements
from nel.scoring.math_parse import MAX_LENGTH, Answer, Equation, Items, Opaque, Quantity, Words, read_answer
from nel.scoring.math_pool import JobFailedError, JobTimeoutError, WorkerPool
from nel.scoring.math_value import BeyondError, Exact, add, divide, equal, exact, negate, proportional
from nel.scoring.sample import ScorerInput
from nel.scoring.text import undecorate
from nel.scoring.verdicts import Verdict, targets, verdict_on

Compare = Callable[[str, str], bool]


class GoldError(DataError):
    """An expected answer that cannot be read as mathematics: no answer could ever equal it."""


class MathTimeoutError(Exception):
    """Whether two answers are equal was not found out in time."""


def math_equal(answer: str, gold: str, *, ordered: bool = False, timeout: float = 5.0) -> bool:
    """Whether an answer equals the expected one; both in LaTeX or plain text, without the sentence around them.

    Args:
        answer: what the model gave; whatever cannot be read is not equal.
        gold: the expected answer (`check_gold` says beforehand whether it can be read).
        ordered: whether the order of a list's members counts; that of tuples always does, that of sets never.
        timeout: seconds in which it must be decided.

    Raises:
        MathTimeoutError: it was not decided in time.
    """
    if not answer.strip() or len(answer) > MAX_LENGTH + 8 * len(gold):
        return False
    deadline = time.monotonic() + timeout

    def ask(one: str, other: str) -> bool:
        left = deadline - time.monotonic()
        try:
            if left <= 0:
                raise JobTimeoutError
            return bool(_pool().run("equal", one, other, timeout=left))
        except JobTimeoutError:
            raise MathTimeoutError(f"not decided within {timeout} s") from None
        except JobFailedError:
            return False

    return _same(read_answer(answer), _gold(gold), ask, ordered=ordered)


def check_gold(gold: str, *, timeout: float = 20.0) -> None:
    """`GoldError` unless the expected answer can be read; to be called when data are loaded."""
    answer = _gold(gold)
    for opaque in _opaque(answer):
        try:
            if _pool().run("readable", opaque, timeout=timeout):
                continue
        except (JobTimeoutError, JobFailedError):
            pass
        raise GoldError(
            f"the expected answer {gold!r} cannot be read as mathematics",
            hint="Write it as LaTeX or as a number; an answer in words goes through exact_match.",
        )


@lru_cache(maxsize=4096)
def _gold(gold: str) -> Answer:
    if not gold.strip():
        raise GoldError("the expected answer is empty")
    return read_answer(gold)


def _opaque(answer: Answer) -> list[str]:
    match answer:
        case Opaque(text):
            return [text]
        case Items(_, members, _):
            return [text for member in members for text in _opaque(member)]
        case Equation(left, right, _):
            return _opaque(left) + _opaque(right)
    return []


def _pool() -> WorkerPool:
    return _pool_of(os.getpid())


@cache
def _pool_of(process: int) -> WorkerPool:
    del process  # a fork needs its own
    return WorkerPool("nel.scoring.math_worker", size=2)


def _same(one: Answer, other: Answer, ask: Compare, *, ordered: bool) -> bool:
    if isinstance(one, Equation) or isinstance(other, Equation):
        return _same_equations(one, other, ask, ordered=ordered)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return _same_quantities(one, other)
    one, other = _unwrapped(one), _unwrapped(other)
    if isinstance(one, Items) and isinstance(other, Items):
        return _same_items(one, other, ask, ordered=ordered)
    if isinstance(one, Words) or isinstance(other, Words):
        return _letters(one) == _letters(other)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return _same_quantities(one, other)
    if isinstance(one, Opaque) or isinstance(other, Opaque):
        left, right = _text(one), _text(other)
        if re.sub(r"\s", "", left) == re.sub(r"\s", "", right):
            return True
        return max(len(left), len(right)) <= MAX_LENGTH and _may_be_asked(left, right) and ask(left, right)
    return False


def _unwrapped(answer: Answer) -> Answer:
    """The one member of a list or set."""
    if isinstance(answer, Items) and answer.brackets in {"", "{}"} and len(answer.members) == 1:
        return answer.members[0]
    return answer


def _letters(answer: Answer) -> str:
    return re.sub(r"[^\w]+", "", _text(answer)).casefold()


def _text(answer: Answer) -> str:
    return answer.text


_TOWER = re.compile(r"\^\s*\{?[^{}]{0,12}\^\s*\{?[^{}]{0,12}\^")


def _may_be_asked(*texts: str) -> bool:
    """Not what no process could compute: towers of powers, deep nests, numbers of thousands of digits."""
    for text in texts:
        if _TOWER.search(text) or re.search(r"\d{400}", text) or text.count("{") > 200 or "\0" in text:
            return False
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate
            return False
    return True


def _same_quantities(one: Quantity, other: Quantity) -> bool:
    if one.unit in _UNITS and other.unit in _UNITS and one.unit != other.unit:
        return False
    try:
        if equal(one.value, other.value):
            return True
        if one.percent == other.percent:
            return False
        part = one.value if one.percent else other.value
        whole = other.value if one.percent else one.value
        return equal(divide(part, exact(100)), whole)
    except BeyondError:
        return False


_UNITS = frozenset(
    {"cm", "mm", "m", "km", "kg", "g", "mg", "ft", "in", "inches", "feet", "hours", "minutes", "seconds"}
)


def _same_items(one: Items, other: Items, ask: Compare, *, ordered: bool) -> bool:
    if {one.brackets, other.brackets} <= {"", "{}"}:
        in_order = ordered and "{}" not in {one.brackets, other.brackets}
    elif one.brackets == other.brackets:
        in_order = one.brackets != "∪"
    else:
        return False
    left, right = one.members, list(other.members)
    if len(left) != len(right):
        return False
    if in_order:
        return all(_same(*pair, ask, ordered=ordered) for pair in zip(left, right, strict=True))
    for member in left:
        at = next((index for index, second in enumerate(right) if _same(member, second, ask, ordered=ordered)), None)
        if at is None:
            return False
        del right[at]
    return True


_NAME = re.compile(r"[A-Za-z](?:_\w|_\{\w+\})?'?(?:\s*\(\s*[a-z](?:\s*,\s*[a-z])*\s*\))?")


def _same_equations(one: Answer, other: Answer, ask: Compare, *, ordered: bool) -> bool:
    if not (isinstance(one, Equation) and isinstance(other, Equation)):
        equation, value = (one, other) if isinstance(one, Equation) else (other, one)
        assert isinstance(equation, Equation)
        named = _NAME.fullmatch(equation.left.text) is not None
        return named and _same(equation.right, value, ask, ordered=ordered)
    names = [side.left.text.replace(" ", "") for side in (one, other) if _NAME.fullmatch(side.left.text)]
    if len(names) == 2 and names[0] == names[1]:
        return _same(one.right, other.right, ask, ordered=ordered)
    sides = [_difference(side) for side in (one, other)]
    if sides[0] is not None and sides[1] is not None:
        try:
            return proportional(sides[0], sides[1])
        except BeyondError:
            pass
    return _may_be_asked(one.text, other.text) and ask(one.text, other.text)


def _difference(equation: Equation) -> Exact | None:
    if isinstance(equation.left, Quantity) and isinstance(equation.right, Quantity):
        try:
            return add(equation.left.value, negate(equation.right.value))
        except BeyondError:
            return None
    return None


_INLINE = re.compile(r"\$\$(.{1,1000}?)\$\$|\$([^$\n]{1,1000})\$|\\\((.{1,1000}?)\\\)|\\\[(.{1,1000}?)\\\]", re.DOTALL)
_BETWEEN = re.compile(r"\}\s*\$?\s*(?:,|;|,?\s*(?:\\text\{\s*)?(?:and|or)(?:\s*\})?)\s*\$?\s*\\f?boxed\s*\{")
_MANY_WORDS = 6


def extract_math(text: str, *, stated: bool = False) -> Extraction | None:
    r"""The mathematical answer of a reply: the last explicit one (several boxes in a row are one list), else the last
    formula or number of its last line. With `stated` an explicit answer alone is taken.
    """
    found = statements(text)
    for index, statement in enumerate(found):
        start, end = statement.start, statement.end
        if statement.rule == "boxed":
            parts = [text[start:end]]
            for earlier in found[index + 1 :]:
                if earlier.rule != "boxed" or not _BETWEEN.fullmatch(text, earlier.end, start):
                    break
                start = earlier.start
                parts.insert(0, text[earlier.start : earlier.end])
            said = ", ".join(parts)
        else:
            formula = _INLINE.match(text, start) or _INLINE.search(text, start, end)
            said = formula.group() if formula else first_sentence(text[start:end])
            start = formula.start() if formula else start
        if answer := _bare(said):
            return Extraction(answer, start, max(end, start), statement.rule)
    return None if stated else _unstated(text)


def _bare(said: str) -> str:
    formula = _INLINE.fullmatch(said.strip())
    return undecorate(next(filter(None, formula.groups()), "") if formula else said)


def _unstated(text: str) -> Extraction | None:
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    line = stripped[start:]
    if formula := _last_formula(stripped):
        at_end = formula.end() > start
        if at_end or len(line.split()) > _MANY_WORDS:
            return Extraction(_bare(formula.group()), formula.start(), formula.end(), "last formula")
    if len(line.split()) > _MANY_WORDS and (number := extract_number(line)):
        return Extraction(number.text, start + number.start, start + number.end, "last number")
    answer = undecorate(line)
    return Extraction(answer, start, len(stripped), "last line") if answer else None


def _last_formula(text: str) -> re.Match[str] | None:
    last = None
    for last in _INLINE.finditer(text[-20_000:] if len(text) > 20_000 else text):  # noqa: B007
        pass
    return last


def math_match(sample: ScorerInput, *, ordered: bool = False, timeout: float = 5.0) -> Verdict:
    """Whether the reply's answer equals the expected one (or one of several) as mathematics.

    It may wait for a process, so an async scorer calls it with `asyncio.to_thread`.

    Args:
        sample: its target is LaTeX or plain text.
        ordered: whether the order of a list's members counts.
        timeout: seconds in which it must be decided; else the answer is *unscored*.

    Raises:
        GoldError: the target is empty.
    """
    golds = targets(sample.target)
    found = find_answer(sample, extract_math)
    if found is None:
        for gold in golds:
            _gold(gold)
        return verdict_on("math_match", sample, False)
    try:
        correct = any(math_equal(found.text, gold, ordered=ordered, timeout=timeout) for gold in golds)
    except MathTimeoutError as error:
        verdict: dict[str, Any] = verdict_on("math_match", sample, False, found=found, error=str(error))
        return verdict | {"outcome": "unscored", "failure_category": "unscorable"}
    return verdict_on("math_match", sample, correct, found=found)
