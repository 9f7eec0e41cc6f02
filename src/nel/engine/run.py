"""`run_evaluation`: one environment and one solver from Python, with all that a run directory gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nel.engine.cell import plan_cell, solver_identity
from nel.engine.selection import shard_from_environment
from nel.engine.session import CellKey, Session
from nel.engine.settings import EvaluationSettings
from nel.environments.base import EvalEnvironment
from nel.solvers.base import Solver


async def run_evaluation(
    env: EvalEnvironment,
    solver: Solver,
    config: EvaluationSettings | Mapping[str, Any] | None = None,
    *,
    output_dir: Path | str = "eval_results",
    resume: bool = False,
) -> dict[str, Any]:
    """The bundle of one benchmark: scores with intervals and counts, identity, data, runtime and failures.

    `config` holds settings by the names of `EvaluationSettings`. Everything is written to `output_dir`; with `resume`
    an earlier run in it is continued and only what is missing or changed is asked. With the shard variables set, only
    that shard is attempted, in `output_dir/shard_N`. `env` and `solver` stay open: closing them is the caller's.
    """
    settings = config if isinstance(config, EvaluationSettings) else EvaluationSettings.of(config or {})
    shard = shard_from_environment()
    path = Path(output_dir) / f"shard_{shard.index}" if shard else Path(output_dir)
    await env.prepare()
    model = str(solver_identity(solver).get("service", {}).get("model", ""))
    plan = await plan_cell(env, solver, settings, config={"model": model}, shard=shard)
    with Session.open(path, resume=resume, shard=shard) as session:
        key = CellKey(env.name, model)
        finished = session.finished(key, plan)
        if finished is not None:
            return finished
        return (await session.evaluate(key, plan, directory=env.name)).bundle
