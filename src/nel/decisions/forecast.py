"""`plan_comparison`: how many problems and repeats it takes to see a drop, and what they cost, before the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from nel.core.errors import UsageError
from nel.decisions.columns import Columns
from nel.decisions.compare import join_columns, read_scores
from nel.decisions.metric import Metric, resolve
from nel.decisions.power import ALPHA, POWER, detectable, problems_needed
from nel.decisions.selection import CellPair, Chosen, pair_cells, unusable
from nel.metrics.grouping import Floats, Ints
from nel.metrics.intervals import TwoLevel, clustered_se, two_level_se
from nel.reporting.run_view import CellView

REPEATS = (1, 2, 4, 8)
CORRELATION = 0.5


class Spread(msgspec.Struct, kw_only=True):
    """How one problem's difference between two models varies."""

    between: float
    """Variance of the problems' true differences; everything, where `within` is not known."""
    within: float | None
    """Variance of one attempt at a problem, both models together; None where it cannot be told from `between`."""
    design_effect: float = 1.0
    """By how much clusters raise the variance of a mean."""
    source: str
    """Where the numbers are from, assumptions included."""

    def deviation(self, repeats: int) -> float:
        """Standard deviation of one problem's difference with so many repeats, in score units."""
        return math.sqrt((self.between + (self.within or 0.0) / repeats) * self.design_effect)


class Price(msgspec.Struct, kw_only=True):
    """What one attempt takes."""

    tokens: float
    cost: float | None
    """None without prices."""


class PlanRow(msgspec.Struct, kw_only=True):
    """One choice of repeats. Amounts are for one model."""

    repeats: int
    problems: int | None
    """Needed; None beyond 10^12."""
    attempts: int | None
    tokens: float | None
    cost: float | None
    detectable: float | None
    """The drop that the problems at hand show with that power; None where their number is not known."""


