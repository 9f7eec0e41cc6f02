"""`make_plan`: what a configuration would do - cells, requests, tokens, cost - without doing or writing anything."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nel.config.load import LoadedConfig
from nel.config.planning import plan_check
from nel.config.services import ModelService
from nel.core.contract import encode_json
from nel.engine.selection import shard_from_environment
from nel.environments.base import SeedResult
from nel.orchestration.cells import Cell, name_cells, plan_cells
from nel.orchestration.sandboxes import Sandboxes
from nel.orchestration.services import Services
from nel.orchestration.suite import run_directory
from nel.solvers.loglikelihood import LoglikelihoodSolver, continuations

_SAMPLE = 64
_BYTES_PER_TOKEN = 4
"""A rule of thumb for English text, good to a factor of about 1.5; tokenizers differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """One cell: how many requests it makes at most, and what they would cost about."""

    directory: str
    benchmark: str
    model: str
    variant: str
    service: str | None
    solver: str
    problems: int
    repeats: int
    attempts: int
    requests: int
    prompt_tokens: int
    """Estimated from the text of up to 64 problems."""
    completion_tokens: int | None
    """At most: `max_tokens` for each attempt; None where there is no limit."""
    cost: float | None
    """At most, by the service's prices; None without prices or without a token limit."""
    currency: str | None
    config_hash: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do; an entry that cannot be planned is in `errors`, by its place."""

    output_dir: str
    cells: list[PlannedCell]
    errors: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def attempts(self) -> int:
        """Attempts of all cells."""
        return sum(cell.attempts for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with totals."""
        costs = [cell.cost for cell in self.cells if cell.cost is not None]
        return {
            **asdict(self),
            "totals": {
                "cells": len(self.cells),
                "problems": sum(cell.problems for cell in self.cells),
                "attempts": self.attempts,
                "requests": sum(cell.requests for cell in self.cells),
                "prompt_tokens": sum(cell.prompt_tokens for cell in self.cells),
                "cost": sum(costs) if costs else None,
            },
        }


def make_plan(loaded: LoadedConfig) -> Plan:
    """The plan of a configuration; data are read, no model is asked and nothing is written."""
    plan_check(loaded)
    return asyncio.run(_plan(loaded))


async def _plan(loaded: LoadedConfig) -> Plan:
    shard = shard_from_environment()
    services = Services(loaded, Path())
    try:
        planned = await plan_cells(loaded, services, Sandboxes(), shard=shard)
    finally:
        await services.close()
    cells = [cell for cell in planned if isinstance(cell, Cell)]
    name_cells(cells, {})
    benchmarks = loaded.config.benchmarks
    try:
        return Plan(
            output_dir=str(run_directory(loaded, resume=False, shard=shard)),
            cells=[await _cell(cell, services.config(cell.entry.service)) for cell in cells],
            errors={
                f"benchmarks[{item[0]}] {benchmarks[item[0]].name}": str(item[1])
                for item in planned
                if not isinstance(item, Cell)
            },
            warnings=list(loaded.warnings),
        )
    finally:
        for cell in cells:
            await cell.plan.env.close()


async def _cell(cell: Cell, service: ModelService | None) -> PlannedCell:
    plan = cell.plan
    choices = min(getattr(plan.solver, "choices", 1), plan.settings.repeats)
    sample = await _sampled(cell)
    each = _requests_each(cell, sample)
    requests = round(len(plan.indexes) * -(-plan.settings.repeats // choices) * each) if service else 0
    prompt = round(_prompt_tokens(cell, sample) * requests) if service else 0
    generation = plan.config.get("generation") or {}
    longest = generation.get("max_tokens")
    completion = round(longest * plan.attempts * each) if longest else None
    prices = service.prices if service else None
    cost = None
    if prices is not None and completion is not None:
        cost = (prompt * prices.prompt + completion * prices.completion) / 1_000_000
    return PlannedCell(
        directory=cell.directory,
        benchmark=cell.key.benchmark,
        model=cell.key.model,
        variant=cell.key.variant,
        service=cell.entry.service,
        solver=cell.entry.solver.type,
        problems=len(plan.indexes),
        repeats=plan.settings.repeats,
        attempts=plan.attempts,
        requests=requests,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=cost,
        currency=prices.currency if prices else None,
        config_hash=plan.config["config_hash"],
        data=plan.env.data_identity(),
    )


async def _sampled(cell: Cell) -> list[SeedResult]:
    """Problems that stand for all."""
    step = max(1, len(cell.plan.indexes) // _SAMPLE)
    return [await cell.plan.env.seed(int(idx)) for idx in cell.plan.indexes[::step][:_SAMPLE]]


def _requests_each(cell: Cell, sample: list[SeedResult]) -> float:
    """Mean requests of an attempt: one for each option where log-likelihoods decide."""
    if not isinstance(cell.plan.solver, LoglikelihoodSolver) or not sample:
        return 1.0
    return sum(len(continuations(problem)[1]) for problem in sample) / len(sample)


def _prompt_tokens(cell: Cell, sample: list[SeedResult]) -> float:
    """Mean tokens of a prompt, by the length of its text."""
    lengths = []
    for problem in sample:
        text = problem.prompt.encode() if problem.messages is None else encode_json(problem.messages)
        lengths.append(len(text) + len((cell.plan.config.get("system_prompt") or problem.system or "").encode()))
    return sum(lengths) / len(lengths) / _BYTES_PER_TOKEN if lengths else 0.0
