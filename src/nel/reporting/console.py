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

_NAME_WIDTH = 8
"""To this width names are folded before the table gives way to a list."""
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
    if not rows:
        console.print(Text("The run has no cells."))
    elif _table_width(rows) <= console.width:
        console.print(_table(rows))
    else:
        for row in rows:
            console.print(_paragraph(row))
    for text in content.warnings(view):
        console.print(Text(f"! {one_line(text)}", style="yellow"))


_NUMBERS = ("Value", "95 % interval", "Problems", "Scored", "Unscored", "Errors")


def _table_width(rows: list[content.Row]) -> int:
    """Columns that the table needs when names are folded and no number is."""
    numbers = [(row.value, row.interval, row.problems, row.scored, row.unscored, row.error) for row in rows]
    widths = [max(map(len, column)) for column in zip(_NUMBERS, *numbers, strict=True)]
    names = 2 if _one_model(rows) else 3
    status = 0 if _settled(rows) else max(len(row.status) for row in rows) + 2
    return sum(widths) + 2 * len(widths) + names * (_NAME_WIDTH + 2) - 2 + status


def _one_model(rows: list[content.Row]) -> bool:
    return len({row.model for row in rows}) == 1


def _settled(rows: list[content.Row]) -> bool:
    return all(row.status == "completed" for row in rows)


def _table(rows: list[content.Row]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    one_model, settled = _one_model(rows), _settled(rows)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    if one_model:
        table.title = Text(f"Model: {one_line(rows[0].model)}", style="default")
        table.title_justify = "left"
    for name in ("Cell", "Metric") if one_model else ("Cell", "Model", "Metric"):
        table.add_column(name, overflow="fold", min_width=_NAME_WIDTH)
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    if not settled:
        table.add_column("Status", no_wrap=True)
    for row in rows:
        names = [Text(one_line(name)) for name in (row.cell, *(() if one_model else (row.model,)), row.metric)]
        numbers = [Text(row.value, style="bold"), Text(row.interval), Text(row.problems), *_counts(row)]
        table.add_row(*names, *numbers, *([] if settled else [_status(row)]))
    return table


def _paragraph(row: content.Row) -> Text:
    """A row for a terminal that is too narrow for the table."""
    from rich.text import Text

    scored, unscored, error = _counts(row)
    head = f"{one_line(row.cell)} ({one_line(row.model)}) {one_line(row.metric)} "
    text = Text.assemble(
        head, (row.value, "bold"), f" {row.interval}\n  ", _status(row), f", {row.problems} problems: "
    )
    return text.append_text(Text(", ").join([scored + " scored", unscored + " unscored", error + " errors"]))


def _status(row: content.Row) -> Text:
    from rich.text import Text

    return Text(row.status, style=_STYLES[row.status])


def _counts(row: content.Row) -> tuple[Text, Text, Text]:
    from rich.text import Text

    return Text(row.scored), _alarm(row.unscored, "yellow"), _alarm(row.error, "red")


def _alarm(count: str, style: str) -> Text:
    from rich.text import Text

    return Text(count, style="" if count in {"0", content.ABSENT} else style)
