"""The non-inferiority rule: from an interval and an allowed drop to a verdict.

`docs/decisions.md` writes it down for users. Damage is a difference in the metric's bad direction; [low, high] its
two-sided 95 % interval. In this order:

1. BLOCK: low is above the allowed drop.
2. WARN: high is at most the allowed drop, and low is above 0.
3. PASS: high is at most the allowed drop.
4. INCONCLUSIVE: anything else.
"""

from __future__ import annotations

import math
from enum import StrEnum

from nel.core.errors import ExitCode
from nel.decisions.evidence import LEVEL, Evidence
from nel.metrics.intervals import Interval

_MOST = 10**12


class Verdict(StrEnum):
    """What a comparison says about shipping the candidate."""

    PASS = "PASS"  # noqa: S105 - a verdict
    WARN = "WARN"
    INCONCLUSIVE = "INCONCLUSIVE"
    BLOCK = "BLOCK"

    @property
    def exit_code(self) -> ExitCode:
        """What `nel compare --strict` tells the shell."""
        return {Verdict.PASS: ExitCode.OK, Verdict.BLOCK: ExitCode.FAILED}.get(self, ExitCode.INCONCLUSIVE)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict of several benchmarks: BLOCK, else INCONCLUSIVE, else WARN, else PASS; INCONCLUSIVE for none."""
    order = list(Verdict)
    return max(verdicts, key=order.index, default=Verdict.INCONCLUSIVE)


def damage_interval(evidence: Evidence, sign: float, level: float = LEVEL) -> Interval | None:
    """The interval of the damage: of `sign` times the difference."""
    found = evidence.interval(level)
    if found is None:
        return None
    ends = (sign * found[0], sign * found[1])
    return min(ends), max(ends)


def decide(damage: Interval | None, max_drop: float) -> Verdict:
    """The verdict by the rule above; without an interval nothing is decided."""
    if damage is None:
        return Verdict.INCONCLUSIVE
    low, high = damage
    if low > max_drop:
        return Verdict.BLOCK
    if high <= max_drop:
        return Verdict.WARN if low > 0 else Verdict.PASS
    return Verdict.INCONCLUSIVE


def more_units(evidence: Evidence, sign: float, n: int, max_drop: float) -> int | None:
    """How many further problems would decide, if they are like the `n` present ones and the difference stays as it is.

    None where no number would do: the damage equals the allowed drop, or there is no interval.
    """

    def decided(factor: float) -> bool:
        return decide(damage_interval(evidence.scaled(factor), sign), max_drop) is not Verdict.INCONCLUSIVE

    high = 1.0
    while not decided(high):
        high *= 2
        if high * n > _MOST:
            return None
    low = high / 2
    while (high - low) * n > 0.5:
        middle = (low + high) / 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return max(1, math.ceil(high * n) - n)
