"""The table at the end of a run: scores, intervals and counts, for a terminal or a plain file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TextIO

from nel.reporting import content
from nel.reporting.run_view import RunView
from nel.reporting.text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NARROWEST = 72
"""Below this width lines wrap in the terminal, rather than numbers in the table."""
_PLAIN_WIDTH = 160
_STYLES = {"completed": "green", "degraded": "yellow", "interrupted": "yellow", "running": "cyan", "failed": "bold red"}


def render_console(view: RunView) -> str:
    """The table and the warnings as plain text, without colours."""
    text = io.StringIO()
    print_console(view, text)
    return text.getvalue()


def print_console(view: RunView, file: TextIO) -> None:
    """The table and the warnings on `file`: in colour and as wide as the terminal where it is one, else plain."""
    from rich.console import Console

    terminal = file.isatty()
    console = Console(file=file, highlight=False, markup=False, emoji=False, width=None if terminal else _PLAIN_WIDTH)
    if console.width < _NARROWEST:
        console.width = _NARROWEST
    if terminal:
        _print(view, console)
        return
    with console.capture() as captured:
        _print(view, console)
    file.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


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

    models = {row.model for row in rows}
    settled = all(row.status == "completed" for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    if len(models) == 1:
        table.title = Text(f"model {one_line(rows[0].model)}", style="default")
        table.title_justify = "left"
    table.add_column("Cell", overflow="fold", min_width=8)
    if len(models) > 1:
        table.add_column("Model", overflow="fold", min_width=8)
    table.add_column("Metric", no_wrap=True)
    for name in ("Value", "95 % interval", "Problems", "Scored", "Unscored", "Errors"):
        table.add_column(name, justify="right", no_wrap=True)
    if not settled:
        table.add_column("Status", no_wrap=True)
    for row in rows:
        line = [Text(one_line(row.cell))]
        if len(models) > 1:
            line.append(Text(one_line(row.model)))
        line += [Text(one_line(row.metric)), Text(row.value, style="bold"), Text(row.interval), Text(row.problems)]
        line += [Text(row.scored), _count(row.unscored, "yellow"), _count(row.error, "red")]
        if not settled:
            line.append(Text(row.status, style=_STYLES[row.status]))
        table.add_row(*line)
    return table


def _count(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style="" if text in {"0", content.ABSENT} else style)
