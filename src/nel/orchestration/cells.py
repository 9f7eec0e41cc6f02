"""From a benchmark entry of the configuration to the environment, solver and settings of its cell."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nel.config.benchmarks import Benchmark
from nel.config.eval_config import services_of_metric
from nel.config.load import LoadedConfig
from nel.config.scoring import JudgeBase, Metric
from nel.config.services import ModelService, merge_generation
from nel.config.solvers import CustomSolver, LoglikelihoodSolver, SimpleSolver
from nel.core.digest import digest_value
from nel.core.errors import AttemptError, ConfigError, LoadError, NelError, UsageError
from nel.core.loading import load_object
from nel.core.rundir import CellEntry
from nel.engine.cell import CellPlan, plan_cell, solver_identity
from nel.engine.selection import Shard
from nel.engine.session import CellKey
from nel.engine.settings import EvaluationSettings, RetryErrors
from nel.engine.stopping import StopRule
from nel.environments.base import EvalEnvironment
from nel.environments.configured import Boxes, build_metric
from nel.environments.registry import get_environment
from nel.environments.sandboxed import SandboxedEnvironment
from nel.environments.scored import ScoredEnvironment
from nel.inference.client import ModelClient
from nel.orchestration.sandboxes import CellSandbox, Sandboxes
from nel.orchestration.services import Services, wait_for_endpoint
from nel.reporting.run_view import open_run
from nel.solvers import loglikelihood
from nel.solvers.base import Solver
from nel.solvers.simple import simple_solver

_EXECUTION = ("max_concurrent", "timeout", "max_system_retries", "error_policy", "max_error_rate", "skip_failed")
_SOLVER_CLASS = "solver class"


@dataclass(slots=True, kw_only=True)
class Cell:
    """One benchmark entry, ready to be run."""

    index: int
    key: CellKey
    directory: str
    plan: CellPlan
    entry: Benchmark
    env: EvalEnvironment
    """The benchmark itself, without what `scoring` adds."""
    sandbox: CellSandbox | None = None
    """What its answers are graded in."""


def settings_of(entry: Benchmark, *, retry_errors: RetryErrors = "transient") -> EvaluationSettings:
    """The engine's settings of a benchmark entry."""
    policy, rate = entry.errors
    return EvaluationSettings(
        repeats=entry.repeats,
        max_problems=entry.max_problems,
        problem_range=entry.problem_range,
        select_ids=tuple(entry.select.ids),
        select_where=entry.select.where,
        shuffle_seed=entry.shuffle_seed,
        max_concurrent=entry.max_concurrent,
        timeout=entry.timeout,
        max_system_retries=entry.max_system_retries,
        error_policy=policy,
        max_error_rate=rate,
        retry_errors=retry_errors,
        instruction_template=entry.instruction_template,
        stop_when=stop_rule(entry),
    )


def stop_rule(entry: Benchmark) -> StopRule | None:
    """The rule of an entry's `stop_when`, with the baseline's rewards; `UsageError` where the baseline has none."""
    said = entry.stop_when
    if said is None:
        return None
    if said.decides is None:
        return StopRule(half_width=said.half_width, said={"half_width": said.half_width})
    path = Path(said.decides.baseline).expanduser()
    baseline = baseline_rewards(path, entry.name)
    digest = digest_value(sorted(baseline.items()))
    return StopRule(
        max_drop=said.decides.max_drop,
        baseline=baseline,
        said={"decides": {"max_drop": said.decides.max_drop, "baseline": digest}},
    )


def baseline_rewards(path: Path, name: str) -> dict[str, float]:
    """The mean reward of every problem that a run scored on a benchmark, by `unit_key`."""
    run = open_run(path)
    cells = [cell for cell in run.cells() if name in {cell.benchmark, cell.name} or Path(name).stem == cell.benchmark]
    if len(cells) != 1:
        raise UsageError(
            f"stop_when: the baseline {path} holds {len(cells) or 'no'} cells of {name}",
            hint="It must be a run of this benchmark with one model.",
        )
    sums: dict[str, list[float]] = {}
    for unit in run.units(cells[0]):
        reward = unit.values.get("reward")
        if unit.unit_key and reward is not None:
            sums.setdefault(unit.unit_key, []).append(reward)
    return {unit_key: sum(rewards) / len(rewards) for unit_key, rewards in sums.items()}


