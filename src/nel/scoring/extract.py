r"""Where in a reply the answer stands: extraction, apart from judging it.

A reply states its answer explicitly (`\boxed{}`, `####`, `<answer>`, "the answer is ...", `Answer: ...`, in eleven
languages) or it does not; the last explicit statement wins, since a model may correct itself. Every extractor is linear
in the reply. An answer that only the reasoning states is used, and flagged.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from nel.scoring.numbers import Number, last_numbers
from nel.scoring.sample import ScorerInput
from nel.scoring.text import is_negated, plain_forms, undecorate

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


class Statement(NamedTuple):
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
_ANSWER = re.compile(
    r"\b(?:answers?|antwort|lösung|ergebnis|r[ée]ponse|respuesta|jibu)\b|\bответ(?:ом)?\b"
    r"|答案|答え|解答|回答|คำตอบ|উত্তর|సమాధానం|జవాబు",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"""
    answers?(?:\s+(?:choice|option|letter))?(?:\s+(?:to|for)\s[^.:!?\n]{1,80}?)?(?:\s*\([^()\n]{1,40}\))?[*_ \t]*
    (?:(?:is|are|was|would\s+be|should\s+be|must\s+be|will\s+be|equals)\b[*_ \t]*(?::[*_]*)?|[:：=→]|[-=]>)
  | (?:antwort|lösung|ergebnis|r[ée]ponse|respuesta|jibu|ответ(?:ом)?)
    (?:\s+(?:finale?|correcte?|correcta|richtige|sahihi|la\s+mwisho|lako|auf\s[^.:!?\n]{1,80}?|à\s[^.:!?\n]{1,80}?
        |a\s+la\s[^.:!?\n]{1,80}?|на\s[^.:!?\n]{1,80}?))?(?:\s*\([^()\n]{1,40}\))?[*_ \t\u00a0\u202f]*
    (?:(?:ist|lautet|beträgt|wäre|est|es|sería|serait|ni|равен|равно|это|является|будет)\b
        [*_ \t\u00a0\u202f]*(?::[*_]*)?
        |[:：=→]|[—–](?!\d)|[-=]>)
  | (?:答案|答え|解答|回答|คำตอบ|উত্তর(?:টি)?|సమాధానం|జవాబు)
    (?:\s*[（(][^()（）\n]{1,40}[)）])?[*_ \t]*
    (?:(?:应该是|應該是|就是|是|应为|為|为|は|คือ|হবে|হলো|হল|হচ্ছে)[*_ \t]*(?:[:：][*_]*)?
        |[:：=→]|[—–-](?!\d)|(?=[*$\\(]{0,6}(?:[-−–]?\d|[A-Z](?![A-Za-z]))))
    """,
    re.VERBOSE | re.IGNORECASE,
)
# `**Final answer**` or `## Answer` on a line of its own: the next line is what it announces.
_HEADING = re.compile(r"(?:\#{1,6}[ \t]*[*_]{0,3}|[*_]{1,3})(?:(?:the|my|final|correct)[ \t]+)*\Z", re.IGNORECASE)
_HEADING_END = re.compile(r"[*_ \t]*\n")
_GAP = re.compile(r"[\s*_`]{0,200}")
_SENTENCE_END = re.compile(r"[.!?][*_`\"'”’)\]$}]*(?=\s)|[。！？।](?=.)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|St|Dr|Mr|Mrs|Ms|Jr|Sr|Prof|Gen|Col|Lt|Mt|Ft|No|vs|Inc|Ltd|Co|approx|e\.g|i\.e|etc)|\b\w\.\w)\.$"
)


def statements(text: str) -> list[Statement]:
    """The reply's explicit answers, the last first; one of words or hashes reaches to the end of its line at most."""
    found = [
        *_boxes(text),
        *_tags(text),
        *_hashes(text),
        *_answers(text),
    ]
    found.sort(reverse=True)
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
    for match in deque(_TAG.finditer(text), maxlen=_MAX_STATEMENTS) if "<" in text else ():
        limit = min(len(text), match.end() + _MAX_LENGTH)
        end = _TAG_END.search(text, match.end(), limit)
        yield Statement(match.end(), end.start() if end else limit, "tag")


def _hashes(text: str) -> Iterator[Statement]:
    for place in deque(_HASHES.finditer(text), maxlen=_MAX_STATEMENTS) if "####" in text else ():
        yield _rest_of_line(text, place.end(), "hashes")


def _answers(text: str) -> Iterator[Statement]:
    for place in deque(_ANSWER.finditer(text), maxlen=8 * _MAX_STATEMENTS):
        if match := _MARKER.match(text, place.start()):
            yield _rest_of_line(text, match.end(), "answer")
        elif end := _HEADING_END.match(text, place.end()):
            line = text[max(text.rfind("\n", 0, place.start()) + 1, place.start() - _MAX_HEADING) : place.start()]
            if _HEADING.match(line.lstrip()):
                yield _rest_of_line(text, end.end(), "answer")


_MAX_HEADING = 40


def _rest_of_line(text: str, start: int, rule: str) -> Statement:
    """What follows, on the same line or on the next that is not blank."""
    gap = _GAP.match(text, start)
    start = gap.end() if gap else start
    limit = min(len(text), start + _MAX_LENGTH)
    line_end = text.find("\n", start, limit)
    return Statement(start, line_end if line_end >= 0 else limit, rule)


def first_sentence(text: str) -> str:
    """`text` up to the end of its first sentence; the point of `St. Louis`, `J. Doe` or `3.5` is not one."""
    for match in _SENTENCE_END.finditer(text):
        if text[match.start()] != "." or not _ABBREVIATION.search(text[max(0, match.start() - 40) : match.start() + 1]):
            return text[: match.end()]
    return text


def find_answer(sample: ScorerInput, extract: Callable[..., Extraction | None], **options: Any) -> Extraction | None:
    """What `extract` finds in the final text, else an explicit statement in the reasoning, flagged as such.

    Reasoning is what the reply carries apart from its text, or what a `</think>` in the text ends.
    """
    response = sample.response
    reasoning, begin = "", 0
    if "<think>" in response or "</think>" in response:
        at = response.rfind("</think>")
        begin = at + len("</think>") if at >= 0 else len(response)
        reasoning = response[: at if at >= 0 else begin]
    found = extract(response[begin:] if begin else response, **options)
    if found is not None:
        return replace(found, start=found.start + begin, end=found.end + begin) if begin else found
    if sample.model_response is not None:
        reasoning = sample.model_response.reasoning_content or reasoning
    stated = extract(reasoning, stated=True, **options) if reasoning else None
    return stated and replace(stated, source="reasoning")


def extract_number(text: str, *, decimal: str = ".", words: bool = False, stated: bool = False) -> Extraction | None:
    """The number that a reply gives as its answer: the last explicit one, else the last number of the text.

    In an equation the result is taken (`16 - 3 - 4 = 9`), in "not 5 but 10" the 10. With `stated` an explicit answer
    alone is taken.
    """
    text = plain_forms(text)
    for statement in statements(text):
        said = first_sentence(text[statement.start : statement.end])
        number = _stated_number(said, decimal=decimal, words=words)
        if number is not None:
            return _extraction(text, number, statement.rule, offset=statement.start)
    if stated:
        return None
    last = last_numbers(text, 8, decimal=decimal, words=words)
    for number in reversed(last):
        if not is_negated(text, number.start):
            return _extraction(text, number, "last number")
    return None


def _stated_number(said: str, *, decimal: str, words: bool) -> Number | None:
    numbers = last_numbers(said, _MAX_LENGTH, decimal=decimal, words=words)
    if "=" in said:
        at = said.rfind("=")
        results = [number for number in numbers if number.start > at and not is_negated(said, number.start)]
        if len(results) == 1:
            return results[0]
    return next((number for number in numbers if not is_negated(said, number.start)), None)


def _extraction(text: str, number: Number, rule: str, *, offset: int = 0) -> Extraction:
    start, end = number.start + offset, number.end + offset
    return Extraction(text[start:end], start, end, rule, number.value)


def extract_line(text: str, *, stated: bool = False) -> Extraction | None:
    """The text that a reply gives as its answer: the last explicit one, else the last line that is not blank.

    With `stated` an explicit answer alone is taken.
    """
    for statement in statements(text):
        said = text[statement.start : statement.end]
        if statement.rule in {"answer", "hashes"}:
            said = first_sentence(said)
        if answer := undecorate(said):
            return Extraction(answer, statement.start, statement.start + len(said), statement.rule)
    if stated:
        return None
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    answer = undecorate(stripped[start:])
    return Extraction(answer, start, len(stripped), "last line") if answer else None


def first_line(text: str) -> Extraction | None:
    """The first line that is not blank, for replies that should be the answer alone."""
    start = len(text) - len(text.lstrip("\r\n\t *_`#"))
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    answer = undecorate(text[start:end])
    return Extraction(answer, start, end, "first line") if answer else None


def extract_pattern(text: str, pattern: re.Pattern[str], *, stated: bool = False) -> Extraction | None:
    """The last match of a benchmark's own pattern: its first group, or all of it where it has none.

    A match is an explicit statement, so `stated` changes nothing.
    """
    del stated
    matches = deque(pattern.finditer(text), maxlen=1)
    if not matches:
        return None
    last = matches[0]
    group = 1 if pattern.groups and last.group(1) is not None else 0
    answer = undecorate(last.group(group))
    return Extraction(answer, last.start(group), last.end(group), "pattern") if answer else None
