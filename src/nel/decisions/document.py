"""A page of headings, lines and tables, for the terminal or as Markdown; all texts in it are plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nel.reporting.text import markdown, one_line


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence; `mark` makes it an item of a list."""

    text: str
    mark: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; columns whose place is in `right` hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = field(default_factory=frozenset)


Block = Heading | Line | Table


def to_text(blocks: Sequence[Block]) -> str:
    """For a terminal or a plain file: columns line up, foreign control characters are escaped."""
    parts: list[str] = []
    for before, block in zip((None, *blocks), blocks, strict=False):
        if before is not None and not (isinstance(before, Line) and isinstance(block, Line)):
            parts.append("")
        match block:
            case Heading(text):
                parts.append(one_line(text))
            case Line(text, mark):
                parts.append(f"{mark} {one_line(text)}" if mark else one_line(text))
            case Table():
                parts += _aligned(block)
    return "\n".join(parts) + "\n"


def _aligned(table: Table) -> list[str]:
    rows = [[one_line(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    return [
        "  ".join(
            cell.rjust(width) if column in table.right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def to_markdown(blocks: Sequence[Block]) -> str:
    """The same page as Markdown, in which no text can be more than text."""
    parts: list[str] = []
    for before, block in zip((None, *blocks), blocks, strict=False):
        in_list = isinstance(before, Line) and isinstance(block, Line) and before.mark and block.mark
        if before is not None and not in_list:
            parts.append("")
        match block:
            case Heading(text, level):
                parts.append(f"{'#' * level} {markdown(text)}")
            case Line(text, mark, strong):
                shown = f"**{markdown(text)}**" if strong else markdown(text)
                parts.append(f"- {shown}" if mark else shown)
            case Table(header, rows, right):
                parts.append(f"| {' | '.join(markdown(cell) for cell in header)} |")
                parts.append(f"| {' | '.join('---:' if at in right else '---' for at in range(len(header)))} |")
                parts += [f"| {' | '.join(markdown(cell) for cell in row)} |" for row in rows]
    return "\n".join(parts) + "\n"
