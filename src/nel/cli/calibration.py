"""What `nel judge calibrate` prints, and the exit code that it ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nel.cli.output import print_table
from nel.core.errors import ExitCode
from nel.observability.format import format_count, format_duration, format_money, format_percent

if TYPE_CHECKING:
    from nel.metrics.agreement import Kappa
    from nel.metrics.estimate import Estimate
    from nel.orchestration.calibrate import Calibration

MOST_MISSING = 0.05
"""Share of the rows that may be without a verdict."""
_WORDS = ((0.8, "almost perfect"), (0.6, "substantial"), (0.4, "moderate"), (0.2, "fair"), (0.0, "slight"))
"""From which kappa on an agreement is called so: Landis and Koch 1977."""


def decided(found: Calibration, least: float | None) -> tuple[ExitCode, str]:
    """The exit code, and why; `least` is the kappa that is wanted."""
    missing = found.unscored + sum(found.errors.values())
    if not found.scored:
        return ExitCode.FAILED, "FAILED: nothing was judged"
    if least is not None:
        kappa = found.kappa
        if kappa is None or kappa.value is None:
            return ExitCode.INCONCLUSIVE, "INCONCLUSIVE: kappa says nothing, since judge and people gave one label only"
        if kappa.value < least:
            return ExitCode.FAILED, f"FAILED: kappa {kappa.value:.3f} is below {least:g}"
        lower = lower_end(kappa, found.accuracy)
        if lower < least:
            more = f"INCONCLUSIVE: kappa {kappa.value:.3f} may be as low as {lower:.3f}, below {least:g}"
            return ExitCode.INCONCLUSIVE, f"{more}; label more rows"
    if missing > MOST_MISSING * (found.scored + missing):
        share = format_percent(missing / (found.scored + missing))
        return ExitCode.DEGRADED, f"DEGRADED: {share} of the rows have no verdict"
    return ExitCode.OK, "" if least is None else f"OK: kappa is at least {least:g}"


def lower_end(kappa: Kappa, accuracy: Estimate) -> float:
    """The lower end of kappa's interval; full agreement has none, and takes that of the accuracy instead."""
    if kappa.ci_lower is not None:
        return kappa.ci_lower
    observed = accuracy.ci_lower if accuracy.ci_lower is not None else 0.0
    return (observed - kappa.expected) / (1 - kappa.expected)


def print_calibration(found: Calibration, verdict: str) -> None:
    """The agreement, who said what, and what it took."""
    errors = sum(found.errors.values())
    rows = found.scored + found.unscored + errors
    click.echo(f"Judge {found.metric} (version {found.version}) on {format_count(rows)} labelled answers")
    unscored = f"{format_count(found.unscored)} unscored ({format_count(found.unparsable)} could not be read)"
    click.echo(f"{format_count(found.scored)} judged, {unscored}, {format_count(errors)} errors")
    for category, count in found.errors.items():
        click.echo(f"  {category}: {format_count(count)}")
    click.echo()
    same = round((found.accuracy.value or 0.0) * found.scored)
    table = [("Accuracy", *_numbers(found.accuracy), f"same as the label on {same} of {found.scored}")]
    table += [("Cohen's kappa", *_numbers(found.kappa), _meaning(found.kappa))] if found.kappa else []
    if found.weighted_kappa:
        weighted = found.weighted_kappa
        table += [("Weighted kappa", *_numbers(weighted), "a near miss counts for something (quadratic weights)")]
    print_table(table, header=("Agreement", "Value", "95 % interval", "Meaning"))
    if found.confusion:
        _print_confusion(found.confusion)
    if found.usage:
        click.echo(f"\nTook {_usage(found)}")
    if verdict:
        click.echo(f"\n{verdict}")


def _numbers(found: Estimate | Kappa) -> tuple[str, str]:
    if found.value is None:
        return "-", "-"
    return f"{found.value:.3f}", "-" if found.ci_lower is None else f"{found.ci_lower:.3f} to {found.ci_upper:.3f}"


def _meaning(kappa: Kappa) -> str:
    if kappa.value is None:
        return "judge and people gave one and the same label throughout"
    word = next((word for least, word in _WORDS if kappa.value >= least), "worse than chance")
    return f"{word}, where chance alone agrees on {format_percent(kappa.expected)}"


def _print_confusion(confusion: dict[str, dict[str, int]]) -> None:
    names = list(confusion)
    click.echo("\nWhat people said (rows) and the judge (columns):")
    print_table(
        [(name, *(format_count(confusion[name][other]) for other in names)) for name in names], header=("", *names)
    )
    missed = [(confusion[one][other], one, other) for one in names for other in names if one != other]
    count, one, other = max(missed, default=(0, "", ""))
    if count:
        total = sum(count for count, *_ in missed)
        click.echo(f"Most frequent disagreement: people say {one}, the judge says {other} ({count} of {total}).")


def _usage(found: Calibration) -> str:
    usage = found.usage
    parts = [f"{format_count(usage['requests'])} replies"]
    parts += [f"{format_count(usage['prompt_tokens'] + usage['completion_tokens'])} tokens"]
    parts += [f"cost {format_money(usage['cost'])}"] if usage["cost"] is not None else []
    latency = usage["mean_latency_ms"]
    parts += [f"{format_duration(latency / 1000)} a reply"] if latency is not None else []
    return ", ".join(parts)
