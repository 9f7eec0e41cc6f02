"""Printing: one JSON document, or a table whose columns line up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


def print_json(value: Any) -> None:
    """`value` as indented JSON on stdout."""
    import msgspec

    from nel.core.contract import encode_json

    click.echo(msgspec.json.format(encode_json(value), indent=2).decode())


def print_table(rows: Sequence[Sequence[str]], *, header: Sequence[str]) -> None:
    """Columns as wide as their widest cell, two spaces apart; nothing is cut."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for number, line in enumerate(lines):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        click.echo(click.style(text, bold=True) if number == 0 else text)
