"""`Replicas`: which of a service's URLs is asked next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nel.inference.clock import Clock

_REST = 5.0
_LONGEST_REST = 60.0


@dataclass(slots=True)
class Replica:
    """One URL and how it fares."""

    url: str
    in_flight: int = 0
    failures: int = 0
    """Connection failures since the last reply."""
    rests_until: float = 0.0


class Replicas:
    """The URLs of one service: the one with the fewest requests in flight is asked, in turn among equals.

    One that could not be reached rests for 5 s, doubling to 60 s while it goes on failing; when all rest, the one whose
    rest ends first is asked.
    """

    def __init__(self, urls: Sequence[str], clock: Clock) -> None:
        self._all = [Replica(url) for url in urls]
        self._clock = clock
        self._turn = 0

    def take(self) -> Replica:
        """The replica to ask; give it back with `put`."""
        best = self._all[0] if len(self._all) == 1 else self._choose()
        best.in_flight += 1
        return best

    def _choose(self) -> Replica:
        now = self._clock.monotonic()
        self._turn += 1
        order = self._all[self._turn % len(self._all) :] + self._all[: self._turn % len(self._all)]
        awake = [replica for replica in order if replica.rests_until <= now]
        if awake:
            return min(awake, key=lambda replica: replica.in_flight)
        return min(order, key=lambda replica: replica.rests_until)

    def put(self, replica: Replica, *, unreachable: bool) -> None:
        """Give a replica back and say whether its connection failed."""
        replica.in_flight -= 1
        if not unreachable:
            replica.failures = 0
            return
        replica.failures += 1
        rest = min(_LONGEST_REST, _REST * 2.0 ** min(replica.failures - 1, 8))
        replica.rests_until = self._clock.monotonic() + rest

    def another_awake(self) -> bool:
        """Whether a replica is left that does not rest."""
        now = self._clock.monotonic()
        return len(self._all) > 1 and any(replica.rests_until <= now for replica in self._all)
