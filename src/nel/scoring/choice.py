"""Which option a reply chose: extraction for multiple choice.

Rules from the most to the least explicit; within one rule the last statement wins. A letter inside a word is never an
option, nor is the article in "A car". A reply that names two options for one answer ("A or B") has chosen none.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from nel.scoring.extract import Extraction, Statement, first_sentence, statements
from nel.scoring.text import GLUED, comparable, is_negated, plain_forms, token_starts, tokens, unify

_TAIL = 20_000  # a reply that states no answer is searched this far back from its end
_OPEN = r"[\s*_`$\"'“‘(\[{]{0,20}(?:\\(?:text|textbf|mathrm|mathbf|boxed)\s*\{[\s*_(]{0,8})?"
_ALONE = rf"(?!{GLUED}|['’]{GLUED}|[-–][^\W\d_])"
_WORD = "option|choice|letter|选项|選項|選択肢|вариант|опция|opción|opcion|Buchstabe|lettre|chaguo|বিকল্প|ตัวเลือก|ข้อ"


class _Rules:
    """The patterns for one set of letters."""

    def __init__(self, letters: str) -> None:
        upper = re.escape(letters)
        either = re.escape(letters + letters.lower())
        option = rf"(?<!{GLUED})(?<!{GLUED}[-–])(?P<letter>[{upper}]){_ALONE}"
        self.leading = re.compile(rf"(?:(?:{_WORD})\s*)?{_OPEN}(?P<letter>[{either}]){_ALONE}", re.IGNORECASE)
        self.whole = re.compile(rf"{_OPEN}(?P<letter>[{either}])[\s*_`$\"'”’)\]}}.:,!]{{0,20}}")
        self.standing = re.compile(option)
        self.second = re.compile(
            rf"[\s*_)\]$}}]{{0,8}}(?:or|and|and/or|/|,|&)\s*[*_(\[$]{{0,4}}(?P<letter>[{upper}]){_ALONE}"
            r"(?!\s+(?:is|was|are|isn't)\b)"
        )
        self.judged = re.compile(
            rf"{option}[*_)\]$}}.:]{{0,6}}\s+(?:is|seems|looks|must\s+be|would\s+be)\s+(?:(?:the|most|clearly|likely)\s+)*"
            r"(?:right|correct|best|true|answer|accurate|appropriate)\b"
        )
        self.picked = re.compile(
            r"\b(?i:(?:correct|right|best)\s+(?:option|choice|one|statement)\s+is"
            r"|(?:(?:I|we)(?:'d|\s+would|\s+will)?\s+)?(?:choose|select|pick|go\s+with)\b)"
            rf"{_OPEN}(?i:(?:option|choice)\s+)?{_OPEN}{option}"
        )
        self.named = re.compile(rf"\b(?i:option|choice){_OPEN}{option}")
        self.bare_line = re.compile(rf"(?m)^[ \t*_`(\[]{{0,12}}(?P<letter>[{upper}])[ \t*_`)\].]{{0,12}}$")
        self.line = re.compile(rf"(?m)^[ \t*_`(\[]{{0,12}}(?P<letter>[{upper}])[*_`]{{0,4}}[).:\]]")
        self.marked = re.compile(rf"(?:\*\*|\(|\[)\s?\(?(?P<letter>[{upper}])\)?[.:]?(?:\*\*|\)|\])")


@cache
def _rules(letters: str) -> _Rules:
    if not letters.isalpha() or letters != letters.upper() or len(set(letters)) != len(letters):
        raise ValueError(f"letters={letters!r}: give the option letters once each, in capitals, e.g. 'ABCD'")
    return _Rules(letters)


def extract_choice(
    text: str, *, letters: str = "ABCD", choices: Sequence[str] | None = None, stated: bool = False
) -> Extraction | None:
    """The option that a reply chose, as its capital letter.

    Args:
        text: the reply.
        letters: the options' letters, in order.
        choices: the options' texts, in order; with them a reply that names an option by its text is understood.
        stated: take an explicit statement only.
    """
    rules = _rules(letters)
    text = plain_forms(text)
    for statement in statements(text):
        leading = rules.leading.match(text, statement.start, statement.end)
        if leading and _is_option(text, leading):
            hedged = rules.second.match(text, leading.end())
            return None if hedged else _taken(leading, statement.rule)
        if standing := _standing(rules, text, statement):
            return _taken(standing, statement.rule)
        if choices and (letter := _by_text(text[statement.start : statement.end], letters, choices)):
            return Extraction(letter, statement.start, statement.end, f"{statement.rule}, text")
    if stated:
        return None
    base = max(0, len(text) - _TAIL)
    unstated = _unstated(rules, text[base:], letters, choices)
    return unstated and replace(unstated, start=unstated.start + base, end=unstated.end + base)


def _standing(rules: _Rules, text: str, statement: Statement) -> re.Match[str] | None:
    """The one option whose capital stands alone in a statement's first sentence ("Based on the text, C")."""
    end = statement.start + len(first_sentence(text[statement.start : statement.end]))
    found = [
        match
        for match in rules.standing.finditer(text, statement.start, end)
        if _is_option(text, match) and not is_negated(text, match.start())
    ]
    return found[-1] if len({match["letter"] for match in found}) == 1 else None


