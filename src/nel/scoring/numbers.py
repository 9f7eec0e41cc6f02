r"""Numbers in text, as exact fractions.

`$1,080.50`, `1 080`, `1,00,000`, `−5`, `３`, `৩`, `3/4`, `2 1/2`, `2½`,
`\frac{1}{2}`, `1e3`, `1.5 × 10^3`, `eighteen`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from nel.scoring.text import GLUED, plain_forms

_MAX_DIGITS = 400  # longer runs of digits are not numbers that anybody answers, and are slow to convert
_MAX_WORDS = 40
_WINDOW = 4096  # enough of a reply's end to hold its last numbers, most of the time

# What may stand between groups of three digits beside the locale's own separator.
_SPACER = r"(?:[ \u00a0\u2009\u202f'\u2019]|\\[,!;]|\{,\})"
_CURRENCY = "$€£¥₹₽₩₪₺₫₦฿৳"
# A sign counts unless it follows a word, a number or a bracket: there it is a dash or a subtraction.
_BEFORE = re.compile(rf"(?<!{GLUED})(?<![_)\]}}%])(?<!\d\s)([-+]?)(?:\\?[{_CURRENCY}]\s?)?([-+]?)$")
_MAY_SIGN = frozenset(f"-+{_CURRENCY} ")
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"


class Number(NamedTuple):
    """A number of a text: its value (None where the digits have no clear reading, as `1,5`), and where it stands."""

    value: Fraction | None
    start: int
    end: int


@cache
def _token(decimal: str) -> re.Pattern[str]:
    group = "," if decimal == "." else "."
    mark = re.escape(decimal)
    return re.compile(
        rf"""
        (?=[\d.,\\{_VULGAR}])(?<!{GLUED})(?<!\d[.,])
        (?:
            (?P<many>\d{{1,9}})?\s?\\[dt]?frac\s?(?:\{{\s?(?P<above>\d{{1,9}})\s?\}}|(?P<top>\d))
                \s?(?:\{{\s?(?P<below>\d{{1,9}})\s?\}}|(?P<bottom>\d))
          | (?P<count>\d{{1,9}})?[ ]?(?P<vulgar>[{_VULGAR}])
          | (?P<whole>\d{{1,4}})[ ](?P<part>\d{{1,4}}/\d{{1,4}})(?![\d/])
          | (?<!\d/)(?P<ratio>\d{{1,9}}/\d{{1,9}})(?![\d/])
          | (?P<body>
                \d{{1,3}}(?:{_SPACER}\d{{3}})+(?!\d)(?:{mark}\d+)?
              | \d(?:[\d{mark}{group}]*\d)?
              | (?<!\.){mark}\d+
            )
            (?:[eE](?P<exponent>[-+]?\d{{1,3}})(?!\w)
              |\s?(?:×|x|\*|\\times|\\cdot)\s?10\s?\^\s?\{{?(?P<power>-?\d{{1,3}})\}}?)?
        )
        """,
        re.VERBOSE,
    )


@cache
def _plain(decimal: str) -> re.Pattern[str]:
    group = "," if decimal == "." else r"\."
    mark = re.escape(decimal)
    return re.compile(rf"(?:\d+|\d{{1,3}}(?:{group}\d{{3}})+|\d{{1,2}}(?:{group}\d\d)+{group}\d{{3}})?(?:{mark}\d+)?")


def numbers_in(text: str, *, decimal: str = ".") -> Iterator[Number]:
    """The numbers of `text` from left to right, with their signs.

    A minus between two numbers or after a word is a dash (`5-10` is 5 and 10). Digits glued to a letter before them
    (`H2O`) are no number. `decimal` is the decimal mark; the other of `.` and `,` groups thousands.
    """
    text = plain_forms(text)
    return (_number(text, match, decimal) for match in _token(decimal).finditer(text))


def last_numbers(text: str, count: int, *, decimal: str = ".", words: bool = False) -> list[Number]:
    """The last `count` numbers of `text`, in order; with `words` its number words count too.

    `text` has plain forms (`nel.scoring.text.plain_forms`).
    """
    found = [_number(text, match, decimal) for match in _last_matches(_token(decimal), text, count)]
    if words:
        found += [_phrase(match) for match in _last_matches(_PHRASE, text, count)]
        found.sort(key=lambda number: number.start)
    return found[-count:]


def _last_matches(pattern: re.Pattern[str], text: str, count: int) -> list[re.Match[str]]:
    # A match that the window cuts is the window's first, so it is none of the last `count`.
    if len(text) <= _WINDOW:
        return list(pattern.finditer(text))[-count:]
    window = list(pattern.finditer(text, len(text) - _WINDOW))
    if len(window) <= count:
        return list(deque(pattern.finditer(text), maxlen=count))
    return window[-count:]


def _number(text: str, match: re.Match[str], decimal: str) -> Number:
    start = match.start()
    value = _value(match, decimal)
    if start == 0 or text[start - 1] not in _MAY_SIGN:
        return Number(value, start, match.end())
    before = _BEFORE.search(text[max(0, start - 8) : start])
    if before is not None:
        start -= len(before.group())
        if value is not None and "-" in before.groups():
            value = -value
    return Number(value, start, match.end())


def _value(match: re.Match[str], decimal: str) -> Fraction | None:
    body = match["body"]
    if body is None:
        return _fraction(match)
    if match["exponent"] or match["power"]:
        exponent = int(match["exponent"] or match["power"])
    else:
        exponent = 0
        if len(body) <= _MAX_DIGITS and body.isdigit():
            return _whole(body)
    body = re.sub(_SPACER, "", body)
    if len(body) > _MAX_DIGITS or not _plain(decimal).fullmatch(body):
        return None
    digits = body.replace("," if decimal == "." else ".", "").replace(decimal, ".")
    return Fraction(digits) * Fraction(10) ** exponent


@lru_cache(maxsize=4096)
def _whole(digits: str) -> Fraction:
    return Fraction(int(digits))


def _fraction(match: re.Match[str]) -> Fraction | None:
    if match["vulgar"]:
        numerator, _, denominator = unicodedata.normalize("NFKC", match["vulgar"]).partition("\u2044")
        return Fraction(int(numerator), int(denominator)) + int(match["count"] or 0)
    if ratio := match["ratio"] or match["part"]:
        numerator, _, denominator = ratio.partition("/")
        whole = match["whole"]
    else:
        numerator, denominator = match["above"] or match["top"], match["below"] or match["bottom"]
        whole = match["many"]
    return Fraction(int(numerator), int(denominator)) + int(whole or 0) if int(denominator) else None


def parse_number(text: str, *, decimal: str = ".", words: bool = False) -> Fraction | None:
    """The value of a text that holds exactly one number, whatever its units (`$18.00`, `18 apples`); else None."""
    found = last_numbers(plain_forms(text), 2, decimal=decimal, words=words)
    return found[0].value if len(found) == 1 else None


_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORD = "|".join((*_UNITS, "hundred", *_SCALES))
_PHRASE = re.compile(
    rf"\b(?=[bzotfsenhm])(?:minus\s+|negative\s+)?(?:{_WORD})(?:(?:\s+and\s+|\s*-\s*|\s+)(?:{_WORD}))*\b", re.IGNORECASE
)


def _phrase(match: re.Match[str]) -> Number:
    phrase = re.findall(r"[a-z]+", match.group().lower())
    return Number(_phrase_value(phrase) if len(phrase) < _MAX_WORDS else None, match.start(), match.end())


def _phrase_value(phrase: list[str]) -> Fraction:
    total = current = 0
    for word in phrase:
        if word in _UNITS:
            current += _UNITS[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in _SCALES:
            total += max(current, 1) * _SCALES[word]
            current = 0
    value = total + current
    return Fraction(-value if phrase[0] in {"minus", "negative"} else value)
