"""Several runs of one benchmark in order, with ties where they cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from nel.core.errors import UsageError
from nel.decisions.compare import CompareOptions, Paired, join_columns, read_scores
from nel.decisions.evidence import LEVEL, Evidence
from nel.decisions.metric import resolve
from nel.decisions.multiplicity import adjust
from nel.decisions.selection import Chosen, incomplete, pair_cells, unusable
from nel.reporting.run_view import CellView, Direction, MetricView


class Ranked(msgspec.Struct, kw_only=True):
    """One run in the order."""

    rank: int
    """One more than the number of runs that are better beyond doubt."""
    path: str
    cell: str
    model: str
    metric: MetricView
    """Over all of the run's own problems."""
    tied_with: list[str]
    """Paths of the runs that it cannot be told apart from."""


class PairOfRuns(msgspec.Struct, kw_only=True):
    """The comparison of two of the runs."""

    first: str
    second: str
    difference: float
    """Second minus first, over the problems that both were asked."""
    ci_lower: float | None
    ci_upper: float | None
    n: int
    p_value: float
    """Two-sided, from the interval's own method."""
    p_adjusted: float
    """By Holm's method over all pairs."""


class Ranking(msgspec.Struct, kw_only=True):
    """The runs of one benchmark, best first."""

    benchmark: str
    metric: str
    direction: Direction
    runs: list[Ranked]
    pairs: list[PairOfRuns]
    warnings: list[str]


class RankingReport(msgspec.Struct, kw_only=True, tag_field="schema", tag="nel.ranking/1"):
    """One ranking a benchmark."""

    rankings: list[Ranking]


def rank_runs(
    runs: Sequence[Chosen], options: CompareOptions | None = None, *, cells: Sequence[str] = ()
) -> RankingReport:
    """The ranking of three or more runs (two will do) on each benchmark that all of them hold."""
    options = options or CompareOptions()
    first = runs[0]
    matched: dict[str, list[CellView | None]] = {}
    for other in runs[1:]:
        for found in pair_cells(first, other, cells):
            matched.setdefault(found.benchmark, [found.baseline]).append(found.candidate)
    rankings: list[Ranking] = []
    missing: list[str] = []
    for benchmark, candidates in matched.items():
        reasons = [unusable(run, cell, benchmark) for run, cell in zip(runs, candidates, strict=False)]
        if len(candidates) < len(runs) or any(reasons):
            missing.append(next((reason for reason in reasons if reason), f"not every run has a cell of {benchmark}"))
            continue
        rankings.append(_rank(benchmark, runs, [cell for cell in candidates if cell is not None], options))
    if not rankings:
        raise UsageError(f"There is nothing to rank: {'; '.join(missing)}.", hint="Rank runs of one benchmark.")
    rankings[0].warnings[:0] = [f"not ranked: {reason}" for reason in missing]
    return RankingReport(rankings=rankings)


def _rank(benchmark: str, runs: Sequence[Chosen], cells: list[CellView], options: CompareOptions) -> Ranking:
    places = list(combinations(range(len(runs)), 2))
    metric = resolve(options.metric, cells[0], cells[-1], direction=options.direction)
    sources = [(run.view, cell) for run, cell in zip(runs, cells, strict=True)]
    columns = read_scores(sources, metric)
    joined = [join_columns(metric, columns[left], columns[right], cells[left].cluster_by) for left, right in places]
    p_values = [two_sided(one.evidence) for one in joined]
    adjusted = adjust(p_values)
    better_than: dict[int, int] = dict.fromkeys(range(len(runs)), 0)
    ties: dict[int, list[str]] = {place: [] for place in range(len(runs))}
    for (left, right), one, p in zip(places, joined, adjusted, strict=True):
        if p > 1 - LEVEL:
            ties[left].append(str(runs[right].path))
            ties[right].append(str(runs[left].path))
        else:
            worse = right if one.metric.sign * one.evidence.value > 0 else left
            better_than[worse] += 1
    order = sorted(
        range(len(runs)), key=lambda place: (better_than[place], metric.sign * _value(cells[place], metric.name))
    )
    return Ranking(
        benchmark=benchmark,
        metric=metric.name,
        direction=metric.direction,
        runs=[
            Ranked(
                rank=better_than[place] + 1,
                path=str(runs[place].path),
                cell=cells[place].name,
                model=cells[place].model,
                metric=_described(cells[place], metric.name),
                tied_with=ties[place],
            )
            for place in order
        ],
        pairs=[
            _pair(runs[left], runs[right], one, p, p_adjusted)
            for (left, right), one, p, p_adjusted in zip(places, joined, p_values, adjusted, strict=True)
        ],
        warnings=[text for run, cell in zip(runs, cells, strict=True) if (text := incomplete(run, cell))],
    )


def two_sided(evidence: Evidence) -> float:
    """The p-value of "no difference" that agrees with the evidence's interval."""
    return min(1.0, 2 * min(evidence.p_above(0.0), evidence.p_below(0.0)))


def _described(cell: CellView, name: str) -> MetricView:
    found = cell.metrics.get(name) or cell.headline_metric
    assert found is not None
    return found


def _value(cell: CellView, name: str) -> float:
    return _described(cell, name).value or 0.0


def _pair(first: Chosen, second: Chosen, joined: Paired, p: float, p_adjusted: float) -> PairOfRuns:
    interval = joined.evidence.interval()
    return PairOfRuns(
        first=str(first.path),
        second=str(second.path),
        difference=joined.evidence.value,
        ci_lower=interval[0] if interval else None,
        ci_upper=interval[1] if interval else None,
        n=joined.pairs.counts.paired,
        p_value=p,
        p_adjusted=p_adjusted,
    )
