"""`Pool`: the one bounded worker pool of all three loops.

A fixed number of workers take units from an iterator, one at a time, so memory grows with the pool and not with the
work. A failed attempt is repeated when the retry policy says so; it waits for that outside its slot, and a worker
takes other work meanwhile.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

_PARKED_PER_SLOT = 4


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failures are attempted again, how often, and after how long.

    The delay before try n+1 is drawn from [0.5, 1] x min(`longest`, `base` * 2^(n-1)) seconds, so that units which
    failed together do not return together.
    """

    max_retries: int = 3
    base: float = 1.0
    longest: float = 30.0
    retryable: Callable[[Exception], bool] = field(default=lambda _error: True)
    jitter: Callable[[], float] = random.random

    def delay(self, error: Exception, tries: int) -> float | None:
        """Seconds to wait after try `tries` (1-based) failed with `error`; None means give up."""
        if tries > self.max_retries or not self.retryable(error):
            return None
        return min(self.longest, self.base * 2.0 ** (tries - 1)) * (0.5 + 0.5 * self.jitter())


class Pool[Unit]:
    """Runs `attempt(unit, tries)` for every unit, at most `size` at a time.

    `give_up(unit, error, tries)` is called once for a unit that the policy does not repeat. An exception of `give_up`
    ends the run; so does cancelling `run`, which cancels every attempt in progress and waits for it.
    """

    def __init__(
        self,
        size: int,
        attempt: Callable[[Unit, int], Awaitable[None]],
        give_up: Callable[[Unit, Exception, int], Awaitable[None]],
        policy: RetryPolicy | None = None,
    ) -> None:
        if size < 1:
            raise ValueError(f"a pool needs at least one worker, not {size}")
        self.size = size
        self.in_flight = 0
        self.retries = 0
        self._attempt = attempt
        self._give_up = give_up
        self._policy = policy or RetryPolicy()
        self._again: deque[tuple[Unit, int]] = deque()
        self._parked = 0
        self._wake = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """Take no further units; attempts in progress go on, and `run` returns when they have ended."""
        self._stopping = True
        self._wake.set()

    async def run(self, units: Iterable[Unit]) -> None:
        """Returns when every unit has been attempted or given up, or after `stop()`."""
        source = iter(units)
        async with asyncio.TaskGroup() as group:
            for _ in range(self.size):
                group.create_task(self._worker(source))

    async def _worker(self, source: Iterable[Unit]) -> None:
        units = iter(source)
        while not self._stopping:
            if self._again:
                unit, tries = self._again.popleft()
            else:
                try:
                    unit, tries = next(units), 1
                except StopIteration:
                    if not self._parked and not self._again:
                        self._wake.set()
                        return
                    self._wake.clear()
                    await self._wake.wait()
                    continue
            self.in_flight += 1
            try:
                await self._attempt(unit, tries)
            except Exception as error:
                await self._failed(unit, error, tries)
            finally:
                self.in_flight -= 1

    async def _failed(self, unit: Unit, error: Exception, tries: int) -> None:
        delay = self._policy.delay(error, tries)
        if delay is None:
            await self._give_up(unit, error, tries)
            return
        self.retries += 1
        if self._parked < self.size * _PARKED_PER_SLOT:
            self._parked += 1
            asyncio.get_running_loop().call_later(delay, self._return, unit, tries + 1)
        else:
            # In an outage everything fails: waiting in the slot keeps what is parked bounded.
            await asyncio.sleep(delay)
            self._again.append((unit, tries + 1))

    def _return(self, unit: Unit, tries: int) -> None:
        self._parked -= 1
        self._again.append((unit, tries))
        self._wake.set()
