"""Power: what a comparison of so many problems can see, and how many it takes to see so much."""

from __future__ import annotations

import math
from functools import lru_cache

from nel.decisions.bisection import bisect
from nel.metrics.intervals import normal_quantile, t_quantile

POWER = 0.8
ALPHA = 0.05
_NORMAL = 1_000_000
_FAR = 10.0
"""Standard errors from which a finding on the wrong side is impossible (below 1e-20), and scipy gives NaN for it."""
_MOST = 10**12
"""Problems beyond which a plan is no plan."""


def power_of(noncentrality: float, df: float, *, alpha: float = ALPHA) -> float:
    """The chance that a two-sided t test at level `alpha` finds a true difference of `noncentrality` standard errors.

    From the noncentral t distribution with `df` degrees of freedom; the power of a paired t test (Cohen 1988).
    Beyond a million degrees, where scipy's function loses digits, from the normal distribution, which t then is.
    """
    from scipy.special import nctdtr, ndtr

    if df > _NORMAL:
        critical = normal_quantile(1 - alpha)
        return float(ndtr(noncentrality - critical) + ndtr(-noncentrality - critical))
    critical = t_quantile(df, 1 - alpha)
    wrong_side = float(nctdtr(df, noncentrality, -critical)) if noncentrality < _FAR else 0.0
    return 1 - float(nctdtr(df, noncentrality, critical)) + wrong_side


@lru_cache(maxsize=1024)
def detectable(df: float, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """How many standard errors a true difference must have to be found with the chance `power`: 2.80 for many units.

    Times the standard error of a difference it is the minimum detectable effect, in score units.
    """
    high = 1.0
    while power_of(high, df, alpha=alpha) < power:
        high *= 2
    return bisect(lambda noncentrality: power_of(noncentrality, df, alpha=alpha) - power, 0.0, high)


def problems_needed(drop: float, deviation: float, *, power: float = POWER, alpha: float = ALPHA) -> int | None:
    """Fewest problems with which a true difference of `drop` is found with the chance `power`.

    `deviation` is the standard deviation of one problem's difference, in score units (times the square root of the
    design effect, where problems are clustered). None where it would take more than 10^12.
    """

    def enough(n: int) -> bool:
        return power_of(drop / deviation * math.sqrt(n), n - 1, alpha=alpha) >= power

    if deviation == 0:
        return 2
    high = 2
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high
