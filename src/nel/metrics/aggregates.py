"""Scores of a whole benchmark that are no mean of its rewards, made of the means of several metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nel.metrics.estimate import Estimate
from nel.metrics.grouping import Floats

DRAWS = 10_000
_SEED = 42
_ROWS = 1 << 21
"""Numbers of a block of resamples: 16 MB."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of the means of some metrics."""

    arguments: tuple[str, ...]
    """What each mean is, for messages."""
    function: Callable[..., Floats]
    """Of one array for each argument; elementwise."""


def _f_score(correct: Floats, attempted: Floats) -> Floats:
    """The harmonic mean of the share of correct answers and the share of correct ones among those attempted (Wei et al.
    2024): with C and A the means, 2 C (C / A) / (C + C / A) = 2 C / (A + 1)."""
    return 2 * correct / (attempted + 1)


def _clipped_mean(reward: Floats) -> Floats:
    """The mean, at least 0 and at most 1 (Arora et al. 2025)."""
    return np.clip(reward, 0.0, 1.0)


AGGREGATES: dict[str, Aggregate] = {
    "f_score": Aggregate(("correct", "attempted"), _f_score),
    "clipped_mean": Aggregate(("reward",), _clipped_mean),
}


def estimate_aggregate(
    name: str,
    columns: Sequence[ArrayLike],
    problems: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    cluster_by: str = "cluster",
    unscored: int = 0,
    error: int = 0,
    level: float = 0.95,
) -> Estimate:
    """An aggregate with its percentile bootstrap interval, problems (or declared clusters) resampled whole.

    Args:
        name: one of `AGGREGATES`.
        columns: for each argument the values of the attempts for which all of them are known.
        problems: the problem of each attempt; repeats are averaged first.
        clusters: an integer code per attempt, where clusters are declared.
        cluster_by: what the clusters are.
        unscored: attempts left out because they could not be graded.
        error: attempts left out because they were not measured.
        level: the interval's confidence level.
    """
    function = AGGREGATES[name].function
    values = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    scored = len(values)
    if not scored:
        return _estimate(None, None, 0, "none: nothing was scored", level, scored, unscored, error, None)
    _, first, place, sizes = np.unique(problems, return_index=True, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(place, weights=column) / sizes for column in values.T], axis=1)
    value = float(function(*means.mean(axis=0)))
    groups = (
        np.arange(len(means)) if clusters is None else np.unique(np.asarray(clusters)[first], return_inverse=True)[1]
    )
    count = int(groups.max()) + 1
    by = "" if clusters is None else f", clustered by {cluster_by}"
    if count < 2:
        return _estimate(value, None, len(means), f"none: one problem{by}", level, scored, unscored, error, count)
    interval = _interval(function, means, groups, count, level)
    method = f"bootstrap{by}" if interval else "none: all problems are alike"
    shown = None if clusters is None else count
    return _estimate(value, interval, len(means), method, level, scored, unscored, error, shown)


def _interval(
    function: Callable[..., Floats], means: Floats, groups: np.ndarray, count: int, level: float
) -> tuple[float, float] | None:
    sums = np.stack([np.bincount(groups, weights=column) for column in means.T], axis=1)
    units, multiplicity = np.unique(
        np.column_stack([sums, np.bincount(groups)]), axis=0, return_counts=True
    )  # few different ones, where answers are right or wrong
    random = np.random.default_rng(_SEED)
    found = []
    rows = max(1, _ROWS // len(units))
    for start in range(0, DRAWS, rows):
        drawn = random.multinomial(count, multiplicity / count, size=min(rows, DRAWS - start)) @ units
        found.append(function(*(drawn[:, :-1] / drawn[:, -1:]).T))
    lower, upper = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2]).tolist()
    return (lower, upper) if lower < upper else None


def _estimate(
    value: float | None,
    interval: tuple[float, float] | None,
    n: int,
    method: str,
    level: float,
    scored: int,
    unscored: int,
    error: int,
    clusters: int | None,
) -> Estimate:
    return Estimate(
        value=value,
        ci_lower=interval[0] if interval else None,
        ci_upper=interval[1] if interval else None,
        stderr=None,
        n=n,
        method=method,
        level=level,
        scored=scored,
        unscored=unscored,
        error=error,
        clusters=clusters,
    )
