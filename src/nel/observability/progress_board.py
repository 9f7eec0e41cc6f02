"""Where every cell stands: written by the engine's thread, read by the display's."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from nel.observability.progress import ProgressSnapshot
from nel.observability.progress_rows import Row


class Rate:
    """Events per second, smoothed over the last half minute or the last fifth of the time, whichever is longer."""

    def __init__(self, now: float) -> None:
        self._began = self._at = now
        self._count = 0.0
        self._events = 0.0
        self._seconds = 0.0

    def update(self, count: float, now: float) -> None:
        """Note that `count` events have happened since the beginning."""
        self._events, self._seconds = self._decayed(count, now)
        self._count, self._at = count, max(now, self._at)

    def per_second(self, now: float) -> float | None:
        """The rate, which falls while nothing happens; None before the first event."""
        events, seconds = self._decayed(self._count, now)
        return events / seconds if events > 0 and seconds > 0 else None

    def _decayed(self, count: float, now: float) -> tuple[float, float]:
        passed = now - self._at
        if passed <= 0:
            return self._events + count - self._count, self._seconds
        window = max(30.0, (now - self._began) / 5)
        kept = math.exp(-passed / window)
        weight = window * (1 - kept) / passed  # the mean weight of what happened at some time in between
        return self._events * kept + (count - self._count) * weight, self._seconds * kept + passed * weight


@dataclass(slots=True)
class _Cell:
    name: str
    snapshot: ProgressSnapshot
    seen: float
    """When the snapshot came."""
    done: Rate
    tokens: Rate
    ended: bool = False

    def now_at(self, now: float) -> ProgressSnapshot:
        """The snapshot with its clock running on."""
        passed = 0.0 if self.ended else max(0.0, now - self.seen)
        return replace(self.snapshot, elapsed=self.snapshot.elapsed + passed)

    def row(self, now: float) -> Row:
        state = self.now_at(now)
        rate = self.done.per_second(now)
        average = state.tokens / state.elapsed if state.elapsed > 0 else None
        return Row(
            name=self.name,
            done=state.done,
            total=state.total,
            mean=state.mean,
            ci_lower=state.ci_lower,
            ci_upper=state.ci_upper,
            unscored=state.unscored,
            errors=state.errors,
            tokens_per_second=average if self.ended else self.tokens.per_second(now),
            cost=state.cost,
            in_flight=state.in_flight,
            elapsed=state.elapsed,
            remaining=(state.total - state.done) / rate if rate else None,
            ended=self.ended,
        )


class Board:
    """The cells of a run, in the order in which they began."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began: float | None = None
        self._cells: dict[str, _Cell] = {}
        self._lock = threading.Lock()

    def begin(self, name: str, total: int, done: int) -> Row:
        """Add a cell, or begin it again."""
        now = self._clock()
        with self._lock:
            self._began = now if self._began is None else self._began
            start = ProgressSnapshot(done=done, total=total, known=done)
            cell = self._cells[name] = _Cell(name, start, now, Rate(now), Rate(now))
            return cell.row(now)

    def update(self, name: str, snapshot: ProgressSnapshot) -> None:
        """Set where a cell stands; one that never began begins."""
        if name not in self._cells:
            self.begin(name, snapshot.total, snapshot.known)
        now = self._clock()
        with self._lock:
            cell = self._cells[name]
            cell.snapshot, cell.seen = snapshot, now
            cell.done.update(snapshot.done - snapshot.known, now)
            cell.tokens.update(snapshot.tokens, now)

    def end(self, name: str, snapshot: ProgressSnapshot) -> Row:
        """Set where a cell stands for good."""
        self.update(name, snapshot)
        with self._lock:
            cell = self._cells[name]
            cell.ended = True
            return cell.row(self._clock())

    def end_all(self) -> list[Row]:
        """Stop the cells that have not ended where they stand."""
        now = self._clock()
        with self._lock:
            left = [cell for cell in self._cells.values() if not cell.ended]
            for cell in left:
                cell.snapshot, cell.ended = cell.now_at(now), True
            return [cell.row(now) for cell in left]

    def active(self) -> list[Row]:
        """The cells that have not ended."""
        now = self._clock()
        with self._lock:
            return [cell.row(now) for cell in self._cells.values() if not cell.ended]

    def total(self) -> Row | None:
        """All cells together, without a mean; None where there are fewer than two."""
        now = self._clock()
        with self._lock:
            cells = list(self._cells.values())
            if len(cells) < 2:
                return None
            active = [cell for cell in cells if not cell.ended]
            rate = sum(cell.done.per_second(now) or 0.0 for cell in active)
            speed = sum(cell.tokens.per_second(now) or 0.0 for cell in active)
            elapsed = now - (self._began or now)
            states = [cell.snapshot for cell in cells]
        errors: Counter[str] = Counter()
        for state in states:
            errors.update(state.errors)
        costs = [state.cost for state in states if state.cost is not None]
        if not active and elapsed > 0:
            speed = sum(state.tokens for state in states) / elapsed
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        return Row(
            name="total",
            done=done,
            total=total,
            unscored=sum(state.unscored for state in states),
            errors=errors,
            tokens_per_second=speed,
            cost=sum(costs) if costs else None,
            in_flight=sum(cell.snapshot.in_flight for cell in active),
            elapsed=elapsed,
            remaining=sum(cell.snapshot.total - cell.snapshot.done for cell in active) / rate if rate else None,
            ended=not active,
        )
