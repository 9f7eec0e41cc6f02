"""The program in a reply: extraction of code.

A fenced block that defines the entry point is preferred, the last one if there are several; then the last block that
holds code; then what looks like code outside any fence.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import dedent

from nel.scoring.extract import Extraction

_FENCE = re.compile(r"(?m)^(?P<indent>[ \t>]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$")
_CLOSING = re.compile(r"(?P<marks>`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_TRIPLE = re.compile(r'"""|' + "'''")
_NO_CODE = frozenset({"text", "txt", "plaintext", "output", "console", "bash", "sh", "shell", "json", "markdown", "md"})
_SAME = {"py": "python", "python3": "python", "py3": "python", "js": "javascript", "ts": "typescript", "c++": "cpp"}
# A line that only a program has, in the languages that benchmarks ask for.
_CODE_LINE = re.compile(
    r"(?m)^[ \t]*(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*[(\[]|class[ \t]+\w+[ \t]*[:({]|import[ \t]+[\w.]+|"
    r"from[ \t]+[\w.]+[ \t]+import\b|return\b(?![ \t]+(?:the|a|an|to)\b)|@\w|#include\b|using[ \t]+\w+|"
    r"(?:pub[ \t]+)?fn[ \t]+\w+|func[ \t]+\w+|function[ \t]+\w+|(?:const|let|var)[ \t]+\w+[ \t]*=|"
    r"(?:public|private|static)[ \t]+\w|(?:if|for|while|elif|with|try|else)\b[^\n]{0,300}[:{][ \t]*$|"
    r"[A-Za-z_][\w.\[\]]{0,80}[ \t]*(?:[-+*/|&^%]?=(?!=)|\()|[})\]]+[;,]?[ \t]*$)"
)
_START = re.compile(
    r"(?m)^(?:(?:async[ \t]+)?def[ \t]+\w+|class[ \t]+\w+[:( ]|import[ \t]+\w+|from[ \t]+[\w.]+[ \t]+import\b|@\w)"
)


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    end: int
    language: str
    code: str


def extract_code(text: str, entry_point: str | None = None, language: str | None = None) -> Extraction | None:
    """The program that a reply gives; None only where the reply is blank.

    Args:
        text: the reply.
        entry_point: the name of the function or class that the program must define.
        language: blocks that say they are of another language count only where no other block is left.

    Rules: `entry point` (the last fenced block that defines it), `block` (the last fenced block with code), `raw code`
    (outside any fence, from the first line that opens a program to the last that belongs to it), `raw text`.
    """
    blocks = _blocks(text)
    if language is not None:
        wanted = _SAME.get(language.lower(), language.lower())
        blocks = [block for block in blocks if block.language in {"", wanted}] or blocks
    defines = _definition(entry_point) if entry_point else None
    if defines and (block := _last(block for block in blocks if defines.search(block.code))):
        return Extraction(block.code, block.start, block.end, "entry point")
    if defines and (raw := _raw(text)) and not blocks and defines.search(raw.text):
        return raw
    programs = [block for block in blocks if block.language not in _NO_CODE or block.language == language]
    block = _last(block for block in programs if _CODE_LINE.search(block.code)) or _last(
        block for block in programs or blocks if block.code.strip()
    )
    if block:
        return Extraction(block.code, block.start, block.end, "block")
    return _raw(text)


def _last(blocks: Iterable[_Block]) -> _Block | None:
    return next(iter(deque(blocks, maxlen=1)), None)


def _definition(name: str) -> re.Pattern[str]:
    """What defines `name`, in Python or in the languages with a word or a type before it."""
    name = re.escape(name)
    return re.compile(
        rf"(?m)(?:^[ \t]*(?:async[ \t]+)?|\b)(?:def|class|function|fn|func|fun|sub|proc|const|let|var|struct|interface)"
        rf"[ \t]+{name}\b|^{name}[ \t]*(?::[^=\n]{{1,200}})?=(?!=)"
        rf"|^[ \t]*[A-Za-z_][\w:<>\[\],*& \t]{{0,200}}[ \t*&]{name}[ \t]*\([^;\n]{{0,500}}\)[ \t\w]{{0,40}}\{{?[ \t]*$"
    )


def _blocks(text: str) -> list[_Block]:
    """The fenced blocks in order; the last may lack its end, the first its beginning."""
    if "```" not in text and "~~~" not in text:
        return []
    blocks: list[_Block] = []
    position = 0
    while opening := _FENCE.search(text, position):
        start = min(opening.end() + 1, len(text))
        end, after = _end_of(text, start, opening["marks"])
        info = opening["info"].strip(" {}.").split(maxsplit=1)
        if after < 0 and not info and not text[start:].strip():
            before = text[position : opening.start()]
            if _CODE_LINE.search(before):  # the prompt had opened the block that the reply closes
                blocks.append(_Block(position, opening.start(), "", before))
            break
        tag = info[0].lower() if info else ""
        code = dedent(text[start:end]) if opening["indent"].strip(">") else text[start:end]
        blocks.append(_Block(start, end, _SAME.get(tag, tag), code))
        if after < 0:
            break
        position = after
    return blocks


def _end_of(text: str, start: int, marks: str) -> tuple[int, int]:
    """Where a block's code ends, and where the text goes on (-1: the block is never closed)."""
    in_string: str | None = None  # a fence inside a docstring closes nothing
    scanned = start
    for closing in _CLOSING.finditer(text, start):
        if closing["marks"][0] != marks[0] or len(closing["marks"]) < len(marks):
            continue
        for quote in _TRIPLE.finditer(text, scanned, closing.start()):
            if in_string is None:
                in_string = quote.group()
            elif in_string == quote.group():
                in_string = None
        scanned = closing.start()
        if in_string is None:
            return closing.start(), closing.end()
    return (len(text), -1) if in_string is None else _first_end(text, start, marks)


def _first_end(text: str, start: int, marks: str) -> tuple[int, int]:
    """The first fence after `start`, for a block whose docstring never ends."""
    for closing in _CLOSING.finditer(text, start):
        if closing["marks"][0] == marks[0] and len(closing["marks"]) >= len(marks):
            return closing.start(), closing.end()
    return len(text), -1


def _raw(text: str) -> Extraction | None:
    """The program in a text without fences: its indentation is kept, as the body of a function may be all there is."""
    if not text.strip():
        return None
    whole = Extraction(text.strip("\n"), 0, len(text), "raw text")
    opening = _START.search(text)
    if opening is None:
        return whole
    first_line = text.lstrip("\n").split("\n", 1)[0]
    if first_line[:1] in {" ", "\t"} and _CODE_LINE.match(first_line):
        return whole
    end = opening.start()
    for line in re.finditer(r"[^\n]+", text[opening.start() :]):
        if line.group()[0] not in " \t#" and not _CODE_LINE.match(line.group()):
            break
        end = opening.start() + line.end()
    return Extraction(text[opening.start() : end], opening.start(), end, "raw code")
