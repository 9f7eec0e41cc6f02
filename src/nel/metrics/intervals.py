"""Closed-form intervals and standard errors.

Everything here takes and gives plain numbers. `docs/statistics.md` says which one is used when.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from nel.metrics.grouping import group

Interval = tuple[float, float]


@lru_cache(maxsize=64)
def normal_quantile(level: float) -> float:
    """How many standard errors a two-sided normal interval reaches from its centre: 1.96 at 0.95.

    From the standard library (Wichura 1988, algorithm AS 241, exact to double precision): the commonest interval
    then needs no scipy.
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + checked_level(level)) / 2)


@lru_cache(maxsize=4096)
def t_quantile(df: int, level: float) -> float:
    """The same for Student's t with `df` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + checked_level(level)) / 2))


def checked_level(level: float) -> float:
    """`level` itself; `ValueError` unless it lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1 (0.95 is usual), not {level}")
    return level


def wilson_interval(successes: int, n: int, level: float = 0.95) -> Interval:
    """The score interval of a proportion, within [0, 1] and of positive width also at 0 and n successes.

    Wilson 1927; Brown, Cai and DasGupta 2001 compare it with its rivals. `ValueError` unless 0 <= successes <= n >= 1.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}: a proportion needs 0 <= successes <= n and n >= 1")
    z = normal_quantile(level)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    lower = 0.0 if successes == 0 else max(0.0, centre - half)
    upper = 1.0 if successes == n else min(1.0, centre + half)
    return lower, upper


def normal_ci(mean: float, stderr: float, level: float = 0.95) -> Interval:
    """`mean` plus and minus a normal quantile of standard errors; for large n only."""
    half = normal_quantile(level) * stderr
    return mean - half, mean + half


def t_interval(mean: float, stderr: float, df: int, level: float = 0.95) -> Interval:
    """`mean` plus and minus a quantile of Student's t with `df` >= 1 degrees of freedom, times `stderr`."""
    if df < 1:
        raise ValueError(f"a t interval needs at least 1 degree of freedom, not {df}")
    half = t_quantile(df, level) * stderr
    return mean - half, mean + half


def clustered_se(values: ArrayLike, clusters: ArrayLike | None = None) -> float:
    """Standard error of the mean of `values`, whose residuals may be correlated within a cluster.

    `clusters` holds an integer code per value; without it every value is its own cluster and the result is the usual
    s / sqrt(n). With G clusters and residuals e: sqrt(G / (G - 1) * sum over clusters of (sum of e)^2) / n, which is
    Miller 2024 ("Adding Error Bars to Evals") with the small-sample factor that statsmodels applies too.
    `ValueError` with fewer than two clusters.
    """
    data = np.asarray(values, dtype=np.float64)
    sums = residual_sums(data, None if clusters is None else np.asarray(clusters))
    if sums.size < 2:
        raise ValueError("a standard error needs at least two clusters")
    return robust_se(sums, data.size)


def robust_se(sums: NDArray[np.float64], n: int) -> float:
    """The standard error of a mean of `n` values from its `residual_sums`, of which there are at least two."""
    return math.sqrt(sums.size / (sums.size - 1) * exact_sum(sums * sums)) / n


def residual_sums(data: NDArray[np.float64], clusters: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Per cluster the sum of its values' distances from the mean of all values."""
    residuals = data - exact_sum(data) / data.size
    if clusters is None:
        return residuals
    order = np.lexsort((residuals, clusters))
    codes = np.unique(clusters[order], return_inverse=True)[1]
    return np.bincount(codes, weights=residuals[order])


def exact_sum(values: NDArray[np.float64]) -> float:
    """The correctly rounded sum, which no order of the values and no processor changes."""
    return math.fsum(values.tolist())


class TwoLevel(msgspec.Struct, kw_only=True, frozen=True):
    """Where the uncertainty of a mean over problems comes from: the choice of problems, and chance within each."""

    stderr: float
    """Of the mean over problems, both sources together: equal to the t interval's standard error."""
    stderr_between: float | None
    """What would be left with endless repeats of these problems; more problems reduce it."""
    stderr_within: float | None
    """With these very problems, what asking again would change; more repeats reduce it."""
    between_variance: float | None
    """Variance of the problems' true means, not below 0."""
    within_variance: float | None
    """Mean variance of attempts at one problem; None without repeats, as are the other parts."""
    problems: int
    attempts: int


def two_level_se(values: ArrayLike, problems: ArrayLike) -> TwoLevel:
    """The standard error of a mean over problems, split into its two sources by analysis of variance.

    With r_i attempts at problem i and pooled variance w within problems, asking again contributes
    w * mean(1 / r_i) / n; the rest of the variance of the n problem means over n is due to the choice of problems
    (Miller 2024, section 3.2). `ValueError` with fewer than two problems or a value that is not finite.
    """
    attempts = group(values, problems)
    n = attempts.means.size
    if n < 2:
        raise ValueError("splitting a standard error needs at least two problems")
    stderr = clustered_se(attempts.means)
    counts = attempts.counts
    freedom = int(counts.sum()) - n
    if freedom == 0:
        return TwoLevel(
            stderr=stderr,
            stderr_between=None,
            stderr_within=None,
            between_variance=None,
            within_variance=None,
            problems=n,
            attempts=n,
        )
    within = exact_sum(attempts.squares) / freedom
    chance = within * exact_sum(1 / counts) / n
    between = max(0.0, stderr * stderr * n - chance)
    return TwoLevel(
        stderr=stderr,
        stderr_between=math.sqrt(between / n),
        stderr_within=math.sqrt(chance / n),
        between_variance=between,
        within_variance=within,
        problems=n,
        attempts=int(counts.sum()),
    )
