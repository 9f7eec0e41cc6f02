"""`gate_runs`: GO, NO-GO or INCONCLUSIVE for a release, by a policy over many benchmarks.

Each gated benchmark answers two questions with one-sided tests at 2.5 %, which is what its two-sided 95 % interval
says: is the damage shown to be within the limit (PASS), is it shown to be beyond (BREACH)? Both families of tests are
corrected over the gated benchmarks by Holm's method, so that neither a lucky PASS nor an unlucky BREACH becomes likely
because there are many. The rule is written down in `docs/decisions.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

import msgspec
import numpy as np

from nel.core.errors import ExitCode
from nel.decisions.compare import CompareOptions, Difference, Paired, describe, join, why_not
from nel.decisions.evidence import LEVEL, Evidence, difference_of
from nel.decisions.multiplicity import adjust
from nel.decisions.policy import Limits, Policy, Tier
from nel.decisions.selection import Chosen, incomplete, pair_cells
from nel.decisions.verdict import damage_interval
from nel.observability.format import format_count, format_number, format_percent
from nel.reporting.run_view import Direction

ALPHA = (1 - LEVEL) / 2
MIN_PAIRED = 10
"""Fewer paired problems are no evidence for a release."""


class Status(StrEnum):
    """What a benchmark's evidence says of its limits."""

    PASS = "PASS"  # noqa: S105 - a status
    BREACH = "BREACH"
    INSUFFICIENT = "INSUFFICIENT_EVIDENCE"
    MISSING = "MISSING"
    """One of the runs has no such benchmark, or no scores of it."""


class GateVerdict(StrEnum):
    """Whether to ship."""

    GO = "GO"
    NO_GO = "NO-GO"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def exit_code(self) -> ExitCode:
        """What `nel gate --strict` tells the shell."""
        return {GateVerdict.GO: ExitCode.OK, GateVerdict.NO_GO: ExitCode.FAILED}.get(self, ExitCode.INCONCLUSIVE)


class GatedBenchmark(msgspec.Struct, kw_only=True):
    """One benchmark against its limits."""

    benchmark: str
    listed: bool
    """Named by the policy; otherwise judged by its defaults."""
    tier: Tier
    status: Status
    reasons: list[str]
    max_drop: float
    max_relative_drop: float | None
    """None also where the baseline's score is not below `relative_guard_below`."""
    metric: str | None = None
    direction: Direction | None = None
    n_paired: int = 0
    baseline_score: float | None = None
    """Over the paired problems, as `candidate_score`."""
    candidate_score: float | None = None
    difference: Difference | None = None
    relative_drop: float | None = None
    """Damage as a share of the baseline's score."""
    p_within: float | None = None
    """Against "the damage is at the limit or beyond", corrected over the gated benchmarks."""
    p_beyond: float | None = None
    """Against "the damage is within the limit", likewise."""
    absolute_breached: bool = False
    """The observed damage is beyond `max_drop`, whatever its interval."""
    relative_breached: bool = False

    @property
    def stops(self) -> bool:
        """Makes it a NO-GO: a breach, or a critical benchmark that nobody measured."""
        missing = self.status is Status.MISSING and self.tier is Tier.CRITICAL
        return self.tier is not Tier.ADVISORY and (self.status is Status.BREACH or missing)

    @property
    def holds_up(self) -> bool:
        """Keeps it from a GO: a critical benchmark without proof; a supporting one that is missing, was not measured
        or looks beyond its limits."""
        if self.tier is Tier.ADVISORY or self.status in {Status.PASS, Status.BREACH}:
            return False
        looks_bad = self.absolute_breached or self.relative_breached
        unknown = self.status is Status.MISSING or self.difference is None
        return self.tier is Tier.CRITICAL or unknown or looks_bad


class GateReport(msgspec.Struct, kw_only=True, tag_field="schema", tag="nel.gate/1"):
    """The verdict and all that led to it."""

    baseline: str
    candidate: str
    policy: str
    verdict: GateVerdict
    verdict_reasons: list[str]
    benchmarks: list[GatedBenchmark]
    missing: list[str]
    warnings: list[str]


@dataclass(slots=True)
class _Case:
    """A benchmark while it is judged."""

    report: GatedBenchmark
    doubt: list[str]
    """Why its evidence may not pass: a run that is incomplete or degraded."""
    within: float = 1.0
    beyond: float = 1.0
    tested: bool = False


