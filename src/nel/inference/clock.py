"""`Clock`: time as the client and its limits see it, so that a test can own it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is still to come."""

    def cancel(self) -> None:
        """Forget it; harmless when it has happened."""


class Clock(Protocol):
    """Two readings and two ways to wait."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    def wall(self) -> float:
        """Unix seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` in the running loop after `seconds`."""
        ...


class SystemClock:
    """The machine's clock and the running event loop's timers."""

    monotonic = staticmethod(time.perf_counter)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` in the running loop after `seconds`."""
        return asyncio.get_running_loop().call_later(seconds, callback)
