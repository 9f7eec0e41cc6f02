"""The table at the end of a run: scores, intervals and counts, for a terminal or a plain file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TextIO

from nel.observability.format import to_ascii
from nel.reporting import content
from nel.reporting.run_view import RunView
from nel.reporting.text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_NARROWEST = 72
"""Below this width the terminal wraps lines; the table would have to cut numbers."""
_PLAIN_WIDTH = 160
_STYLES = {"completed": "green", "degraded": "yellow", "interrupted": "yellow", "running": "cyan", "failed": "bold red"}


def render_console(view: RunView) -> str:
    """The table and the warnings as plain text, without colours."""
    text = io.StringIO()
    print_console(view, text)
    return text.getvalue()


def print_console(view: RunView, file: TextIO) -> None:
    """The table and the warnings on `file`: in colour and as wide as the terminal where it is one, else plain.

    Where `file` cannot hold more than ASCII, signs become their usual spelling.
    """
    from rich.console import Console

    console = Console(file=file, highlight=False, markup=False, emoji=False)
    unicode = console.encoding.startswith("utf")
    if console.is_terminal and unicode:
        console.width = max(console.width, _NARROWEST)
        _print(view, console)
        return
    console = Console(file=io.StringIO(), highlight=False, markup=False, emoji=False, width=_PLAIN_WIDTH, no_color=True)
    with console.capture() as captured:
        _print(view, console)
    lines = (line.rstrip() for line in captured.get().splitlines())
    file.writelines(f"{line if unicode else to_ascii(line)}\n" for line in lines)


def _print(view: RunView, console: Console) -> None:
    from rich.text import Text

    manifest = view.manifest
    console.print(Text(f"Run {one_line(manifest.run_id)}: {manifest.stage}", style="bold"))
    rows = content.rows(view)
    console.print(_table(rows) if rows else Text("The run has no cells."))
    for text in content.warnings(view):
        console.print(Text(f"! {one_line(text)}", style="yellow"))


def _table(rows: list[content.Row]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    one_model = len({row.model for row in rows}) == 1
    settled = all(row.status == "completed" for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("Cell", overflow="fold", min_width=8)
    if one_model:
        table.title = Text(f"Model: {one_line(rows[0].model)}", style="default")
        table.title_justify = "left"
    else:
        table.add_column("Model", overflow="fold", min_width=8)
    table.add_column("Metric", overflow="fold")
    for name in ("Value", "95 % interval", "Problems", "Scored", "Unscored", "Errors"):
        table.add_column(name, justify="right", no_wrap=True)
    if not settled:
        table.add_column("Status", no_wrap=True)
    for row in rows:
        names = [Text(one_line(name)) for name in ((row.cell,) if one_model else (row.cell, row.model))]
        counts = [Text(row.scored), _alarm(row.unscored, "yellow"), _alarm(row.error, "red")]
        status = [] if settled else [Text(row.status, style=_STYLES[row.status])]
        value = Text(row.value, style="bold")
        table.add_row(
            *names, Text(one_line(row.metric)), value, Text(row.interval), Text(row.problems), *counts, *status
        )
    return table


def _alarm(count: str, style: str) -> Text:
    from rich.text import Text

    return Text(count, style="" if count in {"0", content.ABSENT} else style)
