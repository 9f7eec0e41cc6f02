"""Percentile bootstrap intervals, reproducible and fast where values repeat."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nel.metrics.grouping import Floats, Ints, finite
from nel.metrics.intervals import Interval, checked_level

FEW = 64
"""Up to so many different units one multinomial draw per resample beats picking units one by one."""
_CHUNK = 1 << 18
"""Units drawn at a time: 2 MB of places, which stay in the cache."""


def bootstrap_ci(
    values: ArrayLike, *, level: float = 0.95, draws: int = 10_000, seed: int = 42, clusters: ArrayLike | None = None
) -> Interval | None:
    """The percentile bootstrap interval of the mean of `values`, one value per problem (Efron 1979).

    With `clusters`, an integer code per value, whole clusters are drawn. Same input and seed, same interval, in any
    order of the values. None where resampling can tell nothing: fewer than two values or clusters, or all equal.
    `ValueError` on NaN, infinity, or fewer than 100 draws.
    """
    checked_level(level)
    if draws < 100:
        raise ValueError(f"{draws} draws cannot show the tails of a distribution; use at least 100")
    data = finite(values)
    units, counts = _units(data, clusters)
    total = int(counts.sum())
    if total < 2 or len(units) == 1:
        return None
    means = _resampled(units, counts, draws, np.random.default_rng(seed))
    lower, upper = np.quantile(means, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return (lower, upper) if lower < upper else None


def _units(values: Floats, clusters: ArrayLike | None) -> tuple[Floats, Ints]:
    """The different units, each a row of (sum, size), and how often each occurs."""
    if clusters is None:
        different, counts = np.unique(values, return_counts=True)
        return np.stack([different, np.ones_like(different)], axis=1), counts
    codes = np.asarray(clusters)
    if codes.shape != values.shape:
        raise ValueError(f"{values.size} values but {codes.size} clusters: there must be one cluster per value")
    order = np.lexsort((values, codes))
    place = np.unique(codes[order], return_inverse=True)[1]
    rows = np.stack([np.bincount(place, weights=values[order]), np.bincount(place)], axis=1)
    return np.unique(rows, axis=0, return_counts=True)


def _resampled(units: Floats, counts: Ints, draws: int, random: np.random.Generator) -> Floats:
    """The mean of each of `draws` resamples."""
    total = int(counts.sum())
    if len(units) <= FEW:
        sums = random.multinomial(total, counts / total, size=draws) @ units
        return np.asarray(sums[:, 0] / sums[:, 1])
    sums, sizes = np.repeat(units, counts, axis=0).T.copy()
    rows = max(1, _CHUNK // total)
    means = np.empty(draws)
    for start in range(0, draws, rows):
        picked = random.integers(0, total, size=(min(rows, draws - start), total))
        means[start : start + rows] = sums.take(picked).sum(axis=1) / sizes.take(picked).sum(axis=1)
    return means
