"""`Limits`: how much of a service is used at once and a minute, shared by everything that uses the service."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import Enum

from nel.inference.clock import Clock, Timer

_IN_USE = 0.8  # the limit is raised only when this share of it was in use
_CUT = 0.8
_FIRST = 8  # where slow start begins


class Verdict(Enum):
    """What a request told of the service's load."""

    ANSWERED = "answered"
    OVERLOADED = "overloaded"
    NOTHING = "nothing"


class AdaptiveLimit:
    """A number of requests in flight that finds what a service bears.

    It doubles each round (as many answers as the limit) until the service first asks for less load, then rises by one
    each round; it falls to 0.8 of itself on overload, once for all the requests that were sent before the fall. It
    stays within [1, ceiling] and rises only when at least 0.8 of it was in use.
    """

    __slots__ = ("_answers", "_peak", "_slow_start", "ceiling", "epoch", "value")

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.value = min(_FIRST, ceiling)
        self.epoch = 0
        """How often the limit was cut; a request remembers the epoch it was sent in."""
        self._slow_start = True
        self._answers = 0
        self._peak = 0

    def used(self, in_flight: int) -> None:
        """Note how many requests are in flight."""
        self._peak = max(self._peak, in_flight)

    def answered(self, in_flight: int) -> None:
        """Note an answer that came while `in_flight` requests (itself included) were in flight."""
        self._answers += 1
        if self._answers < self.value:
            return
        if self.value < self.ceiling and self._peak >= _IN_USE * self.value:
            self.value = min(self.ceiling, self.value * 2 if self._slow_start else self.value + 1)
        self._answers = 0
        self._peak = in_flight

    def overloaded(self, epoch: int) -> None:
        """Cut the limit, unless it was cut after the request of `epoch` was sent."""
        if epoch != self.epoch:
            return
        self.epoch += 1
        self._slow_start = False
        self._answers = 0
        self._peak = 0
        self.value = max(1, int(self.value * _CUT))


class TokenBucket:
    """At most `per_minute` units in any 60 seconds, plus what one request is larger than the bucket.

    The bucket holds `burst` seconds' worth and refills a little slower than `per_minute`, so that a full bucket and
    what flows in during the next minute are together no more than `per_minute`. It may go below zero: a request that is
    larger than the bucket waits for a full one and leaves a debt.
    """

    def __init__(self, per_minute: float, clock: Clock, *, burst: float = 1.0) -> None:
        self.capacity = max(1.0, per_minute * burst / 60)
        self._rate = max(per_minute - self.capacity + 1, per_minute / 2) / 60
        self._clock = clock
        self._level = self.capacity
        self._at = clock.monotonic()

    def delay(self, amount: float) -> float:
        """Seconds until `amount` may be taken; 0 when it may be taken now."""
        now = self._clock.monotonic()
        self._level = min(self.capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        missing = min(amount, self.capacity) - self._level
        return missing / self._rate if missing > 1e-9 * self.capacity else 0.0

    def take(self, amount: float) -> None:
        """Take `amount`, whether it is there or not."""
        self._level -= amount

    def give(self, amount: float) -> None:
        """Give back what was taken and not used (negative: take what was used beyond it)."""
        self._level = min(self.capacity, self._level + amount)


@dataclass(slots=True)
class Permit:
    """The right to one request; given back exactly once with `Limits.release`."""

    tokens: int
    epoch: int


class Limits:
    """Slots, requests a minute and tokens a minute of one service, given out first come, first served.

    All methods belong to one event loop. A waiter or holder that is cancelled leaks nothing: a cancelled waiter takes
    no slot, a holder releases in its `finally`.
    """

    def __init__(
        self,
        *,
        max_concurrent: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        adaptive: bool = True,
        clock: Clock,
    ) -> None:
        self.in_flight = 0
        self._clock = clock
        self._max = max_concurrent
        self._adaptive = AdaptiveLimit(max_concurrent) if adaptive else None
        self._requests = TokenBucket(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = TokenBucket(tokens_per_minute, clock, burst=5.0) if tokens_per_minute else None
        self._waiters: deque[tuple[asyncio.Future[Permit], int]] = deque()
        self._timer: Timer | None = None

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return self._adaptive.value if self._adaptive is not None else self._max

    @property
    def counts_tokens(self) -> bool:
        """Whether `acquire` needs an estimate of tokens."""
        return self._tokens is not None

    @property
    def waiting(self) -> int:
        """How many wait for a permit."""
        return sum(not future.done() for future, _ in self._waiters)

    async def acquire(self, tokens: int = 0) -> Permit:
        """A permit for one request of about `tokens` tokens, in the order of the calls."""
        if not self._waiters and self.in_flight < self.limit and self._delay(tokens) == 0:
            return self._grant(tokens)
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._waiters.append((future, tokens))
        self._pump()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result(), used=0)
            else:
                future.cancel()
                self._pump()
            raise

    def release(self, permit: Permit, *, used: int | None = None, verdict: Verdict = Verdict.NOTHING) -> None:
        """Give `permit` back; `used` tokens replace the estimate where they are known."""
        if self._adaptive is not None:
            if verdict is Verdict.ANSWERED:
                self._adaptive.answered(self.in_flight)
            elif verdict is Verdict.OVERLOADED:
                self._adaptive.overloaded(permit.epoch)
        self.in_flight -= 1
        if self._tokens is not None and used is not None:
            self._tokens.give(permit.tokens - used)
        if self._waiters:
            self._pump()

    def _delay(self, tokens: int) -> float:
        wait = self._requests.delay(1) if self._requests is not None else 0.0
        return max(wait, self._tokens.delay(tokens)) if self._tokens is not None else wait

    def _grant(self, tokens: int) -> Permit:
        self.in_flight += 1
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)
        if self._adaptive is None:
            return Permit(tokens, 0)
        self._adaptive.used(self.in_flight)
        return Permit(tokens, self._adaptive.epoch)

    def _pump(self) -> None:
        """Serve the waiters whose turn it is."""
        waiters = self._waiters
        while waiters:
            future, tokens = waiters[0]
            if future.done():
                waiters.popleft()
                continue
            if self.in_flight >= self.limit:
                return
            delay = self._delay(tokens)
            if delay > 0:
                self._pump_after(delay)
                return
            waiters.popleft()
            future.set_result(self._grant(tokens))

    def _pump_after(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay, self._pump)
