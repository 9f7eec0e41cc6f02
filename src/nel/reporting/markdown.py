"""The report in Markdown: one table of results, what to know before believing it, then each cell in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import islice

from nel.observability.failures import CATEGORIES
from nel.observability.format import format_count, format_percent
from nel.reporting import content
from nel.reporting.run_view import CellView, MetricView, RunView
from nel.reporting.text import excerpt, markdown

_EXCERPT = 200
_CATEGORIES = 200
_WIDEST = 48


def render_markdown(view: RunView) -> str:
    """The whole report; every text of the run is escaped, so that it can break neither a table nor the page."""
    lines = [f"# Evaluation report: {markdown(view.manifest.run_id)}", ""]
    lines += _facts(content.run_facts(view))
    lines += ["## Results", ""]
    lines += _results(view)
    warnings = content.warnings(view)
    if warnings:
        lines += ["## Warnings", "", *(f"- {markdown(text)}" for text in warnings), ""]
    for cell in view.cells():
        lines += _cell(view, cell)
    return "\n".join(lines).rstrip() + "\n"


def _results(view: RunView) -> list[str]:
    rows = content.rows(view)
    if not rows:
        return ["The run has no cells.", ""]
    head = ["Cell", "Model", "Metric", "Value", "95 % interval", "Problems × repeats"]
    head += ["Scored", "Unscored", "Errors", "Status"]
    return _table(head, [astuple(row) for row in rows], align="lllrrrrrrl")


def _cell(view: RunView, cell: CellView) -> Iterator[str]:
    yield f"## {markdown(cell.name)}"
    yield ""
    yield from _facts(
        [
            ("Benchmark", cell.benchmark),
            ("Model", cell.model or content.ABSENT),
            *([("Variant", cell.variant)] if cell.variant else []),
            ("Status", content.status(cell)),
            *([("Reason", excerpt(cell.error, 1000))] if cell.error else []),
            *([("Planned", f"{format_count(cell.counts.planned)} attempts")] if cell.counts.planned else []),
        ]
    )
    if cell.metrics:
        yield from _section("Metrics", _estimates("Metric", cell.metrics, with_method=True))
    if cell.categories:
        shown = dict(islice(cell.categories.items(), _CATEGORIES))
        yield from _section("Categories", _estimates("Category", shown, with_method=False))
        if hidden := len(cell.categories) - len(shown):
            yield f"{format_count(hidden)} more categories are in {markdown(cell.bundle or '')}."
            yield ""
    if runtime := content.runtime_facts(cell):
        yield from _section("Runtime", _facts(runtime))
    if judges := content.judge_facts(cell):
        yield from _section("Judges", _facts(judges))
    yield from _failures(view, cell)
    if identity := content.identity_facts(cell):
        yield from _section("Identity", _facts(identity))


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "", *lines]


def _estimates(name: str, metrics: dict[str, MetricView], *, with_method: bool) -> list[str]:
    head = [name, "Value", "95 % interval", "Standard error", "Problems", "Scored", "Unscored", "Errors"]
    body = [
        [label, content.number(metric.value), content.interval(metric), content.number(metric.stderr)]
        + [format_count(count) for count in (metric.n, metric.scored, metric.unscored, metric.error)]
        + [metric.method] * with_method
        for label, metric in metrics.items()
    ]
    return _table(head + ["Method"] * with_method, body, align="lrrrrrrr" + "l" * with_method)


def _failures(view: RunView, cell: CellView) -> Iterator[str]:
    report = cell.failures
    if report is None or not report.categories:
        return
    body = [
        [name, format_count(found.count), format_percent(found.percentage)]
        + [format_count(found.outcomes.get(outcome, 0)) for outcome in ("error", "unscored", "scored")]
        + [CATEGORIES.get(name, "")]
        for name, found in report.categories.items()
    ]
    head = ["Category", "Attempts", "Share", "Errors", "Unscored", "Scored", "Meaning"]
    yield from _section("Failures", _table(head, body, align="lrrrrrl"))
    if found := content.examples(view, cell):
        yield from _table(
            ["Example of", "Problem", "Repeat", "What happened", "Prompt", "Answer"],
            [
                [item.category, item.problem, str(item.repeat)]
                + [excerpt(text, _EXCERPT) or content.ABSENT for text in (item.error, item.prompt, item.answer)]
                for item in found
            ],
            align="llrlll",
        )


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    return _table(["", ""], [list(fact) for fact in facts], align="ll")


def _table(head: Sequence[str], body: Sequence[Sequence[str]], *, align: str) -> list[str]:
    cells = [[markdown(text) for text in line] for line in (head, *body)]
    widths = [max(3, *(min(len(text), _WIDEST) for text in column)) for column in zip(*cells, strict=True)]
    rule = ["-" * (width - 1) + ":" if side == "r" else "-" * width for width, side in zip(widths, align, strict=True)]
    lines = [
        " | ".join(
            text.rjust(width) if side == "r" else text.ljust(width)
            for text, width, side in zip(line, widths, align, strict=True)
        )
        for line in (cells[0], rule, *cells[1:])
    ]
    return [*(f"| {line} |" for line in lines), ""]