async def build_solver(
    entry: Benchmark, env: EvalEnvironment, client: ModelClient | None, service: ModelService | None
) -> Solver:
    """The solver of a benchmark entry, talking to `service` through `client`.

    Parameters: what the benchmark needs, replaced by the service's, replaced by the solver's, one by one.
    """
    spec = entry.solver
    if isinstance(spec, LoglikelihoodSolver) or (
        isinstance(spec, SimpleSolver) and env.endpoint_type == loglikelihood.ENDPOINT_TYPE
    ):
        assert client is not None
        await _check_likelihood(env, spec, entry.instruction_template)
        return loglikelihood.LoglikelihoodSolver(client, system_prompt=spec.system_prompt)
    if isinstance(spec, SimpleSolver):
        assert client is not None
        assert service is not None
        _check_endpoint(env, client)
        first = await env.seed(0) if await env.dataset_size() else None
        generation = {**env.generation, **merge_generation(service.generation, spec.generation)}
        return simple_solver(
            client,
            images=bool(first and first.images),
            system_prompt=spec.system_prompt,
            choices=generation.pop("n", 1),
            generation=generation,
            image_detail=spec.image_detail if spec.image_detail != "auto" else None,
        )
    assert isinstance(spec, CustomSolver)
    kind = load_object(spec.class_path, what=_SOLVER_CLASS)
    solver: Solver = kind(client, **spec.config) if client is not None else kind(**spec.config)
    return solver


async def _check_likelihood(
    env: EvalEnvironment, spec: LoglikelihoodSolver | SimpleSolver, instruction_template: str | None
) -> None:
    if await env.dataset_size():
        try:
            first = await env.seed(0)
            loglikelihood.continuations(first)
        except AttemptError as error:
            raise UsageError(
                f"{env.name} cannot be decided by log-likelihoods: {error.message}",
                hint="Use `solver: {type: simple}`.",
            ) from None
        if instruction_template is not None and first.metadata.get(loglikelihood.CONTEXTS):
            raise UsageError(
                f"{env.name} has a text of its own before each option, which no instruction_template changes"
            )
    given = spec.generation.given() if isinstance(spec, SimpleSolver) and spec.generation is not None else {}
    idle = [name for name, value in given.items() if (name, value) != ("temperature", 0)]
    if idle:
        raise UsageError(
            f"{env.name} is decided by log-likelihoods, which no generation parameter changes: {', '.join(idle)}",
            hint="Leave `generation` out of the benchmark's solver.",
        )


def _check_endpoint(env: EvalEnvironment, client: ModelClient) -> None:
    text = client.settings.protocol == "completions"
    if (env.endpoint_type == "completions") != text:
        raise UsageError(
            f"{env.name} is written for {env.endpoint_type} endpoints, but service {client.settings.name} speaks "
            f"{client.settings.protocol}",
            hint="Use a service of the other protocol, or a benchmark with `endpoint_type="
            f"{'completions' if text else 'chat'!r}`.",
        )


async def build_environment(entry: Benchmark) -> EvalEnvironment:
    """The prepared environment of a benchmark entry."""
    dataset = entry.dataset.model_dump(exclude_none=True) if entry.dataset else None
    env = get_environment(entry.name, params=entry.parameters, dataset=dataset)
    await env.prepare()
    return env


async def scored_environment(
    entry: Benchmark, env: EvalEnvironment, services: Services, sandbox: CellSandbox | None, *, started: bool
) -> EvalEnvironment:
    """The environment that measures as the entry's `scoring` says, with clients that can ask where `started`.

    `UsageError` where the benchmark needs a judge and has none, or a model would judge its own answers.
    """
    scoring = entry.scoring
    if not (scoring.metrics or env.may_need_judge):
        return env
    boxes = Boxes(sandbox.spec, sandbox.manager) if sandbox is not None else None
    metrics = []
    for spec in scoring.metrics:
        clients = {}
        for _path, name in services_of_metric(spec):
            service = services.config(name)
            assert service is not None
            client = await (services.client(name) if started else services.unstarted_client(name))
            if started:
                await wait_for_endpoint(name, service)
            clients[name] = (client, service.generation.given())
        metrics.append(build_metric(spec, clients, boxes))
        if entry.service is not None:
            _check_self_judge(spec, await services.unstarted_client(entry.service), clients)
    return ScoredEnvironment(env, metrics, primary=scoring.reward, include_defaults=scoring.include_defaults)


def scoring_of(entry: Benchmark) -> dict[str, Any]:
    """What an entry says of scoring, as plain values without defaults."""
    return entry.scoring.model_dump(mode="json", exclude_defaults=True)


def _check_self_judge(spec: Metric, model: ModelClient, clients: Mapping[str, tuple[ModelClient, Any]]) -> None:
    if not isinstance(spec, JudgeBase) or spec.allow_self_judge:
        return
    for path, name in services_of_metric(spec):
        if path[0] != "baseline_service" and clients[name][0].settings.place() == model.settings.place():
            raise UsageError(
                f"metric {spec.name}: service {name} is the model {model.settings.name} under another name, and would "
                "judge its own answers",
                hint="Name another judge, or set `allow_self_judge: true`.",
            )


async def plan_cells(
    loaded: LoadedConfig,
    services: Services,
    sandboxes: Sandboxes,
    *,
    shard: Shard | None = None,
    retry_errors: RetryErrors = "transient",
) -> list[Cell | tuple[int, NelError]]:
    """The cells of a configuration in its order; an entry that cannot be planned is its error, with its place."""
    planned: list[Cell | tuple[int, NelError]] = []
    for index, entry in enumerate(loaded.config.benchmarks):
        try:
            planned.append(await _plan(index, entry, services, sandboxes, shard, retry_errors))
        except Exception as error:
            planned.append((index, _placed(loaded, index, as_nel_error(error))))
    return planned


