"""When a failed request is asked again: full jitter, and what the server says of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Protocol


class RandomSource(Protocol):
    """Where jitter comes from; `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between the tries of one request, in seconds.

    The wait before try k+1 is uniform in [0, min(cap, base * 2^(k-1))] ("full jitter", AWS Architecture Blog, 2015),
    or what the server asks for in `Retry-After` where that is longer; never more than `cap`.
    """

    base: float = 1.0
    cap: float = 60.0

    def delay(self, tries: int, retry_after: str | None, now: float, source: RandomSource) -> float:
        """Seconds to wait after `tries` tries; `now` is in Unix seconds."""
        jittered = source.random() * min(self.cap, self.base * 2.0 ** min(tries - 1, 32))
        asked = parse_retry_after(retry_after, now) if retry_after is not None else None
        return jittered if asked is None else max(jittered, min(asked, self.cap))


def parse_retry_after(value: str, now: float) -> float | None:
    """Seconds that a `Retry-After` header asks for (RFC 9110 10.2.3: seconds, or a date); None where it says neither.

    `now` is in Unix seconds. A date that has passed is 0. Fractions of a second, which some servers send, are read.
    """
    text = value.strip()
    try:
        seconds = float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        seconds = None
    if seconds is not None:
        return seconds if 0 <= seconds < float("inf") else None
    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
