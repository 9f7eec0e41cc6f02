"""pass@k, pass^k and mean@k: what k attempts at a problem are worth.

Each is computed per problem from its n scored attempts, without bias for any k <= n, and then averaged over problems
like any other mean: `docs/statistics.md` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nel.metrics.estimate import Estimate
from nel.metrics.grouping import Attempts, Bounds, Clusters, Floats, finite, group, within
from nel.metrics.mean import Problems, estimate_problems


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of k attempts is right, from n attempts of which c were.

    1 - C(n - c, k) / C(n, k), unbiased (Chen et al. 2021, "Evaluating Large Language Models Trained on Code"), as a
    product that neither overflows nor cancels. `ValueError` unless 0 <= c <= n and 1 <= k <= n.
    """
    _check(n, c, k)
    return 1.0 - _all_from(n, n - c, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of k attempts are right ("pass^k"), from n attempts of which c were.

    C(c, k) / C(n, k), unbiased (Yao et al. 2024, "tau-bench"). `ValueError` unless 0 <= c <= n and 1 <= k <= n.
    """
    _check(n, c, k)
    return _all_from(n, c, k)


def _all_from(n: int, c: int, k: int) -> float:
    return math.prod((c - drawn) / (n - drawn) for drawn in range(k)) if c >= k else 0.0


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"{c} right of {n} attempts: the right ones are between 0 and all")
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}, but a problem with {n} attempts answers for k from 1 to {n} only")


def estimate_pass_at_k(
    values: ArrayLike,
    problems: ArrayLike,
    k: int,
    *,
    clusters: Clusters | None = None,
    cluster_by: str = "cluster",
    unscored: int = 0,
    error: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The mean of `pass_at_k` over problems with at least k scored attempts; the others are counted as excluded.

    `values` are 0 or 1, else `ValueError`: a threshold on other rewards is the caller's decision. Parameters as in
    `estimate_mean`.
    """
    return _estimate(
        pass_at_k,
        values,
        problems,
        k,
        clusters=clusters,
        cluster_by=cluster_by,
        unscored=unscored,
        error=error,
        level=level,
    )


def estimate_pass_hat_k(
    values: ArrayLike,
    problems: ArrayLike,
    k: int,
    *,
    clusters: Clusters | None = None,
    cluster_by: str = "cluster",
    unscored: int = 0,
    error: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The mean of `pass_hat_k` over problems with at least k scored attempts; as `estimate_pass_at_k`."""
    return _estimate(
        pass_hat_k,
        values,
        problems,
        k,
        clusters=clusters,
        cluster_by=cluster_by,
        unscored=unscored,
        error=error,
        level=level,
    )


def estimate_mean_at_k(
    values: ArrayLike,
    problems: ArrayLike,
    k: int,
    *,
    clusters: Clusters | None = None,
    cluster_by: str = "cluster",
    bounds: Bounds | None = None,
    unscored: int = 0,
    error: int = 0,
    level: float = 0.95,
) -> Estimate:
    """The expected mean of k attempts ("mean@k", "avg@k"), over problems with at least k scored attempts.

    A problem's mean over its k-subsets is the mean over all its attempts, so all are used. Parameters as in
    `estimate_mean`.
    """
    data = finite(values)
    chosen = at_least(data, problems, k, clusters)
    return chosen.estimate(
        chosen.attempts.means[chosen.enough],
        cluster_by,
        within(data, bounds),
        unscored=unscored,
        error=error,
        level=level,
    )


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Grouped attempts, and which problems have at least k of them."""

    attempts: Attempts
    enough: NDArray[np.bool_]

    def estimate(
        self,
        per_problem: Floats,
        cluster_by: str,
        bounds: Bounds | None,
        *,
        unscored: int,
        error: int,
        level: float,
        note: str = "",
    ) -> Estimate:
        """The `Estimate` of one number per problem that has enough attempts."""
        codes = self.attempts.clusters
        kept = None if codes is None else np.unique(codes[self.enough], return_inverse=True)[1]
        count = self.attempts.cluster_count
        if count is not None:
            count = per_problem.size if kept is None else int(kept.max(initial=-1)) + 1
        return estimate_problems(
            Problems(
                per_problem,
                None if count == per_problem.size else kept,
                count,
                repeated=bool((self.attempts.counts[self.enough] > 1).any()),
            ),
            cluster_by=cluster_by,
            bounds=bounds,
            level=level,
            scored=int(self.attempts.counts.sum()),
            unscored=unscored,
            error=error,
            excluded=int((~self.enough).sum()),
            note=note,
        )


def at_least(values: Floats, problems: ArrayLike, k: int, clusters: Clusters | None) -> AtLeast:
    """Attempts grouped by problem, with those problems marked that have at least k >= 1 of them."""
    if k < 1:
        raise ValueError(f"k is {k}; it counts attempts, so it is at least 1")
    attempts = group(values, problems, clusters)
    return AtLeast(attempts, attempts.counts >= k)


def _estimate(
    formula: Callable[[int, int, int], float],
    values: ArrayLike,
    problems: ArrayLike,
    k: int,
    *,
    clusters: Clusters | None,
    cluster_by: str,
    unscored: int,
    error: int,
    level: float,
) -> Estimate:
    """The mean over problems of `formula(n, c, k)`, computed once for each (n, c) that occurs."""
    data = finite(values)
    if not ((data == 0) | (data == 1)).all():
        raise ValueError("pass@k and pass^k need rewards of 0 and 1: choose the threshold that counts as right first")
    chosen = at_least(data, problems, k, clusters)
    n = chosen.attempts.counts[chosen.enough]
    c = np.rint(chosen.attempts.means[chosen.enough] * n).astype(np.int64)
    base = int(n.max(initial=0)) + 1
    pairs, place = np.unique(n * base + c, return_inverse=True)
    table = np.array([formula(pair // base, pair % base, k) for pair in pairs.tolist()], dtype=np.float64)
    return chosen.estimate(table[place], cluster_by, (0, 1), unscored=unscored, error=error, level=level)
