"""The report as CSV: one line for each metric and category of each cell, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from nel.reporting import content
from nel.reporting.run_view import CellView, MetricView, RunView
from nel.reporting.text import one_line

COLUMNS = (
    "run_id", "cell", "benchmark", "model", "variant", "status", "metric", "category", "headline",
    "value", "ci_lower", "ci_upper", "level", "stderr", "n", "scored", "unscored", "error", "unit", "method", "reason",
)  # fmt: skip

_FORMULA = ("=", "+", "-", "@")


def render_csv(view: RunView) -> str:
    """RFC 4180 with a header; numbers unrounded, an absent one is empty.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for cell in view.cells():
        known = {
            "run_id": _text(view.manifest.run_id),
            "cell": _text(cell.name),
            "benchmark": _text(cell.benchmark),
            "model": _text(cell.model),
            "variant": _text(cell.variant),
            "status": content.status(cell),
            "reason": _text(cell.error or ""),
        }
        writer.writerows({**known, **line} for line in _lines(cell))
    return out.getvalue()


def _lines(cell: CellView) -> Iterator[dict[str, Any]]:
    if not cell.metrics:
        counts = cell.counts
        yield {"scored": counts.scored, "unscored": counts.unscored, "error": counts.error}
    for name, metric in cell.metrics.items():
        yield {"metric": _text(name), "headline": int(name == cell.headline), **_numbers(metric)}
    for name, metric in cell.categories.items():
        yield {"metric": _text(cell.headline or ""), "category": _text(name), "headline": 0, **_numbers(metric)}


def _numbers(metric: MetricView) -> dict[str, Any]:
    names = ("value", "ci_lower", "ci_upper", "level", "stderr", "n", "scored", "unscored", "error")
    return {name: getattr(metric, name) for name in names} | {
        "unit": _text(metric.unit),
        "method": _text(metric.method),
    }


def _text(text: str) -> str:
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line
