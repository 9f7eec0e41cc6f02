"""Text as scorers compare it: tokens, decorations, negation.

Two texts are the same answer when their tokens are equal. A token is a word, a number or a symbol: case, accents'
encoding, sentence punctuation, currency and percent signs, decoration and articles do not count; a sign, a decimal
point, `C` against `C++`, `10²` against `102` do.
"""

from __future__ import annotations

import re
import unicodedata

# Each is one character, so that positions stay valid. The em dash is punctuation, never a sign.
_MINUSES = "\u2212\u2010\u2011\u2013\ufe63\uff0d"
# What stands for an ASCII character, one for one: minus signs, full-width forms, the digits of every script.
_PLAIN_FORMS = {
    **{ord(minus): "-" for minus in _MINUSES},
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    0x3000: " ",
    0x066B: ".",
    0x066C: ",",
    0x066A: "%",
}
_SUPERSCRIPT = re.compile("(?=[⁰¹²³⁴⁵⁶⁷⁸⁹])")

_PUNCTUATION = r"\s!-/:-@\[-`{-~\u00a0-\u00bf\u2000-\u206f\u2e00-\u2e7f\u20a0-\u20cf\u3000-\u303f"
# Scripts written without spaces: each character is a token, so that a name is found inside a sentence.
UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
GLUED = rf"[^\W_{UNSPACED}]"
"""What, beside a word or a number, makes it a part of something longer."""
_TOKEN = re.compile(
    rf"""
      (?:(?<![\w)\]}}])[-+][$€£¥₹]?)?(?:\d(?:[\d.,]*\d)?|\.\d+)(?![^\W_])     # a number, with its sign
    | (?<![^\W_])[^\W\d_](?:\.[^\W\d_](?![^\W_]))+\.?                  # U.S., D.C.
    | [{UNSPACED}]
    | [^{_PUNCTUATION}{UNSPACED}]+(?:['\u2019][^{_PUNCTUATION}{UNSPACED}]+)*(?:[+\#]+(?![^\W_]))?   # words, C++, C#
    | [+^=<>/&\#]+
    """,
    re.VERBOSE,
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PLAIN = re.compile(r"\d*\.?\d+")
_ARTICLES = frozenset({"a", "an", "the"})


def plain_minus(text: str) -> str:
    """`text` with every typographic minus as `-`; as long as before."""
    if not text.isascii():
        for minus in _MINUSES:
            text = text.replace(minus, "-")
    return text


_NOT_ASCII_DIGIT = re.compile(r"[^\D0-9]")


def plain_forms(text: str) -> str:
    """`text` with ASCII minus signs, digits, letters and marks for their typographic forms; as long as before."""
    if text.isascii():
        return text
    text = text.translate(_PLAIN_FORMS)
    return _NOT_ASCII_DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)


def unify(text: str) -> str:
    """`text` without differences of case and encoding: compatibility form, plain minus signs, `^2` for `²`."""
    if text.isascii():
        return text.lower()
    return plain_minus(unicodedata.normalize("NFKC", _SUPERSCRIPT.sub("^", text))).casefold()


def tokens(unified: str) -> list[str]:
    """The tokens of a unified text, each in the form that is compared."""
    return [token if token.isalpha() else _form(token) for token in _TOKEN.findall(unified)]


def token_starts(unified: str) -> list[int]:
    """Where each of the tokens begins in the unified text."""
    return [match.start() for match in _TOKEN.finditer(unified)]


def comparable(text: str) -> list[str]:
    """What two equal answers have in common: the tokens, without articles that another token follows."""
    found = tokens(unify(text))
    last = len(found) - 1
    return [token for index, token in enumerate(found) if index == last or token not in _ARTICLES]


def _form(token: str) -> str:
    if token.isdigit() and token[0] != "0":
        return token
    digits = token.lstrip("+-$€£¥₹")
    if digits[:1].isdigit() or (digits[:1] == "." and digits[1:2].isdigit()):
        return canonical_number(digits, negative=token[0] == "-")
    return token.replace(".", "").replace("'", "").replace("\u2019", "")


def canonical_number(digits: str, *, negative: bool = False) -> str:
    """`1,080.50` as `1080.5`; what is no plain number (`1,5`, `1.2.3`, `007`) stays as it is."""
    sign = "-" if negative else ""
    number = digits.replace(",", "") if _GROUPED.fullmatch(digits) else digits
    if not _PLAIN.fullmatch(number) or (number[0] == "0" and number[1:2].isdigit()):
        return sign + digits
    if "." in number:
        number = number.rstrip("0").rstrip(".")
        number = "0" + number if number[:1] in ("", ".") else number
    return number if number == "0" else sign + number


_WRAPPED = re.compile(r"\s*\\(?:boxed|fbox|text|textbf|mathrm|mathbf)\s*\{(.*)\}\s*", re.DOTALL)
_DECORATION = " \t\r\n*_`$\"'\u2018\u2019\u201c\u201d\u200b\ufeff"


def undecorate(text: str) -> str:
    r"""`text` without what surrounds an answer: emphasis, quotes, `$`, `\( \)`, `\boxed{}`, `\text{}`, a full stop."""
    for _ in range(8):  # deeper nesting than any answer has
        bare = text.strip(_DECORATION)
        bare = bare.removesuffix(".").rstrip(_DECORATION) if not bare.endswith("..") else bare
        for opening, closing in (("\\(", "\\)"), ("\\[", "\\]")):
            if bare.startswith(opening) and bare.endswith(closing):
                bare = bare[2:-2]
        if wrapped := _WRAPPED.fullmatch(bare):
            bare = wrapped.group(1)
        if bare == text:
            break
        text = bare
    return text


_NEGATED = re.compile(
    r"\b(?:not(?!\s+(?:only|just)\b)|cannot|never|\w{1,8}n't|neither|nor|unlike|except|without|rather\s+than"
    r"|instead\s+of)\b(?:\s+(?!but\b)[^\s.,;:!?]+){0,2}\s*[\"'(*_`$\[]*\s*$",
    re.IGNORECASE,
)


_NEGATION = re.compile(r"no[tr]|n['\u2019]t|never|neither|unlike|except|without|rather|instead", re.IGNORECASE)


def is_negated(text: str, start: int) -> bool:
    """Whether a negation stands at most two words before `start` ("not Paris", "unlike the old capital Paris")."""
    before = text[max(0, start - 48) : start]
    return _NEGATION.search(before) is not None and _NEGATED.search(before.replace("\u2019", "'")) is not None


_INVISIBLE = "".join(
    map(chr, (*range(0x21), *range(0x7F, 0xA1), *range(0x2000, 0x2070), 0x1680, 0x3000, *range(0xFE00, 0xFE10), 0xFEFF))
)


def is_empty(text: str) -> bool:
    """Whether nothing can be read: white space, zero-width and control characters alone."""
    return not text.strip(_INVISIBLE)
