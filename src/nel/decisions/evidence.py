"""Evidence: what paired units say of a true difference, as an interval and as p-values that always agree with it.

`difference_of` chooses the kind. Differences are candidate minus baseline, in score units, over problems: repeats are
averaged before, and problems of one cluster are never counted as independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from nel.decisions.bisection import bisect
from nel.metrics.grouping import Bounds, Floats, Ints
from nel.metrics.intervals import Interval, exact_sum, normal_quantile, residual_sums, robust_se, t_interval

LEVEL = 0.95
_EQUAL = 1e-12
"""Differences that differ by less, relative to their size, are equal but for rounding."""


_NOTHING = 1e-100
"""A limit whose square underflows."""


class Evidence(Protocol):
    """What the data say of a true difference."""

    @property
    def value(self) -> float:
        """The difference that was observed."""
        ...

    @property
    def method(self) -> str:
        """Names the interval and what it is clustered by."""
        ...

    @property
    def df(self) -> float:
        """Degrees of freedom for power: independent units less one."""
        ...

    @property
    def stderr(self) -> float:
        """Standard error of the difference."""
        ...

    def interval(self, level: float = LEVEL) -> Interval | None:
        """The two-sided interval of the true difference; None where the data carry none."""
        ...

    def p_above(self, limit: float) -> float:
        """One-sided p-value against "the true difference is at most `limit`": small where it is above."""
        ...

    def p_below(self, limit: float) -> float:
        """One-sided p-value against "the true difference is at least `limit`": small where it is below."""
        ...

    def scaled(self, factor: float) -> Evidence:
        """What `factor` times as many units, like the present ones, would say."""
        ...


@dataclass(frozen=True, slots=True)
class StudentT:
    """Student's t on the differences, with a cluster-robust standard error (`docs/statistics.md`)."""

    value: float
    stderr: float
    df: float
    method: str

    def interval(self, level: float = LEVEL) -> Interval:
        """The difference plus and minus a t quantile of standard errors."""
        return t_interval(self.value, self.stderr, max(1, round(self.df)), level)

    def p_above(self, limit: float) -> float:
        """The upper tail of t beyond the observed distance from `limit`."""
        return self._tail((limit - self.value) / self.stderr)

    def p_below(self, limit: float) -> float:
        """The lower tail, likewise."""
        return self._tail((self.value - limit) / self.stderr)

    def scaled(self, factor: float) -> StudentT:
        """The standard error falls with the root."""
        return replace(self, stderr=self.stderr / math.sqrt(factor), df=(self.df + 1) * factor - 1)

    def _tail(self, t: float) -> float:
        from scipy.special import stdtr

        return float(stdtr(self.df, t))


@dataclass(frozen=True, slots=True)
class PairedProportions:
    """Tango's score interval for right or wrong asked once of each problem (Tango, Statistics in Medicine 17, 1998).

    Inverts the score test whose statistic at 0 is McNemar's; holds its level also with few problems that differ,
    where Student's t does not.
    """

    up: float
    """Problems that only the candidate solves."""
    down: float
    """Problems that only the baseline solves."""
    n: float
    method: str = "tango score"

    @property
    def value(self) -> float:
        """The difference of the two shares."""
        return (self.up - self.down) / self.n

    @property
    def df(self) -> float:
        """Problems less one."""
        return self.n - 1

    @property
    def stderr(self) -> float:
        """From the interval, so that it is not 0 where no problem differs."""
        lower, upper = self.interval()
        return (upper - lower) / (2 * normal_quantile(LEVEL))

    def interval(self, level: float = LEVEL) -> Interval:
        """All differences that the score test does not refuse; within [-1, 1]."""
        z = normal_quantile(level)
        return (
            bisect(lambda limit: z - self._score(limit), -1.0, self.value),
            bisect(lambda limit: -z - self._score(limit), self.value, 1.0),
        )

    def p_above(self, limit: float) -> float:
        """The score test's upper tail."""
        return _normal_tail(self._score(limit))

    def p_below(self, limit: float) -> float:
        """The score test's lower tail."""
        return _normal_tail(-self._score(limit))

    def scaled(self, factor: float) -> PairedProportions:
        """The same shares of more problems."""
        return replace(self, up=self.up * factor, down=self.down * factor, n=self.n * factor)

    def _score(self, limit: float) -> float:
        """Observed minus `limit` in standard errors, those being what they would be if `limit` were true."""
        up, down, n = self.up, self.down, self.n
        limit = limit if abs(limit) > _NOTHING else 0.0
        distance = up - down - n * limit
        if distance == 0:
            return 0.0
        b = -up - down + (2 * n - up + down) * limit
        c = -down * limit * (1 - limit)
        share = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = n * (2 * share + limit * (1 - limit))
        return distance / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, distance)


