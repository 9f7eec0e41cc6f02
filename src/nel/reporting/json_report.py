"""The report as JSON: the same content with stable keys, for programs. `docs/reports.md` lists them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from nel.reporting import content
from nel.reporting.run_view import CellView, MetricView, RunView

SCHEMA = "nel.report/1"


def render_json(view: RunView) -> str:
    """The report as one indented JSON object; numbers are unrounded, an absent one is null."""
    return json.dumps(report(view), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def report(view: RunView) -> dict[str, Any]:
    """The report as plain JSON values; `benchmarks` is keyed by the cells' names."""
    manifest = view.manifest
    cells = view.cells()
    models = list(dict.fromkeys(cell.model for cell in cells if cell.model))
    return {
        "schema": SCHEMA,
        "run_id": manifest.run_id,
        "kind": view.kind,
        "stage": str(manifest.stage),
        "started": manifest.started,
        "finished": manifest.finished,
        "nel_version": manifest.nel_version,
        "model": models[0] if len(models) == 1 else None,
        "models": models,
        "n_benchmarks": len(cells),
        "warnings": content.warnings(view),
        "benchmarks": {cell.name: _cell(cell) for cell in cells},
    }


def _cell(cell: CellView) -> dict[str, Any]:
    runtime = cell.runtime
    return {
        "cell": cell.key,
        "benchmark": cell.benchmark,
        "model": cell.model,
        "variant": cell.variant,
        "stage": str(cell.stage),
        "degraded": cell.degraded,
        "error": cell.error,
        "error_category": cell.error_category,
        "samples": cell.problems,
        "repeats": cell.repeats,
        "headline": cell.headline,
        "scores": {name: _metric(metric) for name, metric in cell.metrics.items()},
        "categories": {
            name: {"mean_reward": metric.value, **_metric(metric)} for name, metric in cell.categories.items()
        },
        "counts": msgspec.to_builtins(cell.counts),
        "means": msgspec.to_builtins(cell.means),
        "total_tokens": runtime.total_tokens if runtime else None,
        "latency_p50_ms": runtime.latency_percentiles_ms.get("p50") if runtime else None,
        "runtime": runtime.to_dict() if runtime else None,
        "judges": msgspec.to_builtins(cell.judges),
        "agreement": msgspec.to_builtins(cell.agreement),
        "failures": cell.failures.to_dict() if cell.failures else None,
        "config": cell.config,
        "data": cell.data,
        "identity": cell.identity,
        "versions": cell.versions,
        "bundle": cell.bundle,
    }


def _metric(metric: MetricView) -> dict[str, Any]:
    return {name: getattr(metric, name) for name in metric.__struct_fields__}
