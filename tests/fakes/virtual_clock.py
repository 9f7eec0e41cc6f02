"""Clocks that a test owns: `VirtualClock` stands still until it is moved, `InstantClock` never waits."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable


class _Entry:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Time passes only in `advance`."""

    def __init__(self, *, wall: float = 1_700_000_000.0) -> None:
        self.now = 0.0
        self._wall = wall
        self._heap: list[tuple[float, int, _Entry]] = []
        self._count = itertools.count()

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self._wall + self.now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Entry:
        entry = _Entry(callback)
        heapq.heappush(self._heap, (self.now + seconds, next(self._count), entry))
        return entry

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: future.done() or future.set_result(None))
        await future

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass; what becomes due runs at its own time, and everything it wakes runs before the next."""
        end = self.now + seconds
        await settle()
        while self._heap and self._heap[0][0] <= end:
            at, _, entry = heapq.heappop(self._heap)
            self.now = max(self.now, at)
            if entry.callback is not None:
                entry.callback()
                await settle()
        self.now = end


class InstantClock:
    """A wait is over at once and moves the clock by its length; `waits` holds the lengths."""

    def __init__(self, *, wall: float = 1_700_000_000.0) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self._wall = wall

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self._wall + self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        def due() -> None:
            self.now += seconds
            callback()

        return asyncio.get_running_loop().call_soon(due)


async def settle() -> None:
    """Run everything that is ready, and what it makes ready."""
    for _ in range(10):
        await asyncio.sleep(0)
