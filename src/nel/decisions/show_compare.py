"""A comparison, a ranking or a plan as a page for people."""

from __future__ import annotations

from collections.abc import Iterator

from nel.core.contract import canonical_json
from nel.decisions.changes import RuntimeChange
from nel.decisions.compare import CompareReport, Comparison, Side
from nel.decisions.document import Block, Heading, Line, Table
from nel.decisions.flips import Flip, Flips
from nel.decisions.forecast import PowerPlan
from nel.decisions.ranking import Ranking, RankingReport
from nel.observability.format import (
    format_compact,
    format_count,
    format_duration,
    format_estimate,
    format_money,
    format_number,
    format_percent,
)
from nel.reporting.text import excerpt

_TEXT = 300
_CATEGORIES = 200
_SIGNIFICANT = 0.05


def signed(value: float | None) -> str:
    """A difference with its sign; a dash where there is none."""
    return "-" if value is None else f"{'+' if value > 0 else ''}{format_number(value)}"


def interval(low: float | None, high: float | None) -> str:
    """`[low, high]` of a difference."""
    return "-" if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def p_text(p: float) -> str:
    """A p-value; tiny ones as a bound."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def compare_page(report: CompareReport, *, compact: bool = False, verbose: bool = False) -> list[Block]:
    """The page of a comparison; `compact` leaves only verdict, table and warnings, `verbose` adds what differs."""
    page: list[Block] = [
        Heading(f"{report.verdict}: {report.candidate} against {report.baseline}", 1),
        Table(
            ("Benchmark", "Metric", "Baseline", "Candidate", "Difference", "95 % interval", "Problems", "Verdict"),
            [_overview(one) for one in report.comparisons],
            frozenset({2, 3, 4, 6}),
        ),
    ]
    for one in report.comparisons:
        page += _brief(one) if compact else _section(one, verbose=verbose)
    page += [Line(f"{item.benchmark} was not compared: {item.reason}", "!") for item in report.uncompared]
    return page


def _overview(one: Comparison) -> tuple[str, ...]:
    difference = one.difference
    return (
        one.benchmark,
        one.metric,
        _number(one.baseline.estimate.value),
        _number(one.candidate.estimate.value),
        signed(difference.value),
        interval(difference.ci_lower, difference.ci_upper),
        format_count(difference.n),
        str(one.verdict),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else format_number(value)


def _brief(one: Comparison) -> list[Block]:
    return [Line(f"{one.benchmark}: {text}", "!") for text in one.warnings]


def _section(one: Comparison, *, verbose: bool) -> Iterator[Block]:
    yield Heading(f"{one.benchmark}: {one.verdict}")
    yield Line(f"{one.verdict}: {'; '.join(one.reasons)}.", strong=True)
    for text in one.warnings:
        yield Line(text, "!")
    yield Table(("", "Score", "Scored", "Unscored", "Errors", "Model", "Cell"), [*_sides(one)], frozenset({2, 3, 4}))
    yield from _facts(one)
    if one.categories:
        yield from _categories(one)
    yield from _flips(one.flips)
    if one.runtime:
        yield Heading("Runtime, tokens, cost", 3)
        yield Table(
            ("", "Baseline", "Candidate", "Change"), [_runtime(change) for change in one.runtime], frozenset({1, 2, 3})
        )
    if verbose and one.settings:
        yield Heading("What else differs", 3)
        rows = [(change.name, change.baseline or "-", change.candidate or "-") for change in one.settings]
        yield Table(("Setting", "Baseline", "Candidate"), rows)
    elif one.settings:
        names = ", ".join(change.name for change in one.settings[:12])
        more = f" and {len(one.settings) - 12} more" if len(one.settings) > 12 else ""
        yield Line(f"Also different between the runs: {names}{more} (--verbose shows how).")


def _sides(one: Comparison) -> Iterator[tuple[str, ...]]:
    for name, side in (("baseline", one.baseline), ("candidate", one.candidate)):
        yield (name, _score(side), *_counted(side), side.model or "-", f"{side.path} ({side.cell})")


def _score(side: Side) -> str:
    return format_estimate(side.estimate.value, side.estimate.ci_lower, side.estimate.ci_upper)


def _counted(side: Side) -> tuple[str, str, str]:
    return format_count(side.counts.scored), format_count(side.counts.unscored), format_count(side.counts.error)


def _facts(one: Comparison) -> Iterator[Block]:
    difference, test, units = one.difference, one.test, one.units
    shown = f"{signed(difference.value)} {interval(difference.ci_lower, difference.ci_upper)}"
    better = f"{one.direction} is better"
    yield Line(
        f"Difference of {one.metric} ({better}): {shown}, {difference.method}, "
        f"{format_count(units.paired)} paired problems.",
        "-",
    )
    adjusted = "" if test.p_adjusted is None else f", {p_text(test.p_adjusted)} by Holm over the benchmarks"
    yield Line(
        f"Test: {test.name} ({test.reason}), {test.alternative}: p = {p_text(test.p_value)}{adjusted}; "
        f"{format_count(test.worse)} worse, {format_count(test.better)} better.",
        "-",
    )
    if difference.mde is not None:
        yield Line(f"A true difference of {format_number(difference.mde)} would be seen with a chance of 80 %.", "-")


def _categories(one: Comparison) -> Iterator[Block]:
    yield Heading("Categories", 3)
    correction = {"holm": "Holm", "bh": "Benjamini-Hochberg"}[one.correction]
    rows = [
        (
            item.category,
            format_count(item.n),
            format_number(item.baseline),
            format_number(item.candidate),
            signed(item.difference),
            interval(item.ci_lower, item.ci_upper),
            f"{p_text(item.p_adjusted)}{' *' if item.p_adjusted <= _SIGNIFICANT else ''}",
        )
        for item in one.categories[:_CATEGORIES]
    ]
    header = ("Category", "Problems", "Baseline", "Candidate", "Difference", "95 % interval", f"p ({correction})")
    yield Table(header, rows, frozenset({1, 2, 3, 4}))
    if len(one.categories) > _CATEGORIES:
        yield Line(f"{len(one.categories) - _CATEGORIES} more categories are in the JSON form.")


def _flips(flips: Flips) -> Iterator[Block]:
    if flips.both_right is None or flips.both_wrong is None:
        yield Line(
            f"Changes: {format_count(flips.regressions)} problems worse, {format_count(flips.improvements)} better; "
            "--correct-above X says which scores are right and counts flips.",
            "-",
        )
    else:
        yield Line(
            f"Flips: {format_count(flips.regressions)} right to wrong, {format_count(flips.improvements)} wrong to "
            f"right; {format_count(flips.both_right)} right in both, {format_count(flips.both_wrong)} wrong in both "
            f"(right: {flips.right}).",
            "-",
        )
    for title, shown, count in (
        ("Worse", flips.shown_regressions, flips.regressions),
        ("Better", flips.shown_improvements, flips.improvements),
    ):
        if shown:
            yield Heading(f"{title}: {format_count(len(shown))} of {format_count(count)}", 3)
            for flip in shown:
                yield from _flip(flip)


def _flip(flip: Flip) -> Iterator[Block]:
    category = f", {flip.category}" if flip.category else ""
    values = f"{format_number(flip.baseline)} to {format_number(flip.candidate)}"
    expected = flip.expected if isinstance(flip.expected, str) else canonical_json(flip.expected).decode()
    yield Line(f"problem {flip.problem}{category}: {values}")
    yield Line(f"asked: {excerpt(flip.prompt, _TEXT)}", "-")
    yield Line(f"expected: {excerpt(expected, _TEXT)}", "-")
    yield Line(f"baseline: {excerpt(flip.baseline_answer, _TEXT)}", "-")
    yield Line(f"candidate: {excerpt(flip.candidate_answer, _TEXT)}", "-")


def _runtime(change: RuntimeChange) -> tuple[str, ...]:
    shown = {"seconds": format_duration, "count": format_compact, "rate": format_compact, "money": format_money}
    form = shown[change.kind]
    relative = change.relative
    sign = "" if not relative else "+" if relative > 0 else "-"
    return (
        change.name,
        "-" if change.baseline is None else form(change.baseline),
        "-" if change.candidate is None else form(change.candidate),
        "-" if relative is None else f"{sign}{format_percent(abs(relative))}",
    )


def ranking_page(report: RankingReport) -> list[Block]:
    """The page of a ranking."""
    page: list[Block] = []
    for ranking in report.rankings:
        page += _ranking(ranking)
    return page


def _ranking(ranking: Ranking) -> Iterator[Block]:
    yield Heading(f"{ranking.benchmark}: {ranking.metric}, {ranking.direction} is better", 1)
    rows = [
        (
            str(run.rank),
            run.path,
            run.model or "-",
            format_estimate(run.metric.value, run.metric.ci_lower, run.metric.ci_upper),
            format_count(run.metric.n),
            ", ".join(run.tied_with) or "-",
        )
        for run in ranking.runs
    ]
    yield Table(("Rank", "Run", "Model", "Score", "Problems", "Not separable from"), rows, frozenset({0, 4}))
    yield Line(
        "A rank is one more than the number of runs that are better at 5 %, by paired tests with Holm's correction "
        "over all pairs."
    )
    pairs = [
        (
            one.first,
            one.second,
            signed(one.difference),
            interval(one.ci_lower, one.ci_upper),
            format_count(one.n),
            p_text(one.p_adjusted),
        )
        for one in ranking.pairs
    ]
    yield Table(
        ("First", "Second", "Second - first", "95 % interval", "Problems", "p (Holm)"), pairs, frozenset({2, 4, 5})
    )
    for text in ranking.warnings:
        yield Line(text, "!")


def plan_page(plan: PowerPlan) -> list[Block]:
    """The page of a plan."""
    of = f" on {plan.benchmark}" if plan.benchmark else ""
    spread = plan.spread
    page: list[Block] = [
        Heading(
            f"To see a drop of {format_number(plan.drop)} in {plan.metric}{of} with a chance of "
            f"{format_percent(plan.power)} (two-sided, {format_percent(plan.alpha)})",
            1,
        ),
        Table(
            ("Repeats", "Problems", "Attempts", "Tokens", "Cost", _at_hand(plan.available)),
            [
                (
                    format_count(row.repeats),
                    "over 10^12" if row.problems is None else format_count(row.problems),
                    "-" if row.attempts is None else format_count(row.attempts),
                    "-" if row.tokens is None else format_compact(row.tokens),
                    "-" if row.cost is None else format_money(row.cost),
                    "-" if row.detectable is None else format_number(row.detectable),
                )
                for row in plan.rows
            ],
            frozenset(range(6)),
        ),
        Line("Attempts, tokens and cost are for one model; a baseline that has run already costs nothing more."),
        Line(f"From {spread.source}.", "-"),
        Line(_variance(plan), "-"),
    ]
    if plan.available is not None and _too_many(plan):
        page.append(Line(f"There are only {format_count(plan.available)} problems at hand."))
    return page


def _at_hand(available: int | None) -> str:
    return "Smallest drop seen" if available is None else f"Smallest drop seen with {format_count(available)} problems"


def _variance(plan: PowerPlan) -> str:
    spread = plan.spread
    effect = "" if spread.design_effect == 1 else f"; clusters multiply it by {format_number(spread.design_effect)}"
    if spread.within is None:
        known = f"Variance of a problem's difference: {format_number(spread.between)}{effect}"
        return f"{known}; one attempt a problem does not tell what repeats would save."
    return (
        f"Variance of a problem's difference: {format_number(spread.between)} between problems, "
        f"{format_number(spread.within)} within, divided by the repeats{effect}."
    )


def _too_many(plan: PowerPlan) -> bool:
    return all(row.problems is None or row.problems > (plan.available or 0) for row in plan.rows)
