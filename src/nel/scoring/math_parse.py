r"""A mathematical answer as a value: numbers, sets, tuples, intervals, matrices, equations, words; LaTeX or plain text.

What exact arithmetic (`nel.scoring.math_value`) covers is read here, without a computer algebra system and without
ever executing text; the rest stays `Opaque`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial

from nel.scoring.math_value import (
    BeyondError,
    Exact,
    add,
    atom,
    divide,
    exact,
    multiply,
    negate,
    power,
    square_root,
)
from nel.scoring.text import plain_forms, undecorate

MAX_LENGTH = 2_000
"""Characters of an answer that is read at all."""
_MAX_DEPTH = 40
_MAX_ITEMS = 200
_MAX_DIGITS = 1_000


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or an expression with its unit, if one is known."""

    value: Exact
    text: str
    percent: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """An answer in words, or a letter of a choice."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """Several values: a list (no brackets), a set `{}`, a tuple or interval (`()`, `[)`), a ratio `:`, a matrix."""

    brackets: str
    members: tuple[Answer, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Equation:
    """`left = right`."""

    left: Answer
    right: Answer
    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """LaTeX that is not read here."""

    text: str


Answer = Quantity | Words | Items | Equation | Opaque

_SPACING = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|big|Big|bigl|bigr|Bigl|Bigr|limits|quad|qquad)(?![a-zA-Z])|~"
)
_THIN = re.compile(r"(?<=\d)(?:\\[,!;:]|\{,\}|\\ )(?=\d{3}(?!\d))")
_GROUPED_SPACES = re.compile(r"\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\d)")
_TEXT = re.compile(r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|mathit|operatorname|rm|bf)\*?\s*\{([^{}]*)\}")
_JOINED = re.compile(r"(?:,?\s*\\(?:text|mbox)\{\s*(?:and|or)\s*\}|,?\s+(?:and|or)\s+(?=[-\d\\x-z$({\[]))\s*")
_WORDS = {
    r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\cdot": "*", r"\times": "*", r"\ast": "*",
    r"\div": "/", r"\leq": "≤", r"\le": "≤", r"\leqslant": "≤", r"\geq": "≥", r"\ge": "≥", r"\geqslant": "≥",
    r"\lt": "<", r"\gt": ">", r"\cup": "∪", r"\in": "∈", r"\pm": "±", r"\infty": "∞", r"\pi": "π", r"\lbrace": "⦃",
    r"\rbrace": "⦄", r"\ldots": "…", r"\dots": "…", r"\cdots": "…", r"\circ": "°", r"\degree": "°", r"\lvert": "|",
    r"\rvert": "|", r"\mid": "|", r"\colon": ":", r"\to": "→", r"\choose": "choose", r"\emptyset": "∅",
    r"\varnothing": "∅", r"\sim": "~",
}  # fmt: skip
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "∣": "|", "−": "-"})
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_VULGAR = re.compile(r"(\d*)\s*([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_PLAIN_WORDS = re.compile(r"\b(sqrt|pi|inf|infinity|infty)\b")
_DEGREE = re.compile(r"\^?\s*\{?\s*°\s*\}?")
_MIXED = re.compile(r"(?<![\d.^])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d.])")
_FUNCTIONS = (
    "sin|cos|tan|cot|sec|csc|log|ln|exp|arcsin|arccos|arctan|sinh|cosh|tanh|max|min|gcd|lcm|mod|det|lim|sum|int"
)
_FUNCTION = re.compile(rf"(?<![A-Za-z\\])(?:{_FUNCTIONS})(?![A-Za-z])|\\(?!frac|sqrt|binom)[A-Za-z]")
_UNITS = "cm|mm|km|kg|mg|ft|in|lb|lbs|oz|mi|ml|hr|hrs|min|mph|sq|cu|yd|Hz|kHz|cc"
_UNIT_WORDS = re.compile(
    rf"(?<=[\d)}}%])\s*((?:(?!(?:{_FUNCTIONS}|and|or|choose)\b)(?:[A-Za-z]{{3,}}|{_UNITS})(?:\^\{{?\d\}}?)?[\s/.-]*)+)$"
)
_ALL_WORDS = re.compile(r"(?!.*\b(?:sin|cos|tan|log|ln|exp)\b)[^\W\d_]+(?:[\s,.'’-]+[^\W\d_]+)*")
_NUMBER_GROUPS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")


def read_answer(text: str) -> Answer:
    """The value of an answer; `Opaque` where it is not read here."""
    if len(text) > MAX_LENGTH:
        return Opaque(text)
    cleaned, unit = _cleaned(text)
    try:
        return _read(cleaned, unit, 0)
    except (BeyondError, RecursionError):
        return Opaque(cleaned)


def _cleaned(text: str) -> tuple[str, str]:
    """The answer in one notation, and its unit."""
    text = plain_forms(undecorate(text)).strip(" ,;")
    text = _SPACING.sub("", text.replace("\\{", "⦃").replace("\\}", "⦄").replace("\\$", "").replace("\\%", "%"))
    text = text.replace("$", "").replace("**", "^")
    text = _THIN.sub("", _JOINED.sub(", ", text))
    unit = ""
    if (last := _last_text(text)) and last.start() > 0:
        unit, text = last.group(1).strip(), text[: last.start()].rstrip()
    text = _TEXT.sub(lambda match: match.group(1), text)
    text = re.sub(r"(?<!\\)\\[,!;: ]", " ", text)
    text = _COMMAND.sub(lambda match: _WORDS.get(match.group(), match.group()), text)
    text = _PLAIN_WORDS.sub(lambda match: {"sqrt": "\\sqrt", "pi": "π"}.get(match.group(), "∞"), text)
    text = _SUPERSCRIPTS.sub(lambda match: "^{" + unicodedata.normalize("NFKC", match.group()) + "}", text)
    text = _VULGAR.sub(_vulgar, text.translate(_SIGNS))
    text = _GROUPED_SPACES.sub(lambda match: re.sub(r"\s", "", match.group()), text)
    text = _MIXED.sub(r"(\1+\2/\3)", _DEGREE.sub("", text))
    text = text.replace("<=", "≤").replace(">=", "≥").replace("√", "\\sqrt").strip(" .,;")
    if (words := _UNIT_WORDS.search(text)) and not unit:
        unit, text = words.group(1).strip(), text[: words.start()].rstrip()
    return text, re.sub(r"[\s.{}^]+", "", unit)


def _last_text(text: str) -> re.Match[str] | None:
    r"""A trailing text as in `5 \\text{ cm}^2`: what stands before it is the value."""
    if not text.rstrip().endswith(("}", "2", "3")):
        return None
    last = None
    for last in _TEXT.finditer(text):  # noqa: B007 - the last one
        pass
    if last is None or not re.fullmatch(r"\s*(?:\^\s*\{?\s*[23]\s*\}?)?\s*", text[last.end() :]):
        return None
    return last if re.search(r"[\d)}%a-z]\s*$", text[: last.start()]) and len(last.group(1).strip()) > 1 else None


def _vulgar(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match.group(2)).partition("\u2044")
    return f"({match.group(1) or 0}+{above}/{below})"


def _read(text: str, unit: str, depth: int) -> Answer:
    if depth > _MAX_DEPTH or not text:
        raise BeyondError
    if _is_words(text):
        return Words(" ".join(text.split()).casefold())
    for reader in (_union, _plus_minus, _relation, _matrix, _list, _bracketed, _ratio):
        found = reader(text, depth)
        if found is not None:
            return found
    return _quantity(text, unit)


def _is_words(text: str) -> bool:
    return _ALL_WORDS.fullmatch(text) is not None and any(len(word) > 2 for word in re.findall(r"[^\W\d_]+", text))


def _quantity(text: str, unit: str = "") -> Answer:
    percent = text.endswith("%")
    try:
        return Quantity(evaluate(text.removesuffix("%")), text, percent, unit)
    except BeyondError:
        return Opaque(text)


def _split(text: str, separators: str) -> list[str]:
    """The parts of a text between separators outside brackets."""
    if not any(separator in text for separator in separators):
        return [text]
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "([{⦃":
            depth += 1
        elif character in ")]}⦄":
            depth -= 1
        elif depth == 0 and character in separators:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    if len(parts) > _MAX_ITEMS:
        raise BeyondError
    return parts


def _union(text: str, depth: int) -> Answer | None:
    parts = _split(text, "∪")
    if len(parts) == 1:
        return None
    return Items("∪", tuple(_read(part, "", depth + 1) for part in parts), text)


def _plus_minus(text: str, depth: int) -> Answer | None:
    if text.count("±") != 1 or "," in text:
        return None
    return Items("", tuple(_read(text.replace("±", sign).lstrip("+"), "", depth + 1) for sign in "+-"), text)


_RELATION = re.compile(r"[=<>≤≥∈]")


def _relation(text: str, depth: int) -> Answer | None:
    if not _RELATION.search(text) or (len(_split(text, ",;")) > 1 and not re.match(r"[A-Za-z]\w{0,3}\s*[=∈]", text)):
        return None
    signs = "".join(_RELATION.findall(text))
    parts = _split(text, "=<>≤≥∈")
    if len(parts) != len(signs) + 1 or "" in parts:
        return Opaque(text)
    if signs == "∈":
        return _read(parts[1], "", depth + 1)
    if signs == "=":
        return Equation(_read(parts[0], "", depth + 1), _read(parts[1], "", depth + 1), text)
    if set(signs) <= {"="}:  # a chain of equal terms ends in its result
        return _read(parts[-1], "", depth + 1)
    return _range(parts, signs, text) or Opaque(text)


_INFINITE = Quantity(atom("∞"), "∞")
_MINUS_INFINITE = Quantity(negate(atom("∞")), "-∞")


def _range(parts: list[str], signs: str, text: str) -> Answer | None:
    """`1 < x ≤ 3`, `x > 3` as an interval."""
    if set(signs) & {"=", "∈"} or len(parts) > 3:
        return None
    if set(signs) <= {">", "≥"}:
        parts, signs = parts[::-1], signs[::-1].translate(str.maketrans(">≥", "<≤"))
    if not set(signs) <= {"<", "≤"}:
        return None
    names = [bool(re.fullmatch(r"[A-Za-z]", part)) for part in parts]
    closed = {"<": "()", "≤": "[]"}
    if len(parts) == 3 and names == [False, True, False]:
        low, high = _quantity(parts[0]), _quantity(parts[2])
        return Items(closed[signs[0]][0] + closed[signs[1]][1], (low, high), text)
    if len(parts) == 2 and names == [True, False]:
        return Items("(" + closed[signs][1], (_MINUS_INFINITE, _quantity(parts[1])), text)
    if len(parts) == 2 and names == [False, True]:
        return Items(closed[signs][0] + ")", (_quantity(parts[0]), _INFINITE), text)
    return None


def _list(text: str, depth: int) -> Answer | None:
    if _NUMBER_GROUPS.fullmatch(text.lstrip("-+").removesuffix("%").strip()):
        return None
    parts = _split(text, ",;")
    if len(parts) == 1:
        return None
    members = tuple(_read(part, "", depth + 1) for part in _joined_groups(parts, text) if part)
    if all(isinstance(member, Items) and member.brackets in _INTERVALS for member in members) and _RELATION.search(
        text
    ):
        return Items("∪", members, text)
    return Items("", members, text)


_INTERVALS = frozenset({"()", "[]", "(]", "[)"})


def _joined_groups(parts: list[str], text: str) -> list[str]:
    """`1,000, 2,000` has two members: where some commas have a space after them, the others group digits."""
    if not re.search(r",\s", text) or not re.search(r"\d,\d{3}(?!\d)", text):
        return parts
    return [part.strip() for part in re.split(r",\s+|;", text)] if not re.search(r"[(\[{⦃]", text) else parts


def _bracketed(text: str, depth: int) -> Answer | None:
    if text[0] not in "([⦃{" or text[-1] not in ")]⦄}" or not _wraps(text):
        return None
    inside = text[1:-1].strip()
    brackets = "{}" if text[0] in "⦃{" else text[0] + text[-1]
    parts = _split(inside, ",;")
    if len(parts) == 1 and text[0] != "⦃":
        return _read(inside, "", depth + 1) if brackets in {"()", "{}"} else Opaque(text)
    if not inside:
        return Items("{}", (), text)
    members = tuple(_read(part, "", depth + 1) for part in _joined_groups(parts, inside))
    if brackets == "[]" and all(isinstance(member, Items) and member.brackets == "[]" for member in members):
        return Items("matrix", members, text)
    return Items(brackets, members, text)


def _wraps(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "([{⦃") - (character in ")]}⦄")
        if depth == 0:
            return index == len(text) - 1
    return False


_MATRIX = re.compile(r"\\begin\s*\{([pbB]?matrix|array)\}(?:\s*\{[clr|]+\})?(.*)\\end\s*\{\1\}", re.DOTALL)


def _matrix(text: str, depth: int) -> Answer | None:
    if "\\begin" not in text:
        return None
    match = _MATRIX.fullmatch(text)
    if match is None or "\\begin" in match.group(2):
        return Opaque(text)
    rows = [row.strip() for row in re.split(r"\\\\", match.group(2))]
    cells = [[cell.strip() for cell in row.split("&")] for row in rows if row]
    if not cells or sum(map(len, cells)) > _MAX_ITEMS:
        raise BeyondError
    members = [Items("[]", tuple(_read(cell, "", depth + 1) for cell in row), "&".join(row)) for row in cells]
    return Items("matrix", tuple(members), text)


def _ratio(text: str, depth: int) -> Answer | None:
    parts = _split(text, ":")
    if len(parts) == 1 or "" in parts:
        return None
    return Items(":", tuple(_read(part, "", depth + 1) for part in parts), text)


def evaluate(text: str) -> Exact:
    """The value of an expression; `BeyondError` where it is none that exact arithmetic covers."""
    if _NUMBER_GROUPS.fullmatch(text.strip().lstrip("-+")):
        text = text.replace(",", "")
    if _FUNCTION.search(text):
        raise BeyondError
    reader = _Expression(text)
    value = reader.sum(0)
    if reader.position != len(reader.items):
        raise BeyondError
    return value


_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\\[a-zA-Z]+)|(.))", re.DOTALL)


class _Expression:
    """A recursive descent over items."""

    def __init__(self, text: str) -> None:
        self.items = [number or command or sign for number, command, sign in _TOKEN.findall(text)]
        self.position = 0

    def peek(self) -> str:
        return self.items[self.position] if self.position < len(self.items) else ""

    def take(self, expected: str = "") -> str:
        item = self.peek()
        if not item or (expected and item != expected):
            raise BeyondError
        self.position += 1
        return item

    def sum(self, depth: int) -> Exact:
        if depth > _MAX_DEPTH:
            raise BeyondError
        value = self.term(depth)
        while self.peek() in {"+", "-"}:
            sign = self.take()
            term = self.term(depth)
            value = add(value, term if sign == "+" else negate(term))
        return value

    def term(self, depth: int) -> Exact:
        sign = 1
        while self.peek() in {"+", "-"}:
            sign = -sign if self.take() == "-" else sign
        value = self.raised(depth)
        while (item := self.peek()) and item not in "+-)}]":
            if item in {"*", "/"}:
                self.take()
                minus = self.peek() == "-" and self.take()
                factor = self.raised(depth)
                factor = negate(factor) if minus else factor
                value = multiply(value, factor) if item == "*" else divide(value, factor)
            elif item[0].isdigit() or item[0] == ".":
                raise BeyondError  # two numbers beside each other
            elif item == "\\frac" and self.items[self.position - 1].isdigit():
                value = self.mixed(value, depth)
            else:
                value = multiply(value, self.raised(depth))
        return value if sign > 0 else negate(value)

    def mixed(self, whole: Exact, depth: int) -> Exact:
        r"""`2\\frac{1}{2}` is two and a half, `2\\frac{x}{3}` a product."""
        part = self.raised(depth)
        value, fraction = whole.rational, part.rational
        if value is None or fraction is None or value.denominator != 1 or not 0 < fraction < 1:
            return multiply(whole, part)
        return add(whole, part)

    def raised(self, depth: int) -> Exact:
        value = self.primary(depth)
        while self.peek() == "!":
            self.take()
            value = _factorial(value)
        if self.peek() != "^":
            return value
        self.take()
        minus = self.peek() == "-" and self.take()
        exponent = self.primary(depth)
        if self.peek() == "^":
            raise BeyondError
        return power(value, negate(exponent) if minus else exponent)

    def primary(self, depth: int) -> Exact:
        item = self.take()
        if item[0].isdigit() or (item[0] == "." and len(item) > 1):
            if len(item) > _MAX_DIGITS:
                raise BeyondError
            return exact(Fraction(item))
        if item in {"(", "{"}:
            value = self.sum(depth + 1)
            self.take(")" if item == "(" else "}")
            return value
        if item == "π":
            return atom("pi")
        if item == "∞" or (item.isalpha() and len(item) == 1):
            return self.named(item)
        if (command := _COMMANDS.get(item)) is not None:
            return command(self, depth)
        raise BeyondError

    def named(self, letter: str) -> Exact:
        if self.peek() != "_":
            return square_root(exact(-1)) if letter == "i" else atom(letter)
        self.take()
        index = self.take()
        if index == "{":
            index = ""
            while self.peek() != "}":
                index += self.take()
            self.take("}")
        if not index.isalnum():
            raise BeyondError
        return atom(f"{letter}_{index}")

    def argument(self, depth: int) -> Exact:
        r"""What follows a command: a group, or one character (`\\frac12`)."""
        item = self.peek()
        if item.isdigit() and len(item) > 1:
            self.items[self.position : self.position + 1] = list(item)
        return self.primary(depth + 1)

    def fraction(self, depth: int) -> Exact:
        above = self.argument(depth)
        return divide(above, self.argument(depth))

    def root(self, depth: int) -> Exact:
        degree = 2
        if self.peek() == "[":
            self.take()
            index = self.take()
            self.take("]")
            degree = int(index) if index.isdigit() and len(index) < 3 else 0
        if not degree:
            raise BeyondError
        value = self.argument(depth)
        return square_root(value) if degree == 2 else power(value, exact(Fraction(1, degree)))

    def choose(self, depth: int) -> Exact:
        above, below = self.argument(depth).rational, self.argument(depth).rational
        if above is None or below is None or above.denominator != 1 or below.denominator != 1:
            raise BeyondError
        if not 0 <= below <= above <= _MAX_FACTORIAL:
            raise BeyondError
        return exact(comb(above.numerator, below.numerator))


_COMMANDS: dict[str, Callable[[_Expression, int], Exact]] = {
    "\\frac": _Expression.fraction,
    "\\sqrt": _Expression.root,
    "\\binom": _Expression.choose,
}
_MAX_FACTORIAL = 3_000


def _factorial(value: Exact) -> Exact:
    number = value.rational
    if number is None or number.denominator != 1 or not 0 <= number <= _MAX_FACTORIAL:
        raise BeyondError
    return exact(factorial(number.numerator))
