"""`compare_cells` and `compare_runs`: is the candidate worse than the baseline, where, by how much, how sure?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from nel.core.errors import RecordError, UsageError
from nel.decisions.changes import RuntimeChange, SettingChange, runtime_changes, setting_changes
from nel.decisions.columns import Columns, Source, read_all
from nel.decisions.evidence import LEVEL, Evidence, difference_of
from nel.decisions.flips import Flips, find_flips
from nel.decisions.metric import Metric, resolve
from nel.decisions.multiplicity import Correction, adjust
from nel.decisions.paired_tests import PairedTest, TestKind, choose, run_test
from nel.decisions.pairing import Pairs, UnitCounts, is_binary, pair
from nel.decisions.power import detectable
from nel.decisions.selection import CellPair, Chosen, incomplete, pair_cells, unusable
from nel.decisions.verdict import Verdict, damage_interval, decide, more_units, worst
from nel.metrics.estimate import Estimate
from nel.metrics.grouping import Bounds, Floats, Ints
from nel.metrics.mean import estimate_mean
from nel.reporting.run_view import CellView, Counts, Direction, Means

MAX_DROP = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How to compare; `UsageError` names a value out of range."""

    max_drop: float = MAX_DROP
    """The damage that is acceptable, in score units."""
    metric: str | None = None
    """None: the headline."""
    direction: Direction | None = None
    """For metrics that do not say which way is better."""
    test: TestKind = TestKind.AUTO
    one_sided: bool = False
    """Test only whether the candidate is worse."""
    correct_above: float | None = None
    """Scores above it are right, others wrong; None: only scores of 0 and 1 are right or wrong."""
    correction: Correction = Correction.HOLM
    """Over the categories."""
    show_flips: int = 0
    """How many flips of each kind are shown with both answers."""

    def __post_init__(self) -> None:
        if not 0 <= self.max_drop < float("inf"):
            raise UsageError(
                f"max_drop is {self.max_drop}; it is 0 or more, in score units (0.05 is five points of a hundred)."
            )


class Side(msgspec.Struct, kw_only=True):
    """One run's part in a comparison."""

    path: str
    run_id: str
    cell: str
    model: str
    stage: str
    degraded: bool
    estimate: Estimate
    """Over the paired problems; its `unscored` and `error` count attempts of the whole cell."""
    counts: Counts
    """Of the whole cell."""
    means: Means
    """Of the whole cell: without errors, and with each as 0."""


class Difference(msgspec.Struct, kw_only=True):
    """Candidate minus baseline over the paired problems, in score units."""

    value: float | None
    ci_lower: float | None
    ci_upper: float | None
    stderr: float | None
    method: str
    n: int
    mde: float | None
    """Minimum detectable effect: a true difference of this size is found with a chance of 80 %, two-sided at 5 %."""
    level: float = LEVEL


class CategoryDifference(msgspec.Struct, kw_only=True):
    """The difference within one category."""

    category: str
    n: int
    baseline: float
    candidate: float
    difference: float
    ci_lower: float | None
    ci_upper: float | None
    p_value: float
    p_adjusted: float


class Comparison(msgspec.Struct, kw_only=True):
    """Everything that is said of one pair of cells."""

    benchmark: str
    metric: str
    unit: str
    direction: Direction
    baseline: Side
    candidate: Side
    units: UnitCounts
    difference: Difference
    max_drop: float
    verdict: Verdict
    reasons: list[str]
    more_units: int | None
    """Further problems that would decide an inconclusive comparison."""
    test: PairedTest
    flips: Flips
    categories: list[CategoryDifference]
    correction: Correction
    runtime: list[RuntimeChange]
    settings: list[SettingChange]
    """What else differs between the two runs."""
    warnings: list[str]


class Uncompared(msgspec.Struct, kw_only=True):
    """A benchmark that could not be compared."""

    benchmark: str
    reason: str


class CompareReport(msgspec.Struct, kw_only=True, tag_field="schema", tag="nel.comparison/1"):
    """All benchmarks of two runs."""

    baseline: str
    candidate: str
    verdict: Verdict
    """The worst; a benchmark that could not be compared makes it at least inconclusive."""
    comparisons: list[Comparison]
    uncompared: list[Uncompared]