def gate_runs(baseline: Chosen, candidate: Chosen, policy: Policy, *, policy_name: str = "") -> GateReport:
    """The verdict of `policy` on two runs; `UsageError` where a metric cannot be compared."""
    cases = [_examine(name, limits, baseline, candidate, policy) for name, limits in _plan(baseline, candidate, policy)]
    gated = [case for case in cases if case.report.tier is not Tier.ADVISORY and case.tested]
    for family in ("within", "beyond"):
        for case, p in zip(gated, adjust([getattr(case, family) for case in gated]), strict=True):
            setattr(case, family, p)
    for case in cases:
        if case.tested:
            _settle(case)
    reports = [case.report for case in cases]
    verdict, reasons = _verdict(reports)
    return GateReport(
        baseline=str(baseline.path),
        candidate=str(candidate.path),
        policy=policy_name,
        verdict=verdict,
        verdict_reasons=reasons,
        benchmarks=reports,
        missing=[report.benchmark for report in reports if report.status is Status.MISSING],
        warnings=list(_warnings(baseline, candidate, policy, cases)),
    )


def _plan(baseline: Chosen, candidate: Chosen, policy: Policy) -> Iterable[tuple[str, Limits]]:
    """The policy's benchmarks in its order, then those that both runs hold beside them."""
    yield from policy.benchmarks.items()
    taken = set(policy.benchmarks)
    taken |= {cell.benchmark for run in (baseline, candidate) for cell in run.cells if cell.name in taken}
    both = {cell.benchmark for cell in candidate.cells}
    for name in dict.fromkeys(cell.benchmark for cell in baseline.cells):
        if name in both and name not in taken:
            yield name, policy.defaults


def _examine(name: str, limits: Limits, baseline: Chosen, candidate: Chosen, policy: Policy) -> _Case:
    """A benchmark with its uncorrected p-values, or why it has none."""
    report = GatedBenchmark(
        benchmark=name,
        listed=name in policy.benchmarks,
        tier=limits.tier,
        status=Status.MISSING,
        reasons=[],
        max_drop=limits.max_drop,
        max_relative_drop=limits.max_relative_drop,
    )
    case = _Case(report, [])
    if not any(name in {cell.name, cell.benchmark} for run in (baseline, candidate) for cell in run.cells):
        report.reasons.append(f"neither run has it{_near(name, baseline, candidate)}")
        return case
    cells = pair_cells(baseline, candidate, [name])[0]
    reason = why_not(baseline, candidate, cells)
    if reason:
        report.reasons.append(reason)
        return case
    assert cells.baseline is not None
    assert cells.candidate is not None
    case.doubt = [
        text for text in (incomplete(baseline, cells.baseline), incomplete(candidate, cells.candidate)) if text
    ]
    options = CompareOptions(metric=limits.metric, direction=limits.direction)
    joined = join(baseline, cells.baseline, candidate, cells.candidate, options)
    report.status = Status.INSUFFICIENT
    _measure(case, joined, limits)
    return case


def _near(name: str, baseline: Chosen, candidate: Chosen) -> str:
    known = {cell.benchmark for run in (baseline, candidate) for cell in run.cells}
    near = get_close_matches(name, known, n=1)
    return f"; did the policy mean {near[0]}?" if near else f"; they hold: {', '.join(sorted(known)) or 'nothing'}"


def _measure(case: _Case, joined: Paired, limits: Limits) -> None:
    """Fills the report's numbers and the two p-values."""
    report, pairs, metric, evidence = case.report, joined.pairs, joined.metric, joined.evidence
    report.metric, report.direction, report.n_paired = metric.name, metric.direction, pairs.counts.paired
    if pairs.counts.paired < MIN_PAIRED:
        found = format_count(pairs.counts.paired)
        report.reasons.append(f"{found} paired problems with a score in both runs; a gate needs {MIN_PAIRED}")
        return
    before, after = float(pairs.baseline.mean()), float(pairs.candidate.mean())
    damage = metric.sign * evidence.value
    report.baseline_score, report.candidate_score = before, after
    report.difference = describe(evidence, pairs.counts.paired)
    report.relative_drop = damage / abs(before) if before else None
    report.absolute_breached = damage > limits.max_drop
    case.within, case.beyond = _p_values(evidence, metric.sign, limits.max_drop)
    guarded = limits.relative_guard_below is not None and before >= limits.relative_guard_below
    if limits.max_relative_drop is None or not before or guarded:
        report.max_relative_drop = None
    else:
        report.relative_breached = damage / abs(before) > limits.max_relative_drop
        within, beyond = _relative_p_values(joined, limits.max_relative_drop)
        # To be within, it must be within both limits; beyond either is beyond, and there were two chances for it.
        case.within, case.beyond = max(case.within, within), min(1.0, 2 * min(case.beyond, beyond))
    case.tested = damage_interval(evidence, metric.sign) is not None
    if not case.tested:
        report.reasons.append(f"there is no interval ({evidence.method.removeprefix('none: ')})")


