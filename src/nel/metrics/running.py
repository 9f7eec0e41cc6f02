"""`RunningMean`: the estimate of a mean while attempts are still coming, for a display that redraws often."""

from __future__ import annotations

import math
from array import array

from nel.metrics.intervals import Interval, t_interval, wilson_interval


class RunningMean:
    """The mean over problems so far and its interval, in constant time an attempt and 12 bytes a problem.

    It follows `estimate_mean` without clusters: repeats are averaged by problem, Wilson where every problem's mean is
    0 or 1, else Student's t. The final numbers come from `estimate_mean`, which also knows clusters and bounds.
    """

    def __init__(self, problems: int) -> None:
        self._sums = array("d", bytes(8 * problems))
        self._counts = array("I", bytes(array("I").itemsize * problems))
        self._n = 0
        self._total = 0.0
        self._squares = 0.0
        self._between = 0
        """Problems whose mean is neither 0 nor 1."""

    def add(self, problem: int, value: float) -> None:
        """Count one scored attempt at `problem`, which is its place among the `problems`, from 0."""
        count = self._counts[problem]
        if count:
            self._note(self._sums[problem] / count, -1)
        self._counts[problem] = count + 1
        self._sums[problem] += value
        self._note(self._sums[problem] / (count + 1), 1)

    def _note(self, mean: float, sign: int) -> None:
        self._n += sign
        self._total += sign * mean
        self._squares += sign * mean * mean
        self._between += sign * (mean not in {0.0, 1.0})

    @property
    def mean(self) -> float | None:
        """The mean over the problems with a scored attempt."""
        return self._total / self._n if self._n else None

    def interval(self, level: float = 0.95) -> Interval | None:
        """Its interval; None with fewer than two problems, or where all have one mean that is neither 0 nor 1."""
        mean, n = self.mean, self._n
        if mean is None or n < 2:
            return None
        if not self._between:
            return wilson_interval(round(self._total), n, level)
        variance = (self._squares - n * mean * mean) / (n - 1)
        if variance <= 1e-12 * mean * mean:
            return None
        return t_interval(mean, math.sqrt(variance / n), n - 1, level)
