"""The estimate of a mean: which interval, clustered by what.

A problem is the unit. Its repeats are averaged first and never counted as independent; problems that share a declared
cluster are not independent either. `docs/statistics.md` gives the reasons.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nel.core.contract import canonical_json
from nel.metrics.estimate import Estimate
from nel.metrics.grouping import Bounds, Clusters, Floats, Ints, finite, group, within
from nel.metrics.intervals import (
    Interval,
    checked_level,
    exact_sum,
    residual_sums,
    robust_se,
    t_interval,
    wilson_interval,
)


def estimate_mean(
    values: ArrayLike,
    problems: ArrayLike,
    *,
    clusters: Clusters | None = None,
    cluster_by: str = "cluster",
    bounds: Bounds | None = None,
    unscored: int = 0,
    error: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The mean over problems of the per-problem means of `values`, with its interval.

    `values` are the rewards of scored attempts, `problems` an integer id for each. `clusters` names the cluster of
    each (None, or a negative integer in an integer array: the problem stands alone) and `cluster_by` what the clusters
    are, for the method. `bounds` declares the range of the rewards and clips the interval; rewards that are all 0 or 1
    are taken to lie in (0, 1) where nothing else is declared. `unscored` and `error` are counts to be shown beside
    the value. The order of the attempts does not matter. `ValueError` on NaN, infinity, a value outside
    `bounds`, a problem in two clusters, or lengths that differ.
    """
    data = finite(values)
    return _estimate(
        data,
        problems,
        clusters,
        cluster_by=cluster_by,
        bounds=within(data, bounds),
        unscored=unscored,
        error=error,
        level=level,
    )


def category_breakdown(
    values: ArrayLike,
    problems: ArrayLike,
    categories: Sequence[Hashable],
    *,
    clusters: Clusters | None = None,
    cluster_by: str = "cluster",
    bounds: Bounds | None = None,
    unscored: Mapping[str, int] | None = None,
    error: Mapping[str, int] | None = None,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """The `Estimate` of each category, by name in alphabetical order.

    `categories` holds the value of some field for each attempt: a text stands for itself, any other value for its JSON;
    None is in no category. `unscored` and `error` count such attempts by category; a category that has only those
    appears with a None value. The other parameters are those of `estimate_mean`.
    """
    data, ids = finite(values), np.asarray(problems)
    if len(categories) != data.size:
        raise ValueError(f"{data.size} values but {len(categories)} categories: there must be one per value")
    resolved = within(data, bounds)
    unscored, error = unscored or {}, error or {}
    places: dict[str, list[int]] = {name: [] for name in (*unscored, *error)}
    labels: dict[Hashable, list[int]] = {}
    for at, category in enumerate(categories):
        if category is None:
            continue
        key = (type(category), category)
        if key not in labels:
            labels[key] = places.setdefault(_label(category), [])
        labels[key].append(at)
    breakdown: dict[str, Estimate] = {}
    for name in sorted(places):
        chosen = np.array(places[name], dtype=np.int64)
        breakdown[name] = _estimate(
            data[chosen],
            ids[chosen],
            _chosen(clusters, chosen),
            cluster_by=cluster_by,
            bounds=resolved,
            unscored=unscored.get(name, 0),
            error=error.get(name, 0),
            level=level,
        )
    return breakdown


def _estimate(
    values: Floats,
    problems: ArrayLike,
    clusters: Clusters | None,
    *,
    cluster_by: str,
    bounds: Bounds | None,
    unscored: int,
    error: int,
    level: float,
) -> Estimate:
    attempts = group(values, problems, clusters)
    return estimate_problems(
        Problems(attempts.means, attempts.clusters, attempts.cluster_count, repeated=attempts.repeated),
        cluster_by=cluster_by,
        bounds=bounds,
        level=level,
        scored=values.size,
        unscored=unscored,
        error=error,
    )


@dataclass(frozen=True, slots=True)
class Problems:
    """One number per problem, and what makes the problems dependent."""

    values: Floats
    clusters: Ints | None
    cluster_count: int | None
    repeated: bool


def estimate_problems(
    problems: Problems,
    *,
    cluster_by: str,
    bounds: Bounds | None,
    level: float,
    scored: int,
    unscored: int,
    error: int,
    excluded: int = 0,
    note: str = "",
) -> Estimate:
    """The `Estimate` of the mean of one number per problem; `note` is added to the method."""
    checked_level(level)
    values = problems.values
    n = int(values.size)
    value = exact_sum(values) / n if n else None
    stderr, interval, method = _interval(problems, value, cluster_by=cluster_by, bounds=bounds, level=level)
    if value is None and excluded:
        method = "none: no problem has enough scored attempts"
    return Estimate(
        value=value,
        ci_lower=interval[0] if interval else None,
        ci_upper=interval[1] if interval else None,
        stderr=stderr,
        n=n,
        method=f"{method}; {note}" if note else method,
        level=level,
        scored=scored,
        unscored=unscored,
        error=error,
        clusters=problems.cluster_count,
        excluded=excluded,
    )


def _interval(
    problems: Problems, value: float | None, *, cluster_by: str, bounds: Bounds | None, level: float
) -> tuple[float | None, Interval | None, str]:
    """Standard error, interval and method: the decision table of `docs/statistics.md`."""
    values, clusters = problems.values, problems.clusters
    n = int(values.size)
    by = ""
    if clusters is not None:
        by = f", clustered by {cluster_by}"
    elif problems.repeated:
        by = ", clustered by problem"
    if value is None:
        return None, None, "none: no scored attempt"
    if n == 1:
        return None, None, "none: one problem"
    sums = residual_sums(values, clusters)
    units = int(sums.size)
    if units == 1:
        return None, None, f"none: all problems in one {cluster_by}"
    stderr = None if _all_equal(values, sums) else robust_se(sums, n)
    binary = bounds == (0.0, 1.0) and bool(((values == 0) | (values == 1)).all())
    if binary and clusters is None:
        return stderr, wilson_interval(round(exact_sum(values)), n, level), f"wilson{by}"
    if stderr is not None:
        return stderr, _clip(t_interval(value, stderr, units - 1, level), bounds), f"t{by}"
    alike = cluster_by if clusters is not None else "problem"
    if bounds is None:
        return None, None, f"none: every {alike} has the same mean and no bounds are declared"
    return None, _unseen(value, units, bounds, level), f"wilson bound, every {alike} has the same mean"


def _all_equal(values: Floats, sums: Floats) -> bool:
    """Whether the independent units do not differ by more than rounding."""
    return bool(np.abs(sums).max() <= max(1e-12 * float(np.abs(values).max()), 1e-150))  # below it squares underflow


def _unseen(value: float, units: int, bounds: Bounds, level: float) -> Interval:
    """The interval where all `units` came out equal.

    No unit differed, so the share of units that would differ is at most Wilson's upper bound for 0 of `units`; at
    worst all of those lie at one end of the range. For rewards of 0 and 1 this is the Wilson interval itself.
    """
    share = wilson_interval(0, units, level)[1]
    lower, upper = bounds
    return value - share * (value - lower), value + share * (upper - value)


def _clip(interval: Interval, bounds: Bounds | None) -> Interval:
    if bounds is None:
        return interval
    return max(interval[0], bounds[0]), min(interval[1], bounds[1])


def _label(category: Hashable) -> str:
    return category if isinstance(category, str) else canonical_json(category).decode()


def _chosen(clusters: Clusters | None, chosen: Ints) -> Clusters | None:
    if clusters is None or isinstance(clusters, np.ndarray):
        return None if clusters is None else clusters[chosen]
    return [clusters[at] for at in chosen.tolist()]