def _unstated(rules: _Rules, text: str, letters: str, choices: Sequence[str] | None) -> Extraction | None:
    if whole := rules.whole.fullmatch(text.strip()):
        start = len(text) - len(text.lstrip()) + whole.start("letter")
        return Extraction(whole["letter"].upper(), start, start + 1, "whole reply")
    for pattern, rule in ((rules.picked, "picked"), (rules.judged, "judged"), (rules.named, "named")):
        for match in reversed(list(pattern.finditer(text))):
            if _is_affirmed(text, match):
                return _taken(match, rule)
    for match in deque(rules.bare_line.finditer(text), maxlen=1):
        return _taken(match, "line")
    for pattern, rule in ((rules.line, "line"), (rules.marked, "marked")):
        if only := _only(text, pattern):
            return _taken(only, rule)
    if choices and (letter := _by_text(text, letters, choices)):
        return Extraction(letter, 0, len(text), "text")
    return None


def _only(text: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """A match of the pattern, if all that are not rejected name one option."""
    found: re.Match[str] | None = None
    for match in pattern.finditer(text):
        if found is not None and match["letter"] == found["letter"]:
            continue
        if _is_affirmed(text, match):
            if found is not None:
                return None
            found = match
    return found


_REJECTED = re.compile(
    r"[*_)\]$}.:,]{0,6}\s*(?:(?:is|was|are|seems)\s+(?:clearly\s+)?(?:not|wrong|incorrect|false|out|unlikely)"
    r"|isn['’]t|wasn['’]t|(?:cannot|can['’]t|would\s+not)\s+be)\b",
    re.IGNORECASE,
)


def _is_affirmed(text: str, match: re.Match[str]) -> bool:
    return not is_negated(text, match.start("letter")) and not _REJECTED.match(text, match.end("letter"))


_ARTICLE = re.compile(r"\s+(?!(?:because|since|as|is|for|due|and|or|but|with|if|in)\b)[a-z]")


def _is_option(text: str, match: re.Match[str]) -> bool:
    """Not the article of "A car" or the pronoun of "I think"; a small letter only where no word follows."""
    letter, end = match["letter"], match.end("letter")
    if letter.islower():
        return not re.match(r"[ \t]+[^\W\d_]", text[end : end + 4])
    return letter not in "AI" or _ARTICLE.match(text, end) is None


def _taken(match: re.Match[str], rule: str) -> Extraction:
    return Extraction(match["letter"].upper(), match.start("letter"), match.end("letter"), rule)


def _by_text(text: str, letters: str, choices: Sequence[str]) -> str | None:
    """The one option whose text the reply names as whole words, without negating it."""
    unified = unify(text)
    spoken = tokens(unified)
    options = [comparable(choice) for choice in choices[: len(letters)]]
    beginnings = {option[0] for option in options if option}
    starts: list[int] = []
    named: set[int] = set()
    position = 0
    while position < len(spoken) and len(named) < 2:
        if spoken[position] not in beginnings:
            position += 1
            continue
        here = [
            index
            for index, option in enumerate(options)
            if option and spoken[position : position + len(option)] == option
        ]
        if not here:
            position += 1
            continue
        longest = max(here, key=lambda index: len(options[index]))  # "New York" in "New York City" is not named
        starts = starts or token_starts(unified)
        if longest not in named and not is_negated(unified, starts[position]):
            named.add(longest)
        position += len(options[longest])
    return letters[named.pop()] if len(named) == 1 else None