class PowerPlan(msgspec.Struct, kw_only=True, tag_field="schema", tag="nel.power_plan/1"):
    """What a comparison needs."""

    drop: float
    power: float
    alpha: float
    benchmark: str
    metric: str
    available: int | None
    """Problems at hand."""
    spread: Spread
    rows: list[PlanRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What shall be seen; `UsageError` names a value out of range."""

    drop: float
    power: float = POWER
    alpha: float = ALPHA
    correlation: float = CORRELATION
    """Between the two models' scores of a problem, where only one run (or none) tells."""
    metric: str | None = None
    repeats: Sequence[int] = REPEATS
    prices: tuple[float, float] | None = None
    """Of a million prompt and completion tokens, where the run has none."""

    def __post_init__(self) -> None:
        if not 0 < self.drop < math.inf:
            raise UsageError(f"drop is {self.drop}; it must be above 0, in score units")
        for name in ("power", "alpha"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if self.power <= self.alpha:
            raise UsageError(f"power {self.power} is not above alpha {self.alpha}: chance alone gives as much")
        if not -1 <= self.correlation < 1:
            raise UsageError(f"correlation is {self.correlation}; it must be at least -1 and below 1")
        if not self.repeats or min(self.repeats) < 1:
            raise UsageError("repeats are 1 or more")


def assumed_spread(
    options: PlanOptions, *, rate: float | None = None, deviation: float | None = None, discordance: float | None = None
) -> Spread:
    """The spread from assumptions: a share of right answers, or a standard deviation of scores, of one attempt.

    `discordance` is the share of problems on which the models differ; without it `correlation` tells.
    """
    if discordance is not None:
        if not options.drop <= discordance <= 1:
            raise UsageError(f"discordance is {discordance}; it lies between the drop ({options.drop}) and 1")
        source = f"assumed: the models differ on {discordance:g} of the problems"
        return Spread(between=discordance - options.drop**2, within=None, source=source)
    if rate is not None and not 0 < rate < 1:
        raise UsageError(f"rate is {rate}; it must lie between 0 and 1")
    if deviation is not None and not deviation > 0:
        raise UsageError(f"sd is {deviation}; it must be above 0")
    if rate is None and deviation is None:
        raise UsageError(
            "Nothing says how much scores vary.", hint="Name a past run, or assume: --rate 0.7, or --sd 0.2 for scores."
        )
    variance = rate * (1 - rate) if rate is not None else (deviation or 0) ** 2
    what = f"{rate:g} right" if rate is not None else f"scores with standard deviation {deviation:g}"
    return Spread(
        between=2 * variance * (1 - options.correlation),
        within=None,
        source=f"assumed: {what}, correlation {options.correlation:g} between the models",
    )


def plan_from_assumptions(options: PlanOptions, spread: Spread, *, available: int | None = None) -> PowerPlan:
    """The plan where no run tells anything."""
    return _plan("", options.metric or "score", available, spread, options, None)


def plan_from_runs(runs: Sequence[Chosen], options: PlanOptions, *, cell: str | None = None) -> PowerPlan:
    """The plan from one past run, or from two runs whose difference shows how much problems differ."""
    first, last = runs[0], runs[-1]
    found = pair_cells(first, last, [cell] if cell else [])
    if len(found) > 1:
        names = [one.benchmark for one in found]
        raise UsageError(
            f"{first.path} holds {len(names)} benchmarks: {', '.join(names)}.", hint="Choose one by --cell."
        )
    left, right = _both(first, last, found[0])
    metric = resolve(options.metric, left, right)
    columns = read_scores([(run.view, one) for run, one in zip(runs, (left, right), strict=False)], metric)
    spread = _of_two(metric, columns, left) if len(columns) == 2 else _of_one(metric, columns[0], left, options)
    return _plan(left.benchmark, metric.name, left.problems or None, spread, options, _price(right, options))


def _both(first: Chosen, last: Chosen, found: CellPair) -> tuple[CellView, CellView]:
    for run, cell in ((first, found.baseline), (last, found.candidate)):
        reason = unusable(run, cell, found.benchmark)
        if reason:
            raise UsageError(f"{reason}.", hint="Plan from a run that has scores.")
    assert found.baseline is not None
    assert found.candidate is not None
    return found.baseline, found.candidate


def _of_one(metric: Metric, columns: Columns, cell: CellView, options: PlanOptions) -> Spread:
    known = ~np.isnan(columns.values)
    problems = np.unique(columns.keys[known], return_inverse=True)[1]
    split = _split(columns.values[known], problems, cell)
    means = np.bincount(problems, weights=columns.values[known]) / np.bincount(problems)
    codes = np.full(means.size, -1, dtype=np.int64)
    codes[problems] = columns.clusters[known]
    total, effect = split.stderr**2 * means.size, _design_effect(means, codes)
    unlike = 1 - options.correlation
    if split.within_variance is None or split.between_variance is None:
        between, within = 2 * total * unlike, None
    else:
        between, within = 2 * split.between_variance * unlike, 2 * split.within_variance
    source = f"{metric.name} of {cell.name}, assuming correlation {options.correlation:g} between the models"
    return Spread(between=between, within=within, design_effect=effect, source=source)


def _of_two(metric: Metric, columns: Sequence[Columns], cell: CellView) -> Spread:
    joined = join_columns(metric, columns[0], columns[1], cell.cluster_by)
    differences = joined.damage
    if differences.size < 2:
        raise UsageError(f"{cell.name}: fewer than two problems were scored in both runs.", hint="Name other runs.")
    total = float(differences.var(ddof=1))
    chance, within = 0.0, 0.0
    for one in columns:
        known = ~np.isnan(one.values)
        split = _split(one.values[known], np.unique(one.keys[known], return_inverse=True)[1], cell)
        if split.within_variance is None or split.stderr_within is None:
            within = math.nan
            break
        within += split.within_variance
        chance += split.stderr_within**2 * split.problems
    separate = not math.isnan(within)
    clusters = joined.clusters
    effect = 1.0
    if clusters is not None and total > 0:
        effect = clustered_se(differences, clusters) ** 2 * differences.size / total
    return Spread(
        between=max(0.0, total - chance) if separate else total,
        within=within if separate else None,
        design_effect=effect,
        source=f"the difference of {metric.name} between the two runs, {differences.size} paired problems",
    )


def _split(values: Floats, problems: Ints, cell: CellView) -> TwoLevel:
    try:
        return two_level_se(values, problems)
    except ValueError:
        raise UsageError(f"{cell.name}: fewer than two problems have a score.", hint="Name another run.") from None


def _design_effect(means: Floats, codes: Ints) -> float:
    alone = codes < 0
    codes = codes.copy()
    codes[alone] = codes.max(initial=0) + 1 + np.arange(int(alone.sum()))
    plain = clustered_se(means)
    return (clustered_se(means, codes) / plain) ** 2 if plain > 0 and np.unique(codes).size > 1 else 1.0


def _price(cell: CellView, options: PlanOptions) -> Price | None:
    stats = cell.runtime
    if stats is None or not stats.total_steps:
        return None
    steps = stats.total_steps
    cost = None if stats.cost is None else stats.cost / steps
    if options.prices is not None:
        inputs, outputs = options.prices
        cost = (stats.total_prompt_tokens * inputs + stats.total_completion_tokens * outputs) / steps / 1e6
    return Price(tokens=stats.total_tokens / steps, cost=cost)


def _plan(
    benchmark: str, metric: str, available: int | None, spread: Spread, options: PlanOptions, price: Price | None
) -> PowerPlan:
    choices = options.repeats if spread.within is not None else [min(options.repeats)]
    return PowerPlan(
        drop=options.drop,
        power=options.power,
        alpha=options.alpha,
        benchmark=benchmark,
        metric=metric,
        available=available,
        spread=spread,
        rows=[_row(repeats, spread, options, available, price) for repeats in choices],
    )


def _row(repeats: int, spread: Spread, options: PlanOptions, available: int | None, price: Price | None) -> PlanRow:
    deviation = spread.deviation(repeats)
    problems = problems_needed(options.drop, deviation, power=options.power, alpha=options.alpha)
    attempts = None if problems is None else problems * repeats
    smallest = None
    if available is not None and available > 1:
        noncentrality = detectable(available - 1, power=options.power, alpha=options.alpha)
        smallest = noncentrality * deviation / math.sqrt(available)
    return PlanRow(
        repeats=repeats,
        problems=problems,
        attempts=attempts,
        tokens=None if price is None or attempts is None else price.tokens * attempts,
        cost=None if price is None or price.cost is None or attempts is None else price.cost * attempts,
        detectable=smallest,
    )
