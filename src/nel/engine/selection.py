"""Which problems are attempted, and in which order: selection, shuffle, limits and shards, in that order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from nel.core.errors import UsageError
from nel.engine.settings import EvaluationSettings
from nel.environments.base import EvalEnvironment

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `total` of the selected problems."""

    index: int
    total: int

    def __post_init__(self) -> None:
        if self.total < 1 or not 0 <= self.index < self.total:
            raise UsageError(f"shard {self.index} of {self.total} does not exist; indexes are 0 to {self.total - 1}")


def shard_from_environment(environ: Mapping[str, str] = os.environ) -> Shard | None:
    """The shard that NEL_SHARD_IDX and NEL_TOTAL_SHARDS, or Slurm's array variables, ask for; None without them.

    An array's index is its id minus the smallest id, so `--array=1-8` and `--array=0-7` are the same eight shards.
    """
    names = ("NEL_SHARD_IDX", "NEL_TOTAL_SHARDS")
    values = [environ.get(name) for name in names]
    if values == [None, None]:
        names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT")
        values = [environ.get(name) for name in names]
        if values == [None, None]:
            return None
    first = environ.get("SLURM_ARRAY_TASK_MIN", "0") if names[0].startswith("SLURM") else "0"
    if None in values:
        missing = names[values.index(None)]
        raise UsageError(f"{missing} is not set, though its companion is", hint="Set both, or neither.")
    try:
        index, total, least = int(values[0] or ""), int(values[1] or ""), int(first)
    except ValueError:
        raise UsageError(f"{names[0]}={values[0]!r} and {names[1]}={values[1]!r} must be whole numbers") from None
    return Shard(index - least, total)


def get_shard_range(total: int, index: int, shards: int) -> tuple[int, int]:
    """Positions [start, end) of one shard among `total`: contiguous, the first shards one longer where it does not
    divide."""
    Shard(index, shards)
    size, longer = divmod(total, shards)
    start = index * size + min(index, longer)
    return start, start + size + (index < longer)


async def select(env: EvalEnvironment, settings: EvaluationSettings, shard: Shard | None = None) -> Indexes:
    """Indexes of the problems to attempt, in the order of attempting them.

    Ids and fields are looked up by seeding every problem, which only a selection costs.
    """
    size = await env.dataset_size()
    if size < 0:
        raise UsageError(f"{env.name}: dataset_size() is {size}")
    chosen: Indexes = np.arange(size, dtype=np.int64)
    if settings.select_ids or settings.select_where:
        chosen = await _matching(env, settings, size)
    if settings.shuffle_seed is not None:
        # The standard library's shuffle keeps its order across versions; numpy's does not promise to.
        order = chosen.tolist()
        Random(settings.shuffle_seed).shuffle(order)
        chosen = np.asarray(order, dtype=np.int64)
    if settings.problem_range is not None:
        start, end = settings.problem_range
        chosen = chosen[start:end]
    if settings.max_problems is not None:
        chosen = chosen[: settings.max_problems]
    if shard is not None:
        start, end = get_shard_range(len(chosen), shard.index, shard.total)
        chosen = chosen[start:end]
    return chosen


async def _matching(env: EvalEnvironment, settings: EvaluationSettings, size: int) -> Indexes:
    wanted = set(settings.select_ids)
    fields_wanted = {
        name: set(map(str, value)) if isinstance(value, list | tuple) else {str(value)}
        for name, value in settings.select_where.items()
    }
    found: list[int] = []
    ids: set[str] = set()
    known_fields: set[str] = set()
    for idx in range(size):
        problem = await env.seed(idx)
        problem_id = problem.problem_id if problem.problem_id is not None else str(idx)
        known_fields.update(problem.metadata)
        if wanted and problem_id not in wanted:
            continue
        ids.add(problem_id)
        if all(
            field in problem.metadata and str(problem.metadata[field]) in values
            for field, values in fields_wanted.items()
        ):
            found.append(idx)
    if missing := sorted(wanted - ids):
        raise UsageError(
            f"{env.name}: no problem has the id {missing[0]!r}" + (f" ({len(missing)} ids)" if len(missing) > 1 else "")
        )
    if unknown := sorted(set(fields_wanted) - known_fields):
        raise UsageError(
            f"{env.name}: no problem has the field {unknown[0]!r}", hint=f"Fields: {', '.join(sorted(known_fields))}."
        )
    return np.asarray(found, dtype=np.int64)
