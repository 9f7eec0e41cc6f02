"""What a person sees while a run is going: a live display on a terminal, plain lines elsewhere.

Progress receives numbers that the engine computed; it counts and averages nothing but speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSnapshot:
    """Where a cell stands."""

    done: int
    """Attempts that have their outcome, those of an earlier run included."""
    total: int
    scored: int = 0
    unscored: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """Errors by category."""
    mean: float | None = None
    ci_lower: float | None = None
    ci_upper: float | None = None
    tokens: int = 0
    """Prompt and completion tokens of this run."""
    cost: float | None = None
    elapsed: float = 0.0
    """Seconds since this run began the cell."""
    in_flight: int = 0
    known: int = 0
    """Attempts that an earlier run had made; they count as done, but not for the speed."""


class Progress(Protocol):
    """Told how the cells of a run get on. Every method returns at once and never raises."""

    def begin(self, cell: str, total: int, done: int = 0) -> None:
        """`cell` has `total` attempts, of which an earlier run has made `done`."""

    def update(self, cell: str, snapshot: ProgressSnapshot) -> None:
        """`cell` stands at `snapshot`; may be called as often as one likes."""

    def message(self, text: str) -> None:
        """Something that happened beside the counts."""

    def end(self, cell: str, snapshot: ProgressSnapshot) -> None:
        """`cell` is finished, or was stopped at `snapshot`."""

    def close(self) -> None:
        """The run is over; cells that have not ended were stopped."""


class NullProgress:
    """Shows nothing."""

    def begin(self, cell: str, total: int, done: int = 0) -> None:
        """Nothing."""

    def update(self, cell: str, snapshot: ProgressSnapshot) -> None:
        """Nothing."""

    def message(self, text: str) -> None:
        """Nothing."""

    def end(self, cell: str, snapshot: ProgressSnapshot) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class ConsoleProgress:
    """A line a cell with bar, running mean, errors by kind, speed, cost and time left, and a total below.

    On a terminal the lines are redrawn four times a second and a finished cell leaves its line behind; elsewhere a
    cell gets a plain line when it begins, when it ends, and every `interval` seconds in between. NO_COLOR and the
    terminal's width are honoured, and a terminal that cannot show more than ASCII gets ASCII. Output that cannot be
    written is dropped: a closed terminal does not end a run.
    """

    def __init__(
        self, stream: TextIO | None = None, *, interval: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from nel.observability.progress_board import Board
        from nel.observability.progress_display import display_for

        self._board = Board(clock)
        self._display = display_for(stream, self._board, interval)

    def begin(self, cell: str, total: int, done: int = 0) -> None:
        """`cell` has `total` attempts, of which an earlier run has made `done`."""
        self._display.begun(self._board.begin(cell, total, done))

    def update(self, cell: str, snapshot: ProgressSnapshot) -> None:
        """`cell` stands at `snapshot`."""
        self._board.update(cell, snapshot)

    def message(self, text: str) -> None:
        """A line above the display, or among the plain ones."""
        self._display.message(text)

    def end(self, cell: str, snapshot: ProgressSnapshot) -> None:
        """`cell` is finished, or was stopped at `snapshot`."""
        self._display.ended(self._board.end(cell, snapshot))

    def close(self) -> None:
        """End what has not ended, show the total where there were several cells, and leave the terminal alone."""
        for row in self._board.end_all():
            self._display.ended(row)
        self._display.close()