def as_nel_error(error: Exception) -> NelError:
    """The error as a message for a person; what somebody's own code raised is told by its type."""
    if isinstance(error, NelError):
        return error
    if os.environ.get("NEL_DEBUG", "0") not in {"", "0"}:
        traceback.print_exception(error)
    return NelError(f"{type(error).__name__}: {error}", hint="Set NEL_DEBUG=1 to see where it was raised.")


def _placed(loaded: LoadedConfig, index: int, error: NelError) -> NelError:
    """The error with the file and line of the key that it is about, where it is about one."""
    if isinstance(error, ConfigError) and error.key and error.file is None:
        place: tuple[str | int, ...] = ("benchmarks", index, *error.key.split("."))
        return loaded.error(place, error.message.removeprefix(f"{error.key}: "), error.hint)
    if isinstance(error, LoadError):
        about = ("solver", "class_path") if error.message.startswith(_SOLVER_CLASS) else ("name",)
        return loaded.error(("benchmarks", index, *about), error.message, error.hint)
    return error


def name_cells(cells: Sequence[Cell], earlier: Mapping[str, CellEntry]) -> None:
    """Gives each cell its key and directory: benchmark x model x variant.

    The variant is the entry's `id`. Entries that share benchmark and model and have no id are told apart by a digest
    of what they say, never by their place; one that an earlier run of this directory knows without a variant keeps
    its name.
    """
    alike = Counter((cell.key.benchmark, cell.key.model, cell.key.variant) for cell in cells)
    benchmarks = Counter(cell.key.benchmark for cell in cells)
    models = Counter((cell.key.benchmark, cell.key.model) for cell in cells)
    seen: dict[str, int] = {}
    for cell in cells:
        benchmark, model, variant = cell.key.benchmark, cell.key.model, cell.key.variant
        if alike[benchmark, model, variant] > 1 and not variant:
            known = earlier.get(str(cell.key))
            basis = known.info.get("choice", {}).get("basis") if known else None
            if basis != cell.plan.identities.basis:
                variant = _said_by(cell.entry)
        cell.key = CellKey(benchmark, model, variant)
        parts = [benchmark]
        if benchmarks[benchmark] > 1 and len({m for b, m in models if b == benchmark}) > 1:
            parts.append(model)
        if variant:
            parts.append(variant)
        cell.directory = "--".join(part for part in parts if part)
        if str(cell.key) in seen:
            raise UsageError(
                f"benchmarks[{seen[str(cell.key)]}] and benchmarks[{cell.index}] are the same: {cell.key}",
                hint="Give them different `id`s, or remove one.",
            )
        seen[str(cell.key)] = cell.index


def _said_by(entry: Benchmark) -> str:
    """Eight hex digits of what an entry says of answers and scores."""
    said = entry.model_dump(mode="json", exclude=set(_EXECUTION))
    return digest_value(said).removeprefix("sha256:")[:8]


async def _plan(
    index: int,
    entry: Benchmark,
    services: Services,
    sandboxes: Sandboxes,
    shard: Shard | None,
    retry_errors: RetryErrors,
) -> Cell:
    own = await build_environment(entry)
    sandbox = await sandboxes.of(entry, own)
    if sandbox is not None and own.verify_sandbox is not None:
        own = SandboxedEnvironment(own, sandbox.spec, sandbox.manager)
    env = await scored_environment(entry, own, services, sandbox, started=False)
    client = await services.unstarted_client(entry.service) if entry.service else None
    service = services.config(entry.service)
    solver = await build_solver(entry, env, client, service)
    settings = client.settings if client else None
    config: dict[str, Any] = {
        "entry": {
            "name": entry.name,
            "id": entry.id,
            "params": entry.parameters,
            "scoring": scoring_of(entry),
        },
        "solver": {"type": entry.solver.type},
        "scorers": env.scoring_identity(),
        **({"sandbox": sandbox.version} if sandbox is not None else {}),
        "error_policy": entry.errors[0],
        "max_error_rate": entry.errors[1],
    }
    if settings is not None and service is not None:
        identity = solver_identity(solver)
        config |= {"currency": service.prices.currency} if service.prices else {}
        config |= {
            "model": settings.model,
            "base_url": settings.declared_identity or settings.identity()["url"],
            "protocol": settings.protocol,
            "generation": identity.get("generation"),
            "system_prompt": identity.get("system_prompt"),
        }
    plan = await plan_cell(
        env, solver, settings_of(entry, retry_errors=retry_errors), name=None, config=config, shard=shard
    )
    key = CellKey(env.name, settings.model if settings else "", entry.id or "")
    return Cell(index=index, key=key, directory=env.name, plan=plan, entry=entry, env=own, sandbox=sandbox)
