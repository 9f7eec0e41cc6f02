"""`ForeignRun`: a run that is nothing but rows, each one attempt; its numbers are computed from them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from nel.core.contract import canonical_json
from nel.core.errors import RunDirError
from nel.core.rundir import Manifest, Stage
from nel.metrics.estimate import Estimate
from nel.metrics.mean import estimate_mean
from nel.observability.records import Outcome
from nel.reporting.run_view import CellView, Counts, Direction, Means, MetricView, Unit, UnitDetail


@dataclass(slots=True, kw_only=True)
class ForeignRow:
    """One attempt as another tool has it."""

    problem_idx: int
    repeat: int
    values: dict[str, float | None]
    """`reward` and any further metric; None where it was not scored."""
    outcome: Outcome
    asked: str = ""
    """Digest of what was asked, where the tool keeps it (`asked_of`)."""
    expected: Any = None
    problem_id: str | None = None
    category: str | None = None
    failure_category: str | None = None
    tokens: int = 0
    latency_ms: float = 0.0
    detail: Callable[[], UnitDetail] = UnitDetail


@dataclass(slots=True, kw_only=True)
class ForeignCell:
    """Where the rows of a cell come from, and what is known of it beside them."""

    name: str
    benchmark: str
    model: str
    rows: Callable[[], Iterator[ForeignRow]]
    """Reads the rows, from the first; called for every pass."""
    planned: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    bundle: str | None = None


class ForeignRun:
    """A `RunView` over another tool's results; `kind` says which tool's."""

    def __init__(self, path: Path, kind: str, run_id: str, started: float, cells: list[ForeignCell]) -> None:
        self.path = path
        self.manifest = Manifest(run_id=run_id, kind=kind, stage=Stage.COMPLETED, started=started)
        self._sources = {cell.name: cell for cell in cells}
        self._views: list[CellView] | None = None

    @property
    def kind(self) -> str:
        """The tool."""
        return self.manifest.kind

    def cells(self) -> list[CellView]:
        """Every cell with numbers computed from its rows, once."""
        if self._views is None:
            self._views = [_view(cell) for cell in self._sources.values()]
        return self._views

    def units(self, cell: CellView) -> Iterator[Unit]:
        """The attempts, in the order of their rows."""
        for number, row in enumerate(self._sources[cell.name].rows()):
            identity = b"%b %b" % (row.asked.encode(), canonical_json(row.expected))
            yield Unit(
                unit_key=sha256(identity).hexdigest()[:32] if row.asked else "",
                asked=row.asked,
                repeat=row.repeat,
                category=row.category,
                outcome=row.outcome,
                values=row.values,
                problem_idx=row.problem_idx,
                problem_id=row.problem_id,
                failure_category=row.failure_category,
                tokens=row.tokens,
                latency_ms=row.latency_ms,
                place=(number,),
            )

    def detail(self, cell: CellView, unit: Unit) -> UnitDetail:
        """The texts of one attempt."""
        for number, row in enumerate(self._sources[cell.name].rows()):
            if number == unit.place[0]:
                return row.detail()
        raise RunDirError(f"{self.path}: row {unit.place[0] + 1} of {cell.name} is gone: the file has changed.")


def asked_of(prompt: Any, system: str = "") -> str:
    """The digest of a prompt or of messages, as NEL takes it of its own problems: equal questions have equal ones."""
    return sha256(canonical_json([system, prompt])).digest()[:16].hex()


def number_of(value: Any, place: str) -> float | None:
    """A number of a foreign file, or None; `RunDirError` for one that is no finite number."""
    if value is None:
        return None
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    raise RunDirError(
        f"{place}: {value!r} is no finite number.", hint="Remove the row, or have its tool score it again."
    )


def _view(cell: ForeignCell) -> CellView:
    columns: dict[str, tuple[array[float], array[int]]] = {}
    counts = dict.fromkeys(Outcome, 0)
    problems: set[int] = set()
    repeats = 1
    for row in cell.rows():
        counts[row.outcome] += 1
        problems.add(row.problem_idx)
        repeats = max(repeats, row.repeat + 1)
        for name, value in row.values.items():
            values, places = columns.setdefault(name, (array("d"), array("i")))
            if value is not None:
                values.append(value)
                places.append(row.problem_idx)
    unscored, error = counts[Outcome.UNSCORED], counts[Outcome.ERROR]
    metrics = {}
    headline = None
    for name, (values, places) in columns.items():
        found = estimate_mean(values, places, unscored=unscored, error=error)
        binary = all(value in {0.0, 1.0} for value in values)
        shown = ("pass@1" if binary else "mean_reward") if name == "reward" else f"scorer:{name}"
        headline = shown if name == "reward" else headline
        metrics[shown] = _metric(found, name, Direction.HIGHER if name == "reward" else Direction.UNKNOWN)
    mean = metrics[headline].value if headline else None
    scored = counts[Outcome.SCORED]
    return CellView(
        key=cell.name,
        name=cell.name,
        benchmark=cell.benchmark,
        model=cell.model,
        headline=headline,
        metrics=metrics,
        counts=Counts(planned=cell.planned or sum(counts.values()), scored=scored, unscored=unscored, error=error),
        means=Means(excluding_errors=mean, errors_as_zero=None),
        problems=len(problems),
        repeats=repeats,
        config=cell.config,
        bundle=cell.bundle,
    )


def _metric(found: Estimate, name: str, direction: Direction) -> MetricView:
    return MetricView(
        value=found.value,
        ci_lower=found.ci_lower,
        ci_upper=found.ci_upper,
        stderr=found.stderr,
        n=found.n,
        method=found.method,
        scored=found.scored,
        unscored=found.unscored,
        error=found.error,
        direction=direction,
        of=name,
    )