@dataclass(frozen=True, slots=True)
class AllEqual:
    """Every independent unit shows the same difference: another one is rare, and at worst as large as the range.

    The share of units that would differ is at most Wilson's upper bound for 0 of `units`, as in `estimate_mean`.
    """

    value: float
    units: float
    bounds: Bounds
    """Least and greatest difference possible."""
    method: str

    @property
    def df(self) -> float:
        """Units less one."""
        return self.units - 1

    @property
    def stderr(self) -> float:
        """From the interval."""
        lower, upper = self.interval() or (self.value, self.value)
        return (upper - lower) / (2 * normal_quantile(LEVEL))

    def interval(self, level: float = LEVEL) -> Interval | None:
        """The observed difference, moved towards either bound by the share that may differ; None without a range."""
        lower, upper = self.bounds
        if lower == upper:
            return None
        z = normal_quantile(level)
        share = z * z / (self.units + z * z)
        return self.value - share * (self.value - lower), self.value + share * (upper - self.value)

    def p_above(self, limit: float) -> float:
        """The level at which the interval's lower end would be `limit`."""
        return self._tail(self.value - limit, self.value - self.bounds[0])

    def p_below(self, limit: float) -> float:
        """The level at which the interval's upper end would be `limit`."""
        return self._tail(limit - self.value, self.bounds[1] - self.value)

    def scaled(self, factor: float) -> AllEqual:
        """More units, still without a difference between them."""
        return replace(self, units=self.units * factor)

    def _tail(self, distance: float, room: float) -> float:
        if distance <= 0:
            return 1.0
        share = distance / room if room > 0 else 1.0
        return 0.0 if share >= 1 else _normal_tail(math.sqrt(share * self.units / (1 - share)))


@dataclass(frozen=True, slots=True)
class NoEvidence:
    """Too little to tell anything."""

    value: float
    method: str
    df: float = 0
    stderr: float = math.nan

    def interval(self, level: float = LEVEL) -> None:
        """None."""

    def p_above(self, limit: float) -> float:  # noqa: ARG002 - the protocol's signature
        """1."""
        return 1.0

    p_below = p_above

    def scaled(self, factor: float) -> NoEvidence:  # noqa: ARG002 - the protocol's signature
        """Itself."""
        return self


def difference_of(
    differences: Floats,
    clusters: Ints | None,
    *,
    bounds: Bounds | None,
    single: bool,
    cluster_by: str = "cluster",
    what: str = "t",
) -> Evidence:
    """The evidence of one difference per problem.

    `clusters` holds a code per problem, None where each stands alone. `bounds` is the range of one score. `single`:
    the differences are of right or wrong answers, asked once, so each is -1, 0 or 1. `what` names the plain method.
    """
    n = int(differences.size)
    if n == 0:
        return NoEvidence(math.nan, "none: no paired problem")
    value = exact_sum(differences) / n
    by = f", clustered by {cluster_by}" if clusters is not None else ""
    if single and clusters is None and n > 1:
        return PairedProportions(int((differences > 0).sum()), int((differences < 0).sum()), n)
    sums = residual_sums(differences, clusters)
    units = int(sums.size)
    if units < 2:
        return NoEvidence(value, f"none: all paired problems in one {cluster_by}" if by else "none: one paired problem")
    if np.abs(sums).max() <= max(_EQUAL * float(np.abs(differences).max()), 1e-150):
        span = bounds[1] - bounds[0] if bounds else 0.0
        alike = cluster_by if by else "problem"
        return AllEqual(value, units, (-span, span), f"wilson bound, every {alike} shows the same difference")
    return StudentT(value, robust_se(sums, n), units - 1, f"{what}{by}")


def _normal_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2
