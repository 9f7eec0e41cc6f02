"""The code blocks of a markdown page, with what the page says about how to run them.

A block is plain text on a page; what the tests do with it is said here, once:

- Blocks of one page share a directory and run in order. A block with a title (```` ```yaml title="suite.yaml" ````) is
  written there under that name; a later block may use the file.
- `console` runs each line that starts with `$ `. Lines below it are its output: each must appear in that order, where
  `...` stands for anything. `bash` runs as one script. Both expect exit code 0, or the one of `<!-- exits: N -->` on
  the line before the block.
- `python` runs as a script of its own. `json` and `jsonl` must parse. A `yaml` block is a config, or a part of one
  that gets a service and a benchmark where it has none; it must pass `load_config`.
- `text`, `mermaid`, `csv`, `toml`, `jinja` and the like are shown (or written, with a title), never run.
- `http://localhost:8000/v1` is the reader's own endpoint: the tests put the fake server's address there. Every
  `${..._KEY}` or `${..._TOKEN}` that a page names is set.
- `<!-- not executed: REASON -->` on the line before excuses a block; `test_blocks.py` counts these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENDPOINT = "http://localhost:8000/v1"
ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>.*)$")
_TITLE = re.compile(r'title="(?P<title>[^"]+)"')
_EXCUSE = re.compile(r"<!--\s*not executed:\s*(?P<reason>.*?)\s*-->")
_EXITS = re.compile(r"<!--\s*exits:\s*(?P<code>\d+)\s*-->")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    title: str | None
    text: str
    excuse: str | None
    exits: int

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, those inside lists and tabs too."""
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        start, marks, indent = number, opening["marks"], len(opening["indent"])
        number += 1
        body = []
        while number < len(lines) and lines[number].strip() != marks:
            body.append(lines[number][indent:])
            number += 1
        number += 1
        before = next((line for line in reversed(lines[:start]) if line.strip()), "")
        info = opening["info"].strip()
        title, excuse, exits = _TITLE.search(info), _EXCUSE.search(before), _EXITS.search(before)
        yield Block(
            page=page,
            line=start + 1,
            language=re.split(r"[ {]", info, maxsplit=1)[0],
            title=title["title"] if title else None,
            text="\n".join(body) + "\n",
            excuse=excuse["reason"] if excuse else None,
            exits=int(exits["code"]) if exits else 0,
        )


def commands_of(console: str) -> Iterator[tuple[str, list[str]]]:
    """Each `$ ` command of a console block, its continuation lines joined, with the output lines below it."""
    command: str | None = None
    output: list[str] = []
    for line in console.splitlines():
        if command is not None and command.endswith("\\"):
            command = f"{command[:-1]}{line.strip()}"
        elif line.startswith("$ "):
            if command is not None:
                yield command, output
            command, output = line[2:], []
        elif line.strip():
            output.append(line)
    if command is not None:
        yield command, output


def missing_line(expected: list[str], printed: str) -> str | None:
    """The first expected line that the printed text does not have in its place; `...` stands for anything."""
    lines = iter(printed.splitlines())
    for wanted in expected:
        if wanted.strip() == "...":
            continue
        words = (r".*".join(re.escape(_squeezed(part)) for part in wanted.split("..."))).strip()
        if not any(re.fullmatch(words, _squeezed(line)) for line in lines):
            return wanted
    return None


def _squeezed(line: str) -> str:
    return re.sub(r"\s+", " ", line.strip()) if line.strip() else ""
