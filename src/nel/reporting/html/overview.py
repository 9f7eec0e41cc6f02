"""What the first page says of a run: the same sections in the report and in the viewer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from markupsafe import Markup

from nel.observability.failures import CATEGORIES
from nel.observability.format import format_count, format_duration, format_percent
from nel.reporting import content
from nel.reporting.html import plots
from nel.reporting.run_view import CellView, MetricView, RunView
from nel.reporting.text import excerpt, one_line

if TYPE_CHECKING:
    from jinja2 import Environment

_CATEGORIES = 200
_EXCERPT = 400


@dataclass(frozen=True, slots=True)
class Distributions:
    """How the attempts of a cell are spread; None where there is too little to draw."""

    latency: plots.Histogram | None = None
    """Milliseconds."""
    length: plots.Histogram | None = None
    """Characters of the answer."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric or a category as a line of a table."""

    name: str
    value: str
    interval: str
    picture: Markup
    stderr: str
    problems: str
    scored: str
    unscored: str
    error: str
    method: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure category with its examples."""

    name: str
    meaning: str
    count: str
    share: str
    outcomes: str
    examples: list[ExampleLine]


@dataclass(frozen=True, slots=True)
class ExampleLine:
    """An attempt that stands for a failure category."""

    link: str
    """Fragment of the address that opens it in the list of samples."""
    problem: str
    error: str
    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class CellPart:
    """Everything about one cell."""

    anchor: str
    name: str
    status: str
    facts: list[tuple[str, str]]
    metrics: list[Estimate]
    categories: list[Estimate]
    more_categories: str
    figures: list[tuple[str, str, Markup]]
    """Title, what it shows in words, picture."""
    runtime: list[tuple[str, str]]
    judges: list[tuple[str, str]]
    failures: list[Failure]
    identity: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Overview:
    """The first page of a run, ready for the template."""

    title: str
    subtitle: str
    stage: str
    facts: list[tuple[str, str]]
    warnings: list[str]
    rows: list[tuple[str, content.Row, Markup]]
    """Anchor of the cell, its line of the table, its interval."""
    cells: list[CellPart] = field(default_factory=list)


@cache
def templates() -> Environment:
    """The templates of the report and of the viewer; every value they print is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("nel.reporting.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def overview(view: RunView, spread: Mapping[str, Distributions], *, texts: bool) -> Overview:
    """The first page of `view`; `spread` by cell key. With `texts` the examples are looked up in the logs, which takes
    as long as reading them; without, they are links and error messages."""
    cells = view.cells()
    scale = plots.scale_of(cell.headline_metric for cell in cells)
    rows = [
        (f"cell-{number}", row, plots.interval(cell.headline_metric, scale))
        for number, (cell, row) in enumerate(zip(cells, content.rows(view), strict=True))
    ]
    return Overview(
        title=one_line(_title([cell.benchmark for cell in cells]) or view.manifest.run_id),
        subtitle=one_line(_title([cell.model for cell in cells])),
        stage=str(view.manifest.stage),
        facts=content.run_facts(view),
        warnings=content.warnings(view),
        rows=rows,
        cells=[
            _cell(view, cell, number, spread.get(cell.key, Distributions()), texts) for number, cell in enumerate(cells)
        ],
    )


def _title(names: list[str]) -> str:
    known = list(dict.fromkeys(name for name in names if name))
    return ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")


def _cell(view: RunView, cell: CellView, number: int, spread: Distributions, texts: bool) -> CellPart:
    shown = dict(islice(cell.categories.items(), _CATEGORIES))
    hidden = len(cell.categories) - len(shown)
    facts = [("Benchmark", cell.benchmark), ("Model", cell.model or content.ABSENT)]
    facts += [("Variant", cell.variant)] if cell.variant else []
    facts += [("Reason", excerpt(cell.error, 1000))] if cell.error else []
    facts += [("Planned", f"{format_count(cell.counts.planned)} attempts")] if cell.counts.planned else []
    return CellPart(
        anchor=f"cell-{number}",
        name=cell.name,
        status=content.status(cell),
        facts=facts,
        metrics=_estimates(cell.metrics, bar=False),
        categories=_estimates(shown, bar=True),
        more_categories=f"{format_count(hidden)} more categories are in {cell.bundle or cell.name}." if hidden else "",
        figures=_figures(spread),
        runtime=content.runtime_facts(cell),
        judges=content.judge_facts(cell),
        failures=_failures(view, cell, number, texts),
        identity=content.identity_facts(cell),
    )


def _estimates(metrics: Mapping[str, MetricView], *, bar: bool) -> list[Estimate]:
    scales = {unit: plots.scale_of(m for m in metrics.values() if m.unit == unit) for unit in _units(metrics)}
    return [
        Estimate(
            name=name,
            value=content.number(metric.value),
            interval=content.interval(metric),
            picture=plots.interval(metric, scales[metric.unit], bar=bar),
            stderr=content.number(metric.stderr),
            problems=format_count(metric.n),
            scored=format_count(metric.scored),
            unscored=format_count(metric.unscored),
            error=format_count(metric.error),
            method=metric.method,
        )
        for name, metric in metrics.items()
    ]


def _units(metrics: Mapping[str, MetricView]) -> set[str]:
    return {metric.unit for metric in metrics.values()}


def _figures(spread: Distributions) -> list[tuple[str, str, Markup]]:
    named = [
        ("Latency", spread.latency, _milliseconds, ""),
        ("Length of the answers", spread.length, _whole, " characters"),
    ]
    return [
        (title, f"{_spread_words(found, unit)}{after}", plots.draw(found, unit))
        for title, found, unit, after in named
        if found is not None
    ]


def _spread_words(found: plots.Histogram, unit: Callable[[float], str]) -> str:
    middle = f"p50 {unit(found.p50)}, p90 {unit(found.p90)}, p99 {unit(found.p99)}"
    return f"{format_count(sum(found.counts))} attempts: {middle}"


def _milliseconds(value: float) -> str:
    return format_duration(value / 1000)


def _whole(value: float) -> str:
    return format_count(round(value))


def _failures(view: RunView, cell: CellView, number: int, texts: bool) -> list[Failure]:
    if cell.failures is None:
        return []
    found = content.examples(view, cell) if texts else []
    lines: dict[str, list[ExampleLine]] = {}
    places = [(name, item) for name, failure in cell.failures.categories.items() for item in failure.exemplars]
    for position, (name, item) in enumerate(places):
        example = found[position] if found else None
        lines.setdefault(name, []).append(
            ExampleLine(
                link=f"#s/{number}/{item.problem_idx}/{item.repeat}",
                problem=one_line(example.problem if example else f"problem {item.problem_idx}"),
                error=excerpt(item.error, _EXCERPT),
                prompt=excerpt(example.prompt, _EXCERPT) if example else "",
                answer=excerpt(example.answer, _EXCERPT) if example else "",
            )
        )
    return [
        Failure(
            name=name,
            meaning=CATEGORIES.get(name, ""),
            count=format_count(failure.count),
            share=format_percent(failure.percentage),
            outcomes=", ".join(f"{format_count(count)} {outcome}" for outcome, count in failure.outcomes.items()),
            examples=lines.get(name, []),
        )
        for name, failure in cell.failures.categories.items()
    ]
