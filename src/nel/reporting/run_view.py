"""`RunView`: one read model over a run, whatever loop wrote it.

Reports, comparisons, gates, exporters and the viewer know runs through this module alone. Each loop keeps the adapter
that reads its own directories; `ADAPTERS` maps a manifest's `kind` to it by name, so that no loop is imported from
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from nel.core.errors import RunDirError
from nel.core.loading import load_object
from nel.core.rundir import Manifest, RunDir, Stage
from nel.observability.failure_report import FailureReport
from nel.observability.records import Outcome
from nel.observability.runtime import RuntimeStats

ADAPTERS: dict[str, str] = {"models": "nel.engine.run_view:ModelRunView"}
"""From a manifest's `kind` to the class that reads such a run: called with the directory and its manifest."""


class Direction(StrEnum):
    """Which way a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"
    UNKNOWN = "unknown"
    """Nobody said; what has to take a side (a comparison, a gate) refuses it."""


class MetricView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One number with what it takes to believe it."""

    value: float | None = None
    """None where no attempt was scored."""
    ci_lower: float | None = None
    ci_upper: float | None = None
    stderr: float | None = None
    n: int = 0
    """Problems with at least one scored attempt."""
    method: str = ""
    """Names the interval and the clustering."""
    level: float = 0.95
    scored: int = 0
    """Attempts that entered the value."""
    unscored: int = 0
    error: int = 0
    clusters: int | None = None
    """How many declared clusters the problems fall into."""
    excluded: int = 0
    """Problems left out because they have too few scored attempts for this metric."""
    unit: str = ""
    """What the value counts, e.g. `fraction`; empty where it is a plain reward."""
    direction: Direction = Direction.UNKNOWN
    of: str | None = None
    """The key of `Unit.values` that this metric is the mean of; None where it is no plain mean."""


class Counts(msgspec.Struct, kw_only=True, frozen=True):
    """How the attempts of a cell ended; `planned` may exceed the sum, in a run that was stopped."""

    planned: int = 0
    scored: int = 0
    unscored: int = 0
    error: int = 0


class Means(msgspec.Struct, kw_only=True, frozen=True):
    """The mean reward under both ways to count errors."""

    excluding_errors: float | None = None
    errors_as_zero: float | None = None


class JudgeUse(msgspec.Struct, kw_only=True, frozen=True):
    """What the judges of a metric took."""

    requests: int = 0
    unreadable: int = 0
    """Replies that could not be read."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: int = 0
    cost: float | None = None
    """None without prices."""
    mean_latency_ms: float | None = None
    """Of a reply that no cache gave."""


class JudgeAgreement(msgspec.Struct, kw_only=True, frozen=True):
    """How far the judges of an ensemble agree."""

    krippendorff_alpha: float | None = None
    """None where all ratings are the same."""
    level: str = ""
    """How ratings differ: `nominal` or `interval`."""
    ratings: int = 0
    judges: list[str] = []


class CellView(msgspec.Struct, kw_only=True):
    """One cell of a run (benchmark x model x variant), with everything that was derived from its attempts."""

    key: str
    """Identity of the cell within the run."""
    name: str
    """Its directory, relative to the run; what people call it."""
    benchmark: str
    model: str = ""
    variant: str = ""
    stage: Stage = Stage.COMPLETED
    degraded: bool = False
    """More attempts ended in errors than the run allowed."""
    error: str | None = None
    """Why the cell failed or stopped."""
    error_category: str | None = None
    headline: str | None = None
    """The metric to look at first: a key of `metrics`."""
    metrics: dict[str, MetricView] = {}
    categories: dict[str, MetricView] = {}
    """The headline metric within each category."""
    counts: Counts = Counts()
    means: Means = Means()
    problems: int = 0
    """Distinct problems that were planned."""
    repeats: int = 1
    bounds: tuple[float, float] | None = None
    """The range of the rewards, where the benchmark declares it."""
    cluster_by: str = "cluster"
    """What the clusters of the units are."""
    runtime: RuntimeStats | None = None
    failures: FailureReport | None = None
    judges: dict[str, JudgeUse] = {}
    """By metric: what its judges took."""
    agreement: dict[str, JudgeAgreement] = {}
    """By ensemble of judges: how far they agree."""
    config: dict[str, Any] = {}
    """How the cell was run: model, endpoint, protocol, generation, system prompt, scorers, limits."""
    identity: dict[str, Any] = {}
    """What the cell's numbers depend on, with versions and digests."""
    data: dict[str, Any] = {}
    """What the problems were made from: source, revision, digest, licence."""
    versions: dict[str, str] = {}
    """The software that made the numbers."""
    bundle: str | None = None
    """The file that the numbers are read from, relative to the run."""

    @property
    def headline_metric(self) -> MetricView | None:
        """The estimate of the headline metric; None in a cell without numbers."""
        return self.metrics.get(self.headline) if self.headline else None


