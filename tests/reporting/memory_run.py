"""A run that exists only in memory: what a renderer needs, built from plain values."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nel.core.rundir import Manifest, Stage
from nel.reporting.run_view import CellView, Counts, Means, MetricView, Unit, UnitDetail


class MemoryRun:
    """Any cells under any manifest; satisfies `RunView`."""

    def __init__(self, *cells: CellView, **manifest: Any) -> None:
        self.path = Path("run")
        self.manifest = Manifest(
            **{
                "run_id": "20260301T120000Z-00c0ffee",
                "kind": "models",
                "stage": Stage.COMPLETED,
                "nel_version": "0.1.0",
                "python": "3.12.1",
                "platform": "Linux",
                "started": 1772366400.0,
                "finished": 1772366520.0,
                **manifest,
            }
        )
        self._cells = list(cells)

    @property
    def kind(self) -> str:
        return self.manifest.kind

    def cells(self) -> list[CellView]:
        return self._cells

    def units(self, cell: CellView) -> Iterator[Unit]:
        yield from ()

    def detail(self, cell: CellView, unit: Unit) -> UnitDetail:
        raise LookupError(unit.unit_key)


def estimate(value: float | None = 0.725, **fields: Any) -> MetricView:
    """A metric over 100 problems."""
    return MetricView(
        **{
            "value": value,
            "ci_lower": 0.63,
            "ci_upper": 0.803,
            "stderr": 0.0447,
            "n": 100,
            "method": "wilson",
            "scored": 100,
            **fields,
        }
    )


def cell(name: str = "gsm8k", **fields: Any) -> CellView:
    """A completed cell with one metric."""
    return CellView(
        **{
            "key": f"{name}/m",
            "name": name,
            "benchmark": name,
            "model": "qwen3-8b",
            "headline": "pass@1",
            "metrics": {"pass@1": estimate()},
            "counts": Counts(planned=100, scored=100),
            "means": Means(excluding_errors=0.725, errors_as_zero=0.725),
            "problems": 100,
            **fields,
        }
    )
