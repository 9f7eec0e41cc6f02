r"""Where in a reply the answer stands: extraction, apart from judging it.

A reply states its answer explicitly (`\boxed{}`, `####`, `<answer>`, "the answer is ...", `Answer: ...`) or it does
not; the last explicit statement wins, since a model may correct itself. Every extractor is linear in the reply.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from nel.scoring.numbers import Number, last_numbers
from nel.scoring.text import is_negated, plain_minus, undecorate

_MAX_STATEMENTS = 32  # looked at from the end; a reply with more is a loop
_MAX_LENGTH = 400  # characters of one statement


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was taken for the answer, where it stands in the reply, and by which rule."""

    text: str
    start: int
    end: int
    rule: str
    value: Fraction | None = None
    """The number, where a number was looked for."""
    source: str = "reply"
    """`reply`, or `reasoning` where the final text holds no answer."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A place where a reply says what its answer is: `text[start:end]` is what is said."""

    start: int
    end: int
    rule: str


_BRACES = re.compile(r"\\f?boxed\s*(\{)|(?<!\\)[{}]")
_TAG = re.compile(r"<answer>", re.IGNORECASE)
_TAG_END = re.compile(r"</answer>", re.IGNORECASE)
# `#### 18` ends a worked solution; `#### Step 2` and `#### 2. Add` are headings.
_HASHES = re.compile(
    r"(?m)(?<!#)####(?!#)[*_ \t]*+(?!\d{1,2}[.)]\s+[A-Za-z*])(?=\\?[$€£¥₹]?\s?[-+−]?[.\d]|[A-Z][.)]?[ \t]*$|\$?\\boxed)"
)
_ANSWER = re.compile(r"\banswers?\b", re.IGNORECASE)
_MARKER = re.compile(
    r"""
    \banswers?\b(?:\s+(?:choice|option|letter))?(?:\s+(?:to|for)\s[^.:!?\n]{1,80}?)?(?:\s*\([^()\n]{1,40}\))?[*_ \t]*
    (?:(?:is|are|was|would\s+be|should\s+be|must\s+be|will\s+be|equals)\b[*_ \t]*(?::[*_]*)?|[:：=→]|[-=]>)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_GAP = re.compile(r"[\s*_`]{0,200}")
_SENTENCE_END = re.compile(r"(\S*[.!?][*_`\"'”’)\]$}]*)(?=\s)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|St|Dr|Mr|Mrs|Ms|Jr|Sr|Prof|Gen|Col|Lt|Mt|Ft|No|vs|Inc|Ltd|Co|approx|e\.g|i\.e|etc)|\b\w\.\w)\.$"
)


def statements(text: str) -> list[Statement]:
    """The reply's explicit answers, the last first; one of words or hashes reaches to the end of its line at most."""
    found = [
        *_boxes(text),
        *_tags(text),
        *_lines(text, _HASHES, _HASHES, "hashes"),
        *_lines(text, _ANSWER, _MARKER, "answer"),
    ]
    found.sort(key=lambda statement: statement.start, reverse=True)
    return found[:_MAX_STATEMENTS]


def _boxes(text: str) -> Iterable[Statement]:
    found: deque[Statement] = deque(maxlen=_MAX_STATEMENTS)
    open_braces: list[int] = []  # where a box's content begins, -1 for any other brace
    for match in _BRACES.finditer(text) if "boxed" in text else ():
        if match.group(1):
            open_braces.append(match.end())
        elif match.group() == "{":
            open_braces.append(-1)
        elif open_braces and (start := open_braces.pop()) >= 0:
            found.append(Statement(start, min(match.start(), start + _MAX_LENGTH), "boxed"))
    return found


def _tags(text: str) -> Iterator[Statement]:
    for match in deque(_TAG.finditer(text), maxlen=_MAX_STATEMENTS):
        limit = min(len(text), match.end() + _MAX_LENGTH)
        end = _TAG_END.search(text, match.end(), limit)
        yield Statement(match.end(), end.start() if end else limit, "tag")


def _lines(text: str, anchor: re.Pattern[str], marker: re.Pattern[str], rule: str) -> Iterator[Statement]:
    for place in deque(anchor.finditer(text), maxlen=8 * _MAX_STATEMENTS):
        match = marker.match(text, place.start())
        if match is None:
            continue
        gap = _GAP.match(text, match.end())
        start = gap.end() if gap else match.end()
        limit = min(len(text), start + _MAX_LENGTH)
        line_end = text.find("\n", start, limit)
        yield Statement(start, line_end if line_end >= 0 else limit, rule)


def first_sentence(text: str) -> str:
    """`text` up to the end of its first sentence; the point of `St. Louis`, `J. Doe` or `3.5` is not one."""
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(match.group(1)):
            return text[: match.end()]
    return text


def extract_number(text: str, *, decimal: str = ".", words: bool = False) -> Extraction | None:
    """The number that a reply gives as its answer: the last explicit one, else the last number of the text.

    In an equation the result is taken (`16 - 3 - 4 = 9`), in "not 5 but 10" the 10.
    """
    text = plain_minus(text)
    for statement in statements(text):
        said = first_sentence(text[statement.start : statement.end])
        number = _stated_number(said, decimal=decimal, words=words)
        if number is not None:
            return _extraction(text, number, statement.rule, offset=statement.start)
    last = last_numbers(text, 8, decimal=decimal, words=words)
    for number in reversed(last):
        if not is_negated(text, number.start):
            return _extraction(text, number, "last number")
    return None


def _stated_number(said: str, *, decimal: str, words: bool) -> Number | None:
    numbers = [
        number
        for number in last_numbers(said, _MAX_LENGTH, decimal=decimal, words=words)
        if not is_negated(said, number.start)
    ]
    results = [number for number in numbers if number.start > said.rfind("=")]
    if "=" in said and len(results) == 1:
        return results[0]
    return numbers[0] if numbers else None


def _extraction(text: str, number: Number, rule: str, *, offset: int = 0) -> Extraction:
    start, end = number.start + offset, number.end + offset
    return Extraction(text[start:end], start, end, rule, number.value)


def extract_line(text: str) -> Extraction | None:
    """The text that a reply gives as its answer: the last explicit one, else the last line that is not blank."""
    for statement in statements(text):
        said = text[statement.start : statement.end]
        if statement.rule in {"answer", "hashes"}:
            said = first_sentence(said)
        if answer := undecorate(said):
            return Extraction(answer, statement.start, statement.start + len(said), statement.rule)
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    answer = undecorate(stripped[start:])
    return Extraction(answer, start, len(stripped), "last line") if answer else None


def extract_pattern(text: str, pattern: re.Pattern[str]) -> Extraction | None:
    """The last match of a benchmark's own pattern: its first group, or all of it where it has none."""
    matches = deque(pattern.finditer(text), maxlen=1)
    if not matches:
        return None
    last = matches[0]
    group = 1 if pattern.groups and last.group(1) is not None else 0
    answer = undecorate(last.group(group))
    return Extraction(answer, last.start(group), last.end(group), "pattern") if answer else None
