"""From the columns of two runs to pairs: one number per problem on each side, of problems whose content is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from nel.core.errors import UsageError
from nel.decisions.columns import Columns, Keys
from nel.metrics.grouping import Floats, Ints

PerProblem = Callable[[Floats, Ints], Floats]
"""From the mean of a problem's scored attempts and their number to the metric; NaN where it has no value."""


@dataclass(slots=True)
class Problems:
    """One entry per problem in each array, in the order of the keys."""

    keys: Keys
    asked: Keys
    values: Floats
    """NaN where the metric has no value."""
    scored: Ints
    """Attempts with a score."""
    clusters: Ints
    categories: Ints
    rows: Ints
    """The place of the first attempt among the run's units."""


class UnitCounts(msgspec.Struct, kw_only=True):
    """What could be paired, and what could not."""

    paired: int
    """Problems with the same content that were scored in both runs."""
    only_baseline: int
    """Problems that the candidate was not asked, or in other words."""
    only_candidate: int
    changed_gold: int
    """Problems that both were asked, with another expected answer; in neither of the two counts above."""
    unmeasured: int
    """Problems of both runs that have no score in at least one."""
    baseline_attempts: int
    """Scored attempts at the paired problems."""
    candidate_attempts: int


@dataclass(slots=True)
class Pairs:
    """The paired problems, in the baseline's order."""

    baseline: Floats
    candidate: Floats
    clusters: Ints | None
    """A code per problem; None where no two problems share a cluster."""
    categories: Ints
    """Places in `category_names`, -1 for none."""
    category_names: list[str]
    baseline_rows: Ints
    candidate_rows: Ints
    repeated: bool
    """Some problem has several scored attempts in a run."""
    counts: UnitCounts
    by_index: bool
    """Paired by place in the data, since a run does not hold what was asked."""


def by_problem(columns: Columns, metric: PerProblem | None = None) -> Problems:
    """The attempts averaged by problem; `metric` makes something else of the mean and the number of scored attempts."""
    order = np.argsort(columns.keys, kind="stable")
    keys = columns.keys[order]
    first = np.ones(keys.size, dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    starts = np.flatnonzero(first)
    place = np.cumsum(first) - 1
    values = columns.values[order]
    known = ~np.isnan(values)
    scored = np.bincount(place, weights=known, minlength=starts.size).astype(np.int64)
    sums = np.bincount(place, weights=np.where(known, values, 0.0), minlength=starts.size)
    means = np.full(starts.size, np.nan)
    np.divide(sums, scored, out=means, where=scored > 0)
    rows = order[starts]
    return Problems(
        keys=keys[starts],
        asked=columns.asked[rows],
        values=means if metric is None else metric(means, scored),
        scored=scored,
        clusters=columns.clusters[rows],
        categories=columns.categories[rows],
        rows=rows,
    )


def pair(baseline: Columns, candidate: Columns, metric: PerProblem | None = None) -> Pairs:
    """The problems of both runs, matched by content; `UsageError` where they have none in common."""
    left, right = by_problem(baseline, metric), by_problem(candidate, metric)
    _, at_left, at_right = np.intersect1d(left.keys, right.keys, assume_unique=True, return_indices=True)
    if not at_left.size:
        raise UsageError(
            "The two runs have no problem in common: none was asked with the same content and expected answer in both.",
            hint="Compare runs of one benchmark, of the same data and prompt; `nel eval report` shows what each ran.",
        )
    changed = _shared_questions(left, right, at_left, at_right)
    measured = ~(np.isnan(left.values[at_left]) | np.isnan(right.values[at_right]))
    common = at_left.size
    at_left, at_right = at_left[measured], at_right[measured]
    in_order = np.argsort(left.rows[at_left])
    at_left, at_right = at_left[in_order], at_right[in_order]
    names, categories = _categories(baseline, candidate, left.categories[at_left], right.categories[at_right])
    return Pairs(
        baseline=left.values[at_left],
        candidate=right.values[at_right],
        clusters=_clusters(left.clusters[at_left], right.clusters[at_right]),
        categories=categories,
        category_names=names,
        baseline_rows=left.rows[at_left],
        candidate_rows=right.rows[at_right],
        repeated=bool((left.scored[at_left] > 1).any() or (right.scored[at_right] > 1).any()),
        counts=UnitCounts(
            paired=int(at_left.size),
            only_baseline=int(left.keys.size - common - changed),
            only_candidate=int(right.keys.size - common - changed),
            changed_gold=changed,
            unmeasured=int(common - at_left.size),
            baseline_attempts=int(left.scored[at_left].sum()),
            candidate_attempts=int(right.scored[at_right].sum()),
        ),
        by_index=baseline.by_index,
    )


def _shared_questions(left: Problems, right: Problems, at_left: Ints, at_right: Ints) -> int:
    """Unpaired problems that both runs were asked."""
    return int(np.intersect1d(_rest(left.asked, at_left), _rest(right.asked, at_right)).size)


def _rest(asked: Keys, taken: Ints) -> Keys:
    rest: Keys = np.delete(asked, taken)
    known: Keys = rest[rest != 0]
    return known


def _clusters(left: Ints, right: Ints) -> Ints | None:
    """The baseline's clusters; the candidate's where the baseline declares none."""
    declared = left if (left >= 0).any() else right
    if not (declared >= 0).any():
        return None
    codes = declared.copy()
    alone = codes < 0
    codes[alone] = codes.max() + 1 + np.arange(int(alone.sum()))
    codes = np.unique(codes, return_inverse=True)[1]
    return None if int(codes.max()) + 1 == codes.size else codes


def _categories(baseline: Columns, candidate: Columns, left: Ints, right: Ints) -> tuple[list[str], Ints]:
    if baseline.category_names:
        return baseline.category_names, left
    return candidate.category_names, right


def is_binary(values: NDArray[np.float64]) -> bool:
    """Whether every value is 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())
