"""`evaluate_cell`: one benchmark from plan to bundle, inside a run directory."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from nel.core.digest import digest_value
from nel.core.disk import write_atomic
from nel.core.errors import ServiceError, UsageError
from nel.core.log import LogWriter
from nel.core.secrets import Redactor
from nel.engine.compact import compact
from nel.engine.derive import CellInfo, derive, pairs_from_ledger, pairs_from_logs
from nel.engine.identity import Identities
from nel.engine.ledger import RESULTS, SUPERSEDED, TRAJECTORIES, Known
from nel.engine.loop import CellRun
from nel.engine.selection import Indexes, Shard, select
from nel.engine.settings import EvaluationSettings
from nel.engine.stopping import Stopper
from nel.engine.tally import Tally
from nel.environments.base import EvalEnvironment
from nel.solvers.base import Solver

DERIVED = ("eval-*.json", "runtime_stats.json", "failure_analysis.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """A benchmark, a solver and the problems it shall attempt: known before the first request."""

    name: str
    env: EvalEnvironment
    solver: Solver
    settings: EvaluationSettings
    indexes: Indexes
    identities: Identities
    config: dict[str, Any]
    """What the bundle says was run."""
    choice: dict[str, Any]
    """Everything that the attempts and scores of the cell depend on."""

    @property
    def digest(self) -> str:
        """Changes exactly when something changes that an attempt or a score depends on, or the choice of problems."""
        return digest_value(self.choice)

    @property
    def attempts(self) -> int:
        """Attempts of the plan."""
        return len(self.indexes) * self.settings.repeats

    def with_solver(self, solver: Solver) -> CellPlan:
        """The same plan with a solver that is connected; it must be the same solver."""
        if solver_identity(solver) != solver_identity(self.solver):
            raise ServiceError(f"{self.name}: the solver is not the one that was planned with")
        return replace(self, solver=solver)

    def with_environment(self, env: EvalEnvironment) -> CellPlan:
        """The same plan with an environment that can ask its judges; it must measure in the same way."""
        if env.scoring_identity() != self.env.scoring_identity():
            raise ServiceError(f"{self.name}: the answers would not be measured as was planned")
        return replace(self, env=env)

    def info(self, run_id: str, nel_version: str) -> CellInfo:
        """What the run keeps of the plan to derive the bundle again."""
        return CellInfo(
            name=self.name,
            config=self.config,
            identity={"solver": solver_identity(self.solver), "scoring": self.env.scoring_identity()},
            data=self.env.data_identity(),
            planned=self.attempts,
            repeats=self.settings.repeats,
            bounds=self.env.reward_bounds,
            cluster_by=self.env.cluster_by,
            aggregates={name: list(metrics) for name, metrics in self.env.aggregates.items()},
            error_policy=self.settings.error_policy,
            max_error_rate=self.settings.max_error_rate,
            versions={"nel": nel_version, "python": platform.python_version()},
            run_id=run_id,
            choice=self.choice,
        )


def solver_identity(solver: Solver) -> dict[str, Any]:
    """All that can change a solver's answers; a solver without `identity()` is known by its class and version."""
    identity = getattr(solver, "identity", None)
    if identity is not None:
        return dict(identity())
    kind = type(solver)
    return {"solver": f"{kind.__module__}:{kind.__qualname__}", "version": str(getattr(solver, "version", "1"))}


async def plan_cell(
    env: EvalEnvironment,
    solver: Solver,
    settings: EvaluationSettings,
    *,
    name: str | None = None,
    config: dict[str, Any] | None = None,
    shard: Shard | None = None,
) -> CellPlan:
    """The plan of one cell; `env.prepare()` has been awaited. `UsageError` where nothing would be attempted."""
    indexes = await select(env, settings, shard)
    name = name or env.name
    if not len(indexes) and shard is None:
        raise UsageError(f"{name}: no problem is selected, of {await env.dataset_size()}")
    identities = Identities(
        solver_identity(solver), env.scoring_identity(), tuple(getattr(solver, "reads_metadata", ()))
    )
    shown: dict[str, Any] = {
        "benchmark": env.name,
        **(config or {}),
        "repeats": settings.repeats,
        "max_problems": settings.max_problems,
        "problem_range": settings.problem_range,
        "select": {"ids": settings.select_ids, "where": dict(settings.select_where)}
        if settings.select_ids or settings.select_where
        else None,
        "shuffle_seed": settings.shuffle_seed,
        "instruction_template": settings.instruction_template,
        "shard": {"idx": shard.index, "total": shard.total} if shard else None,
    }
    shown = {key: value for key, value in shown.items() if value is not None}
    rule = settings.stop_when
    if rule is not None and shard is not None:
        raise UsageError(
            f"{name}: `stop_when` looks at the problems in one order, which shards do not share",
            hint="Run it without shards, or without `stop_when`.",
        )
    if rule is not None:
        shown["stop_when"] = dict(rule.said)
    choice = {
        **({"stop_when": dict(rule.said)} if rule is not None else {}),
        "basis": identities.basis,
        "data": env.data_identity(),
        **{key: shown.get(key) for key in ("repeats", "max_problems", "problem_range", "select", "shuffle_seed")},
        "instruction_template": settings.instruction_template,
        "shard": shown.get("shard"),
    }
    shown["config_hash"] = config_hash(choice)
    return CellPlan(
        name=name,
        env=env,
        solver=solver,
        settings=settings,
        indexes=indexes,
        identities=identities,
        config=shown,
        choice=choice,
    )


