"""Foreign text made harmless: names, prompts and answers come from models and data, and may hold anything."""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"
# What begins emphasis, code, a table's next cell, a link, an entity, HTML, strikethrough or mathematics. Only that is
# escaped, so that the raw text stays readable.
_MARKDOWN = re.compile(
    r"""[\\`*|<]
    | (?<![^\W_])_ | _(?![^\W_])
    | \](?=[(\[:])
    | &(?=\#?\w+;)
    | (?<!\S)\#
    """,
    re.VERBOSE,
)
_MARKDOWN_PAIRED = "~$"
_MARKDOWN_START = re.compile(r"^(?:(\d{0,9})([-+=:.)])(?=[\s=:-]|$)|()(>)|()(\[)(?=[ xX]\]))")


def one_line(text: str) -> str:
    r"""`text` on one line, without anything that moves a cursor, changes a colour or turns the reading direction.

    White space of any kind becomes one space; other control and format characters are shown as escapes (`\x1b`).
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join("".join(_visible(char) for char in text).split())


def _visible(char: str) -> str:
    if char.isspace():
        return " "
    if char not in _JOINERS and unicodedata.category(char) in {"Cc", "Cf", "Cs"}:
        return char.encode("unicode_escape").decode("ascii")
    return char


def excerpt(text: str, limit: int) -> str:
    """The beginning of `text` on one line, at most `limit` characters; a cut is marked by an ellipsis."""
    # Only as much is cleaned as can be shown: an answer may be megabytes long.
    line = one_line(text[: limit * 4])
    if len(line) <= limit and len(text) <= limit * 4:
        return line
    return line[: limit - 1].rstrip() + "…"


def markdown(text: str) -> str:
    """`text` as one line of Markdown that shows exactly these characters, in a paragraph, a heading or a table cell."""
    escaped = _MARKDOWN.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", one_line(text))
    for char in _MARKDOWN_PAIRED:
        if escaped.count(char) > 1:
            escaped = escaped.replace(char, f"\\{char}")
    return _MARKDOWN_START.sub(_escaped_start, escaped)


def _escaped_start(found: re.Match[str]) -> str:
    number, mark = (group for group in found.groups() if group is not None)
    return f"{number}\\{mark}"