def compare_runs(
    baseline: Chosen, candidate: Chosen, options: CompareOptions | None = None, *, cells: Sequence[str] = ()
) -> CompareReport:
    """The comparison of each benchmark that both runs hold; `cells` restricts it. `UsageError` where there is none."""
    options = options or CompareOptions()
    compared: list[Comparison] = []
    uncompared: list[Uncompared] = []
    for cell_pair in pair_cells(baseline, candidate, cells):
        reason = why_not(baseline, candidate, cell_pair)
        if reason is None:
            assert cell_pair.baseline is not None
            assert cell_pair.candidate is not None
            compared.append(compare_cells(baseline, cell_pair.baseline, candidate, cell_pair.candidate, options))
        else:
            uncompared.append(Uncompared(benchmark=cell_pair.benchmark, reason=reason))
    if not compared:
        raise UsageError(
            f"There is nothing to compare: {'; '.join(item.reason for item in uncompared)}.",
            hint="`nel eval report DIR` shows what each run holds; --resume makes up for what failed.",
        )
    if len(compared) > 1:
        for comparison, p in zip(compared, adjust([one.test.p_value for one in compared]), strict=True):
            comparison.test.p_adjusted = p
    verdicts = [one.verdict for one in compared] + [Verdict.INCONCLUSIVE] * len(uncompared)
    return CompareReport(
        baseline=str(baseline.path),
        candidate=str(candidate.path),
        verdict=worst(verdicts),
        comparisons=compared,
        uncompared=uncompared,
    )


def why_not(baseline: Chosen, candidate: Chosen, cells: CellPair) -> str | None:
    """Why a pair of cells cannot be compared, or None."""
    return unusable(baseline, cells.baseline, cells.benchmark) or unusable(candidate, cells.candidate, cells.benchmark)


@dataclass(slots=True)
class Paired:
    """Two cells joined on one metric, with the evidence of their difference."""

    metric: Metric
    pairs: Pairs
    clusters: Ints | None
    cluster_by: str
    single: bool
    """Right or wrong, asked once: McNemar's case."""
    bounds: Bounds | None
    evidence: Evidence

    @property
    def damage(self) -> Floats:
        """Per problem; positive where the candidate is worse."""
        return self.metric.sign * (self.pairs.candidate - self.pairs.baseline)


def join(baseline: Chosen, left: CellView, candidate: Chosen, right: CellView, options: CompareOptions) -> Paired:
    """The paired problems of two cells and the evidence of their difference."""
    metric = resolve(options.metric, left, right, direction=options.direction)
    first, second = read_scores([(baseline.view, left), (candidate.view, right)], metric)
    return join_columns(metric, first, second, left.cluster_by)


def read_scores(sources: Sequence[Source], metric: Metric) -> list[Columns]:
    """The columns of cells; a log that cannot be read is a `UsageError` here, so that exit 1 is left to verdicts."""
    try:
        return read_all(sources, metric.of)
    except RecordError as error:
        raise UsageError(error.message, hint=error.hint) from None


def join_columns(metric: Metric, baseline: Columns, candidate: Columns, cluster_by: str) -> Paired:
    """Likewise, from columns."""
    pairs = pair(baseline, candidate, metric.per_problem)
    both = np.concatenate([pairs.baseline, pairs.candidate])
    binary = is_binary(both)
    single = binary and not pairs.repeated
    bounds = metric.bounds or ((float(both.min()), float(both.max())) if both.size else None)
    if binary:
        bounds = (0.0, 1.0)
    return Paired(
        metric=metric,
        pairs=pairs,
        clusters=pairs.clusters,
        cluster_by=cluster_by,
        single=single,
        bounds=bounds,
        evidence=difference_of(
            pairs.candidate - pairs.baseline,
            pairs.clusters,
            bounds=bounds,
            single=single,
            cluster_by=cluster_by,
            what="t, clustered by problem" if pairs.repeated and pairs.clusters is None else "t",
        ),
    )


