"""From attempts to problems: the per-problem means that every estimate is made of.

The result does not depend on the order in which attempts arrive, down to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bounds = tuple[float, float]
Clusters = Sequence[str | int | None] | NDArray[np.int64]

LARGEST = 1e100
"""Beyond it squares of rewards overflow."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts grouped by problem, in the order of the problems' ids; one entry per problem in each array."""

    means: Floats
    counts: Ints
    squares: Floats
    """Sum of squared distances of a problem's values from its mean."""
    clusters: Ints | None
    """A code per problem; None where no clusters were declared or each holds a single problem."""
    cluster_count: int | None
    """Declared clusters, also where each holds a single problem."""
    order: Ints
    """Positions of the attempts, sorted by problem and value."""
    starts: Ints
    """Where each problem begins in `order`."""

    @property
    def repeated(self) -> bool:
        """Whether any problem has more than one attempt."""
        return bool((self.counts > 1).any())


def group(values: ArrayLike, problems: ArrayLike, clusters: Clusters | None = None) -> Attempts:
    """Per-problem means of `values`, where `problems` holds an integer id per value.

    `clusters` names the cluster of each value; None, or a negative integer in an integer array, makes a problem its
    own cluster. `ValueError` when lengths differ, a value is not a finite number, or a problem is in two clusters.
    """
    data = finite(values)
    ids = np.asarray(problems)
    if ids.shape != data.shape:
        raise ValueError(f"{data.size} values but {ids.size} problem ids: there must be one id per value")
    if data.size and ids.dtype.kind not in "iu":
        raise ValueError(f"problem ids are integers, not {ids.dtype}")
    order = np.argsort(data)
    order = order[np.argsort(ids[order], kind="stable")]
    data, ids = data[order], ids[order].astype(np.int64)
    first = np.ones(ids.size, dtype=bool)
    first[1:] = ids[1:] != ids[:-1]
    starts = np.flatnonzero(first)
    place = np.cumsum(first) - 1
    counts = np.bincount(place, minlength=starts.size)
    # bincount adds one value after another, so the sum does not depend on the processor's vector width.
    means = np.bincount(place, weights=data, minlength=starts.size) / np.maximum(counts, 1)
    distances = data - means[place]
    codes, cluster_count = _clusters(clusters, order, starts, place)
    return Attempts(
        means=means,
        counts=counts,
        squares=np.bincount(place, weights=distances * distances, minlength=starts.size),
        clusters=codes,
        cluster_count=cluster_count,
        order=order,
        starts=starts,
    )


def finite(values: ArrayLike) -> Floats:
    """`values` as a one-dimensional array of floats; `ValueError` names the first that is NaN or beyond 1e100."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1:
        raise ValueError(f"values are a flat sequence of numbers, not of shape {data.shape}")
    good = np.abs(data) <= LARGEST
    if not good.all():
        at = int(np.argmin(good))
        raise ValueError(f"value {at} is {data[at]}: only finite numbers up to {LARGEST:g} can enter a mean")
    return data


def within(values: Floats, bounds: Bounds | None) -> Bounds | None:
    """The bounds of `values`: the declared ones, else (0, 1) where all values are 0 or 1, else None.

    `ValueError` when the declared bounds are no interval or a value lies outside.
    """
    if bounds is None:
        return (0.0, 1.0) if values.size and bool(((values == 0) | (values == 1)).all()) else None
    lower, upper = float(bounds[0]), float(bounds[1])
    if not -LARGEST <= lower < upper <= LARGEST:
        raise ValueError(f"bounds are (lower, upper) with lower < upper and both finite, not {bounds}")
    if values.size and not lower <= values.min() <= values.max() <= upper:
        wrong = values.min() if values.min() < lower else values.max()
        raise ValueError(f"value {wrong} lies outside its declared bounds {lower:g} to {upper:g}")
    return lower, upper


def _clusters(clusters: Clusters | None, order: Ints, starts: Ints, place: Ints) -> tuple[Ints | None, int | None]:
    """A code per problem and the number of clusters."""
    if clusters is None:
        return None, None
    codes = _encode(clusters)
    if codes.shape != order.shape:
        raise ValueError(f"{order.size} values but {codes.size} clusters: there must be one cluster per value")
    codes = codes[order]
    per_problem = codes[starts]
    if (codes != per_problem[place]).any():
        raise ValueError("a problem is in two clusters: all attempts at one problem name the same cluster")
    alone = per_problem < 0
    per_problem[alone] = per_problem.max(initial=0) + 1 + np.arange(int(alone.sum()))
    per_problem = np.unique(per_problem, return_inverse=True)[1]
    count = int(per_problem.max(initial=-1)) + 1
    return (None if count == per_problem.size else per_problem), count


def _encode(clusters: Clusters) -> Ints:
    if isinstance(clusters, np.ndarray) and clusters.dtype.kind in "iu":
        return clusters.astype(np.int64)
    names: dict[str | int, int] = {}
    return np.array([-1 if name is None else names.setdefault(name, len(names)) for name in clusters], dtype=np.int64)
