"""When a benchmark may end early: a rule that looks at the longest complete prefix of the seeded order alone.

Quick answers must not decide, so an attempt counts only when every problem before its own is complete. What was
attempted beyond the end is kept in `superseded.jsonl` and not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from nel.core.contract import canonical_json
from nel.core.errors import UsageError
from nel.metrics.sequential import METHOD, ConfidenceSequence
from nel.observability.records import Outcome, ScoreRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """What is known well enough: the mean reward itself, or whether it fell by more than may be."""

    half_width: float | None = None
    """End when the interval of the mean is this narrow on each side."""
    max_drop: float | None = None
    """End when it is decided whether the mean is lower than the baseline's by more than this."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """The baseline's mean rewards by `unit_key`, without repeats."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """The rule as it was written, for the records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Where a benchmark ended, and what was known then."""

    problems: int
    planned: int
    interval: tuple[float, float]
    difference: tuple[float, float] | None
    """The interval of the difference to the baseline, where that was the question."""

    def to_dict(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Plain values, for the bundle."""
        return {
            "rule": dict(said),
            "method": METHOD,
            "problems": self.problems,
            "planned": self.planned,
            "interval": list(self.interval),
            "difference": list(self.difference) if self.difference else None,
        }


class Stopper:
    """Takes scores as they come and tells when the rule holds; the same scores in any order end at the same problem."""

    def __init__(
        self, rule: StopRule, problems: int, repeats: int, bounds: tuple[float, float], *, errors_as_zero: bool
    ) -> None:
        self._rule = rule
        self._repeats = repeats
        self._planned = problems
        self._errors_as_zero = errors_as_zero
        self._left: npt.NDArray[np.int32] = np.full(problems, repeats, np.int32)
        self._sum = np.zeros(problems)
        self._count = np.zeros(problems, np.int32)
        self._keys: dict[int, str] = {}
        self._prefix = 0
        self._mean = ConfidenceSequence(bounds)
        width = bounds[1] - bounds[0]
        self._difference = ConfidenceSequence((-width, width))
        self.clustered = False
        """A problem declares a cluster: problems are not independent, and the rule never holds."""
        self.stopped: Stopped | None = None

    def take(self, position: int, content: str, score: ScoreRecord) -> bool:
        """Counts a score of the problem at `position`; whether the rule holds now."""
        if self.stopped is not None:
            return True
        self.clustered = self.clustered or score.cluster is not None
        if score.outcome is Outcome.SCORED and score.reward is not None:
            self._sum[position] += score.reward
            self._count[position] += 1
        elif score.outcome is Outcome.ERROR and self._errors_as_zero:
            self._count[position] += 1
        if self._rule.max_drop is not None:
            self._keys[position] = _unit_key(content, score)
        self._left[position] -= 1
        while self._prefix < self._planned and self._left[self._prefix] <= 0 and self.stopped is None:
            self._look(self._prefix)
            self._prefix += 1
        return self.stopped is not None

    def _look(self, position: int) -> None:
        key = self._keys.pop(position, None)
        if not self._count[position]:
            return
        value = float(self._sum[position] / self._count[position])
        self._mean.add(value)
        if key is not None and key in self._rule.baseline:
            self._difference.add(value - self._rule.baseline[key])
        if not self.clustered and self._holds():
            self.stopped = Stopped(
                problems=position + 1,
                planned=self._planned,
                interval=self._mean.interval,
                difference=self._difference.interval if self._rule.max_drop is not None else None,
            )

    def _holds(self) -> bool:
        if self._rule.half_width is not None:
            lower, upper = self._mean.interval
            return upper - lower <= 2 * self._rule.half_width
        lower, upper = self._difference.interval
        allowed = -(self._rule.max_drop or 0.0)
        return lower >= allowed or upper < allowed

    def known(self) -> Stopped:
        """What is known when every problem was attempted and the rule never held."""
        decides = self._rule.max_drop is not None
        return Stopped(
            problems=self._planned,
            planned=self._planned,
            interval=self._mean.interval,
            difference=self._difference.interval if decides else None,
        )


def bounds_of(declared: tuple[float, float] | None) -> tuple[float, float]:
    """The range of the rewards, which a rule needs; 0 to 1 where nothing is declared, as for right and wrong."""
    bounds = declared or (0.0, 1.0)
    if not all(map(math.isfinite, bounds)):
        raise UsageError("`stop_when` needs rewards between two finite bounds, which this benchmark does not declare")
    return bounds


def _unit_key(content: str, score: ScoreRecord) -> str:
    """As `RunView` has it."""
    return sha256(b"%b %b" % (content.encode(), canonical_json(score.expected_answer))).hexdigest()[:32]