def compare_cells(
    baseline: Chosen, left: CellView, candidate: Chosen, right: CellView, options: CompareOptions
) -> Comparison:
    """The comparison of two cells that have scores; `UsageError` where they cannot be paired."""
    joined = join(baseline, left, candidate, right, options)
    metric, pairs, evidence = joined.metric, joined.pairs, joined.evidence
    if not pairs.counts.paired:
        raise UsageError(
            f"{left.benchmark}: no problem has a score in both runs.",
            hint="Look at the failures with `nel eval report`, then continue the runs with --resume.",
        )
    damage = damage_interval(evidence, metric.sign)
    verdict = decide(damage, options.max_drop)
    more = None
    if verdict is Verdict.INCONCLUSIVE:
        more = more_units(evidence, metric.sign, pairs.counts.paired, options.max_drop)
    flips = find_flips((baseline.view, left), (candidate.view, right), pairs, metric, options)
    return Comparison(
        benchmark=left.benchmark,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        baseline=_side(baseline, left, pairs.baseline, joined, pairs.counts.baseline_attempts),
        candidate=_side(candidate, right, pairs.candidate, joined, pairs.counts.candidate_attempts),
        units=pairs.counts,
        difference=describe(evidence, pairs.counts.paired),
        max_drop=options.max_drop,
        verdict=verdict,
        reasons=_reasons(verdict, damage, evidence, options.max_drop, more),
        more_units=more,
        test=_test(joined, options),
        flips=flips,
        categories=_categories(joined, options),
        correction=options.correction,
        runtime=runtime_changes(left, right),
        settings=setting_changes(left, right),
        warnings=_warnings(baseline, left, candidate, right, joined),
    )


def describe(evidence: Evidence, n: int) -> Difference:
    """The evidence in numbers."""
    interval = evidence.interval()
    measured = interval is not None and evidence.stderr > 0
    return Difference(
        value=evidence.value if n else None,
        ci_lower=interval[0] if interval else None,
        ci_upper=interval[1] if interval else None,
        stderr=evidence.stderr if measured else None,
        method=evidence.method,
        n=n,
        mde=detectable(evidence.df) * evidence.stderr if measured else None,
    )


def _test(joined: Paired, options: CompareOptions) -> PairedTest:
    damage, pairs = joined.damage, joined.pairs
    single = joined.single
    if options.test is TestKind.MCNEMAR and options.correct_above is not None and not pairs.repeated:
        above = options.correct_above
        damage = joined.metric.sign * ((pairs.candidate > above).astype(np.float64) - (pairs.baseline > above))
        single = True
    clustered = joined.clusters is not None
    kind, reason = choose(options.test, single=single, clustered=clustered, cluster_by=joined.cluster_by)
    return run_test(kind, damage, joined.clusters, one_sided=options.one_sided, reason=reason)


def _categories(joined: Paired, options: CompareOptions) -> list[CategoryDifference]:
    pairs = joined.pairs
    order = np.argsort(pairs.categories, kind="stable")
    edges = np.searchsorted(pairs.categories[order], np.arange(len(pairs.category_names) + 1))
    found: list[CategoryDifference] = []
    for code, name in enumerate(pairs.category_names):
        chosen = order[edges[code] : edges[code + 1]]
        if chosen.size:
            found.append(_category(name, joined, chosen, options))
    found.sort(key=lambda one: one.category)
    for one, p in zip(found, adjust([one.p_value for one in found], options.correction), strict=True):
        one.p_adjusted = p
    return found


def _category(name: str, joined: Paired, chosen: Ints, options: CompareOptions) -> CategoryDifference:
    pairs = joined.pairs
    baseline, candidate = pairs.baseline[chosen], pairs.candidate[chosen]
    clusters = None
    if joined.clusters is not None:
        clusters = np.unique(joined.clusters[chosen], return_inverse=True)[1]
        clusters = None if int(clusters.max()) + 1 == clusters.size else clusters
    evidence = difference_of(
        candidate - baseline, clusters, bounds=joined.bounds, single=joined.single, cluster_by=joined.cluster_by
    )
    interval = evidence.interval()
    kind, _ = choose(TestKind.AUTO, single=joined.single, clustered=clusters is not None, cluster_by=joined.cluster_by)
    test = run_test(kind, joined.damage[chosen], clusters, one_sided=options.one_sided)
    return CategoryDifference(
        category=name,
        n=int(chosen.size),
        baseline=float(baseline.mean()),
        candidate=float(candidate.mean()),
        difference=evidence.value,
        ci_lower=interval[0] if interval else None,
        ci_upper=interval[1] if interval else None,
        p_value=test.p_value,
        p_adjusted=test.p_value,
    )