def config_hash(choice: Mapping[str, Any]) -> str:
    """Digest of all that a cell's numbers depend on; the same for every shard."""
    return digest_value({**choice, "shard": None})


@dataclass(slots=True, kw_only=True)
class CellResult:
    """How a cell ended."""

    bundle: dict[str, Any]
    bundle_path: Path
    notes: list[str]
    """What a person should know: lines that could not be read, a log that was torn."""
    open_attempts: int
    """Attempts that a resume would make again."""


async def evaluate_cell(
    plan: CellPlan,
    directory: Path,
    *,
    writer: LogWriter,
    info: CellInfo,
    redactor: Redactor | None = None,
    on_progress: Callable[[Tally], None] | None = None,
) -> CellResult:
    """Attempts what is not known of the plan, and derives the bundle.

    When it is cancelled or fails, what was recorded stays and a bundle of outcome `partial` is derived.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for derived in DERIVED:
        for path in directory.glob(derived):
            path.unlink()
    known = None
    if any((directory / log).exists() for log in (TRAJECTORIES, RESULTS, SUPERSEDED)):
        known = await asyncio.to_thread(
            Known.scan, directory, permanent_errors=plan.settings.retry_errors == "transient"
        )
    keep_files(directory, plan.env)
    run = CellRun(
        env=plan.env,
        solver=plan.solver,
        settings=plan.settings,
        indexes=plan.indexes,
        identities=plan.identities,
        directory=directory,
        writer=writer,
        run_id=info.run_id,
        redactor=redactor or Redactor([]),
        known=known,
        on_progress=on_progress,
    )
    notes = list(known.problems) if known else []
    try:
        await run.run()
    except BaseException:
        await asyncio.shield(asyncio.to_thread(_derive_partial, run, info, directory, plan))
        raise
    notes += run.notes
    open_attempts, tally, indexes = run.open_attempts(), run.tally, plan.indexes
    if run.stopper is not None:
        info, indexes = _ended(run, run.stopper, info, plan, notes)
        if len(indexes) < len(plan.indexes):
            open_attempts = 0
    try:
        await asyncio.to_thread(compact, directory, run.ledger, indexes, plan.settings.repeats)
    except OSError as error:
        notes.append(f"{directory}: the logs could not be compacted ({error}); they are complete, but not in order")
        bundle = await asyncio.to_thread(_derive_partial, run, info, directory, plan)
    else:
        del run  # its index is no longer needed, and deriving has arrays of its own
        bundle = await asyncio.to_thread(lambda: derive(directory, info, pairs_from_logs(directory)))
    if on_progress is not None:
        await asyncio.to_thread(tally.refresh)
        on_progress(tally)
    return CellResult(
        bundle=bundle,
        bundle_path=directory / f"eval-{plan.name}.json",
        notes=notes,
        open_attempts=open_attempts,
    )


def _ended(
    run: CellRun, stopper: Stopper, info: CellInfo, plan: CellPlan, notes: list[str]
) -> tuple[CellInfo, Indexes]:
    """What the cell is after its rule: only the problems up to the end count."""
    found = stopper.stopped or stopper.known()
    rule = plan.settings.stop_when
    assert rule is not None
    if stopper.clustered:
        notes.append("problems declare clusters, so they are not independent: `stop_when` never held")
        return info, plan.indexes
    info = msgspec.structs.replace(
        info, planned=found.problems * plan.settings.repeats, sequential=found.to_dict(rule.said)
    )
    if stopper.stopped is not None:
        run.ledger.cut(found.problems * plan.settings.repeats)
        notes.append(f"ended after {found.problems:,} of {found.planned:,} problems: enough is known")
    return info, plan.indexes[: found.problems]


def _derive_partial(run: CellRun, info: CellInfo, directory: Path, plan: CellPlan) -> dict[str, Any]:
    return derive(directory, info, pairs_from_ledger(directory, run.ledger, plan.indexes, plan.settings.repeats))


def keep_files(directory: Path, env: EvalEnvironment) -> None:
    """Puts the files that measure into a cell's `code/`, so that it can be rescored anywhere."""
    for name, content in env.kept_files().items():
        target = directory / "code" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != content:
            write_atomic(target, content)
