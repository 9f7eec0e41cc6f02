"""How the board is shown: redrawn on a terminal, as dated lines elsewhere."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from nel.observability.format import format_count, to_ascii
from nel.observability.progress_board import Board
from nel.observability.progress_rows import Row, Span, clean, lay_out, plain_line

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

_REDRAWN_PER_SECOND = 4


class Display(Protocol):
    """What `ConsoleProgress` shows its board on."""

    def begun(self, row: Row, /) -> None:
        """A cell began."""

    def ended(self, row: Row) -> None:
        """A cell ended, or was stopped."""

    def message(self, text: str) -> None:
        """Something happened beside the counts."""

    def close(self) -> None:
        """No more will come."""


def display_for(stream: TextIO | None, board: Board, interval: float) -> Display:
    """The display that `stream` (standard error where None) can carry."""
    output = _Quiet(sys.stderr if stream is None else stream)
    if output.isatty() and os.environ.get("TERM", "").lower() not in {"dumb", "unknown"}:
        return _LiveDisplay(output, board)
    return _PlainDisplay(output, board, interval)


class _Quiet:
    """A text stream that drops what cannot be written: a closed terminal or pipe does not end a run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return

    def isatty(self) -> bool:
        try:
            return self._stream.isatty()
        except (AttributeError, ValueError):
            return False

    def ascii_only(self) -> bool:
        """Whether the stream cannot show what the display draws with."""
        try:
            "±━─…".encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return True
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LiveDisplay:
    """Lines at the foot of a terminal; those of finished cells scroll away above them."""

    def __init__(self, output: _Quiet, board: Board) -> None:
        from rich.console import Console
        from rich.live import Live

        self._board = board
        self._ascii = output.ascii_only()
        self._console = Console(
            file=output,  # type: ignore[arg-type]
            force_terminal=True,
            markup=False,
            highlight=False,
            emoji=False,
        )
        self._widths: dict[str, int] = {}
        # What a program prints goes above the lines, unless its output goes elsewhere: that must not end up here.
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=_REDRAWN_PER_SECOND,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )

    def begun(self, _row: Row, /) -> None:
        if not self._live.is_started:
            atexit.register(self._live.stop)  # gives the cursor back whatever happens
            self._live.start()

    def ended(self, row: Row) -> None:
        self._console.print(self._lines([row])[0], no_wrap=True, crop=True)

    def message(self, text: str) -> None:
        for line in text.splitlines():
            self._console.print(to_ascii(clean(line)) if self._ascii else clean(line), soft_wrap=True)

    def close(self) -> None:
        self._live.stop()
        atexit.unregister(self._live.stop)
        total = self._board.total()
        if total is not None:
            self.ended(total)

    def _render(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        rows, total = self._board.active(), self._board.total()
        room = max(1, self._console.height - 3)
        hidden = len(rows) - room
        lines = self._lines([*rows[:room], total] if total else rows[:room])
        if hidden > 0:
            lines.insert(room, Text(f"and {format_count(hidden)} more", style="dim"))
        return Group(*lines)

    def _lines(self, rows: list[Row]) -> list[Text]:
        laid = lay_out(rows, self._console.width, self._widths, ascii_only=self._ascii)
        return [_text(spans) for spans in laid]


def _text(spans: list[Span]) -> Text:
    from rich.text import Text

    return Text.assemble(*spans, no_wrap=True, overflow="crop")


class _PlainDisplay:
    """A dated line when a cell begins and ends, and every `interval` seconds in between."""

    def __init__(self, output: _Quiet, board: Board, interval: float) -> None:
        self._output = output
        self._board = board
        self._interval = interval
        self._ascii = output.ascii_only()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begun(self, row: Row, /) -> None:
        known = f", {format_count(row.done)} of them known from an earlier run" if row.done else ""
        self._write(f"{clean(row.name)}: {format_count(row.total)} attempts{known}")
        if self._thread is None:
            self._thread = threading.Thread(target=self._report, name="nel-progress", daemon=True)
            self._thread.start()

    def ended(self, row: Row) -> None:
        self._write(plain_line(row))

    def message(self, text: str) -> None:
        for line in text.splitlines():
            self._write(clean(line))

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1)
        total = self._board.total()
        if total is not None:
            self._write(plain_line(total))

    def _report(self) -> None:
        while not self._stop.wait(self._interval):
            for row in self._board.active():
                self._write(plain_line(row))

    def _write(self, text: str) -> None:
        line = f"{datetime.now().astimezone():%H:%M:%S} {text}\n"
        self._output.write(to_ascii(line) if self._ascii else line)
        self._output.flush()