def _p_values(evidence: Evidence, sign: float, limit: float) -> tuple[float, float]:
    """Against "damage >= limit", and against "damage <= limit"."""
    if sign > 0:
        return evidence.p_below(limit), evidence.p_above(limit)
    return evidence.p_above(-limit), evidence.p_below(-limit)


def _relative_p_values(joined: Paired, share: float) -> tuple[float, float]:
    """Likewise for damage / |baseline| against `share`, through the mean of damage - share * baseline per problem,
    which is uncertain in the baseline too (Fieller's linear contrast)."""
    pairs = joined.pairs
    contrast = joined.damage - share * np.sign(pairs.baseline.mean()) * pairs.baseline
    evidence = difference_of(
        contrast, joined.clusters, bounds=joined.bounds, single=False, cluster_by=joined.cluster_by
    )
    return evidence.p_below(0.0), evidence.p_above(0.0)


def _settle(case: _Case) -> None:
    """The status from the corrected p-values."""
    report = case.report
    report.p_within, report.p_beyond = case.within, case.beyond
    limit = f"the allowed drop of {_limit(report)}"
    if case.beyond <= ALPHA:
        report.status = Status.BREACH
        report.reasons.append(f"the damage is beyond {limit}")
    elif case.within > ALPHA:
        looks = "beyond" if report.absolute_breached or report.relative_breached else "within"
        report.reasons.append(f"the damage looks {looks} {limit}, but too few problems show it")
    elif case.doubt:
        report.reasons.append(f"the damage is within {limit}, but {'; '.join(case.doubt)}")
    else:
        report.status = Status.PASS
        report.reasons.append(f"the damage is within {limit}")


def _limit(report: GatedBenchmark) -> str:
    relative = report.max_relative_drop
    also = "" if relative is None else f" and {format_percent(relative)} of the baseline"
    return f"{format_number(report.max_drop)}{also}"


def _verdict(reports: list[GatedBenchmark]) -> tuple[GateVerdict, list[str]]:
    gated = [report for report in reports if report.tier is not Tier.ADVISORY]
    stops = [report for report in gated if report.stops]
    if stops:
        return GateVerdict.NO_GO, [_said(report) for report in stops]
    holds = [report for report in gated if report.holds_up]
    if holds:
        return GateVerdict.INCONCLUSIVE, [_said(report) for report in holds]
    if not any(report.status is Status.PASS for report in gated):
        return GateVerdict.INCONCLUSIVE, ["nothing was gated: no critical or supporting benchmark passed"]
    passed = sum(report.status is Status.PASS for report in gated)
    reasons = [f"{format_count(passed)} of {format_count(len(gated))} gated benchmarks passed"]
    return GateVerdict.GO, reasons + [_said(report) for report in gated if report.status is not Status.PASS]


def _said(report: GatedBenchmark) -> str:
    return f"{report.benchmark} ({report.tier}): {report.status}: {'; '.join(report.reasons)}"


def _warnings(baseline: Chosen, candidate: Chosen, policy: Policy, cases: list[_Case]) -> Iterable[str]:
    for case in cases:
        yield from (f"{case.report.benchmark}: {text}" for text in case.doubt)
        if not case.report.listed:
            yield f"{case.report.benchmark} is not in the policy: judged by its defaults"
    for run, other in ((baseline, candidate), (candidate, baseline)):
        for cell in run.cells:
            if cell.benchmark in {one.benchmark for one in other.cells} or {cell.name, cell.benchmark} & {
                *policy.benchmarks
            }:
                continue
            yield f"{cell.benchmark} is only in {run.path} and not in the policy: not judged"