def _side(chosen: Chosen, cell: CellView, values: Floats, joined: Paired, attempts: int) -> Side:
    estimate = estimate_mean(
        values,
        np.arange(values.size),
        clusters=joined.clusters,
        cluster_by=joined.cluster_by,
        bounds=joined.metric.bounds,
        unscored=cell.counts.unscored,
        error=cell.counts.error,
    )
    return Side(
        path=str(chosen.path),
        run_id=chosen.view.manifest.run_id,
        cell=cell.name,
        model=cell.model,
        stage=str(cell.stage),
        degraded=cell.degraded,
        estimate=msgspec.structs.replace(estimate, scored=attempts),
        counts=cell.counts,
        means=cell.means,
    )


def _reasons(
    verdict: Verdict, damage: tuple[float, float] | None, evidence: Evidence, max_drop: float, more: int | None
) -> list[str]:
    from nel.observability.format import format_count, format_number

    limit = format_number(max_drop)
    if damage is None:
        return [f"there is no interval ({evidence.method.removeprefix('none: ')})"]
    shown = f"[{format_number(damage[0])}, {format_number(damage[1])}]"
    said = {
        Verdict.BLOCK: f"the whole interval of the drop, {shown}, lies beyond the allowed {limit}",
        Verdict.WARN: f"the candidate is worse: the interval of the drop, {shown}, lies within the allowed {limit}, "
        "but above 0",
        Verdict.PASS: f"the interval of the drop, {shown}, lies within the allowed {limit}",
        Verdict.INCONCLUSIVE: f"the interval of the drop, {shown}, reaches over the allowed {limit}",
    }
    reasons = [said[verdict]]
    if verdict is Verdict.INCONCLUSIVE:
        reasons.append(
            f"about {format_count(more)} more problems like these would decide, if the difference stays as it is"
            if more is not None
            else "no number of problems like these would decide, if the difference stays as it is"
        )
    return reasons


def _warnings(baseline: Chosen, left: CellView, candidate: Chosen, right: CellView, joined: Paired) -> list[str]:
    from nel.observability.format import format_count, format_number

    said = [text for text in (incomplete(baseline, left), incomplete(candidate, right)) if text]
    counts = joined.pairs.counts
    if left.benchmark != right.benchmark:
        said.append(f"the benchmarks have different names: {left.benchmark} and {right.benchmark}")
    if joined.pairs.by_index:
        said.append("paired by place in the data: a run does not hold what was asked, so equal content is not checked")
    if counts.changed_gold:
        said.append(f"{format_count(counts.changed_gold)} problems have another expected answer and are not paired")
    if counts.only_baseline or counts.only_candidate:
        said.append(
            f"not paired: {format_count(counts.only_baseline)} problems only in the baseline, "
            f"{format_count(counts.only_candidate)} only in the candidate (other content counts as another problem)"
        )
    if counts.unmeasured:
        said.append(f"{format_count(counts.unmeasured)} problems of both runs lack a score in one of them: left out")
    for name, cell in (("baseline", left), ("candidate", right)):
        if "stop_when" in cell.config:
            said.append(
                f"the {name} could end early (stop_when): intervals here are those of a fixed number of problems; "
                f"the one that holds for its stopping is in its bundle, {cell.bundle or cell.name}"
            )
    if left.repeats != right.repeats:
        said.append(f"repeats differ ({left.repeats} and {right.repeats}); each problem's mean is compared")
    for name, cell in (("baseline", left), ("candidate", right)):
        if cell.counts.error and cell.means.excluding_errors is not None and cell.means.errors_as_zero is not None:
            said.append(
                f"the {name} has {format_count(cell.counts.error)} errors: its mean reward is "
                f"{format_number(cell.means.excluding_errors)} without them, "
                f"{format_number(cell.means.errors_as_zero)} with each as 0"
            )
    return said