class Unit(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """One attempt of one problem, without its texts."""

    unit_key: str
    """Digest of what was asked plus the expected answer: equal in every run that asked the same; empty where the run
    does not hold that content."""
    asked: str = ""
    """Digest of what was asked alone: tells a changed expected answer from another question."""
    repeat: int = 0
    cluster: str | None = None
    category: str | None = None
    outcome: Outcome = Outcome.SCORED
    values: dict[str, float | None] = {}
    """Every metric of the attempt; `reward` is the primary one. None where it was not scored."""
    problem_idx: int = 0
    problem_id: str | None = None
    failure_category: str | None = None
    tokens: int = 0
    latency_ms: float = 0.0
    place: tuple[int, ...] = ()
    """Where the adapter finds the texts; nobody else's business."""


class UnitDetail(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The texts of one attempt."""

    messages: list[dict[str, Any]] = []
    """What was asked, in the chat form; a bare prompt is one user message."""
    answer: str = ""
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] = []
    extracted: Any = None
    expected: Any = None
    scoring: dict[str, Any] = {}
    """Why the score is what it is: method, details, each metric's details."""
    error: str | None = None
    trajectory: list[dict[str, Any]] = []
    """ATIF documents, where the attempt took several steps."""
    files: dict[str, str] = {}
    """Further files by name, as paths relative to the run."""
    metadata: dict[str, Any] = {}
    """The problem's own fields."""
    started: float | None = None
    """When the attempt began, Unix seconds."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = ""


ScoreRow = tuple[bytes, str, float | None, Outcome, str | None, str | None]
"""A unit without all that a comparison does not need: the bytes of its `unit_key` (8 or more), `asked`, the value of
one metric, outcome, cluster, category."""


class NotInOrderError(Exception):
    """The quick way to read a cell's scores does not lead to its end; `RunView.units` does, or says why not."""


@runtime_checkable
class ScoreRows(Protocol):
    """What the view of a run may have beside `RunView`'s own, where its units are many."""

    def score_rows(self, cell: CellView, metric: str) -> Iterator[ScoreRow]:
        """The units of a cell in the order of `units`, as rows; `NotInOrderError` where that cannot be, also later."""
        ...


@runtime_checkable
class RunView(Protocol):
    """A run, read-only. Cells and numbers are small and come from what the run derived; units are streamed."""

    path: Path
    manifest: Manifest

    @property
    def kind(self) -> str:
        """The loop that wrote the run."""
        ...

    def cells(self) -> list[CellView]:
        """Every cell that was planned, failed ones included, in the order of the plan."""
        ...

    def units(self, cell: CellView) -> Iterator[Unit]:
        """The attempts of a cell, once each, in problem order where the run is complete."""
        ...

    def detail(self, cell: CellView, unit: Unit) -> UnitDetail:
        """What was asked and answered in one attempt of `cell`."""
        ...


def open_run(path: Path | str, *, unfinished: bool = False) -> RunView:
    """The run that `path` holds: NEL's own, or the results of another tool (`nel.reporting.foreign`).

    A run that is still going, or was killed, is refused unless `unfinished`: its numbers may not be there yet.
    `RunDirError` says what the directory is instead, and what to name.
    """
    directory = Path(path)
    if not (directory / "manifest.json").is_file():
        from nel.reporting.foreign import open_foreign

        foreign = open_foreign(directory) if directory.exists() else None
        if foreign is None:
            raise _no_run(directory)
        return foreign
    manifest = RunDir.read(directory)
    if manifest.kind not in ADAPTERS:
        known = ", ".join(ADAPTERS)
        raise RunDirError(
            f"{directory} is a run of kind {manifest.kind!r}; this version of nel reads: {known}.",
            hint="Use the version of nel that wrote the run, or a newer one.",
        )
    if manifest.stage == Stage.RUNNING and not unfinished:
        raise RunDirError(
            f"The run {manifest.run_id} in {directory} has not finished: it is still going, or it was killed.",
            hint=f"See `nel eval status {directory}`; start it again with --resume to finish it.",
        )
    adapter = load_object(ADAPTERS[manifest.kind], what=f"reader of {manifest.kind} runs")
    return cast("RunView", adapter(directory, manifest))


def _no_run(directory: Path) -> RunDirError:
    if not directory.exists():
        return RunDirError(f"{directory} does not exist.", hint="Name the directory that a run was written to.")
    if not directory.is_dir():
        return RunDirError(f"{directory} is a file.", hint="Name the run directory that holds it.")
    for parent in directory.resolve().parents[:2]:
        if (parent / "manifest.json").is_file():
            return RunDirError(f"{directory} is a part of the run in {parent}.", hint=f"Name {parent} instead.")
    runs = sorted(item.parent.name for item in directory.glob("*/manifest.json"))
    if runs:
        shown = ", ".join(runs[:5]) + (f" and {len(runs) - 5} more" if len(runs) > 5 else "")
        hint = f"It holds {len(runs)} run{'s' * (len(runs) > 1)}: name one of {shown}."
        if any(name.startswith("shard_") for name in runs) and "merged" not in runs:
            hint = f"It holds shards: `nel eval merge {directory}` makes one run of them."
        return RunDirError(f"{directory} is not a run directory: it has no manifest.json.", hint=hint)
    return RunDirError(
        f"{directory} is not a run directory: it has no manifest.json.",
        hint="Name the directory that was given to `nel eval run` with -o.",
    )
