"""Real run directories with any scores: the engine runs a benchmark whose solver answers with the score itself."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nel.core.errors import AttemptError
from nel.engine.run import run_evaluation
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.observability.records import MetricScore, ModelResponse
from nel.solvers.base import BaseSolver, SolveResult


class Graded(EvalEnvironment):
    """Problem n is `question n`; an answer is its own score."""

    def __init__(self, problems: Sequence[int], *, name: str = "graded", gold: dict | None = None, cluster: int = 0):
        self.name = name
        self.problems = list(problems)
        self.gold = gold or {}
        self.cluster = cluster

    async def dataset_size(self) -> int:
        return len(self.problems)

    async def seed(self, idx: int) -> SeedResult:
        number = self.problems[idx]
        return SeedResult(
            prompt=f"question {number}",
            expected_answer=self.gold.get(number, "gold"),
            problem_id=f"q{number}",
            category="odd" if number % 2 else "even",
            cluster=f"page {number // self.cluster}" if self.cluster else None,
        )

    async def verify(self, response: str, expected: Any, sandbox: Any = None, **_: Any) -> VerifyResult:
        value = float(response)
        return VerifyResult(reward=value, metrics={"loss": MetricScore(value=1 - value)})

    def data_identity(self) -> dict[str, Any]:
        return {"rows": len(self.problems)}


class Scripted(BaseSolver):
    """Answers problem n, repeat r, with `scores[n][r]`; None is an attempt that fails."""

    def __init__(self, scores: dict[int, Sequence[float | None]], latency_ms: float = 100.0) -> None:
        self.scores, self.latency_ms = scores, latency_ms
        self.asked: dict[int, int] = {}

    def identity(self) -> dict[str, Any]:
        return {"scores": str(self.scores)}

    async def solve(self, task: SeedResult) -> SolveResult:
        number = int(task.prompt.split()[1])
        place = self.asked.get(number, 0)
        self.asked[number] = place + 1
        score = self.scores[number][place]
        if score is None:
            raise AttemptError("HTTP 400: no", category="http_4xx", permanent=True)
        text = str(score)
        model = ModelResponse(
            content=text,
            finish_reason="stop",
            prompt_tokens=20,
            completion_tokens=5,
            latency_ms=self.latency_ms,
            cost=0.01,
        )
        return SolveResult(response=text, model_response=model, prompt=task.prompt)


def make_run(
    directory: Path,
    scores: Sequence[float | Sequence[float | None] | None],
    *,
    name: str = "graded",
    first: int = 0,
    gold: dict | None = None,
    cluster: int = 0,
    latency_ms: float = 100.0,
    **config: Any,
) -> Path:
    """A run in `directory` of problems `first`, `first + 1`, ... with these scores (a list for several repeats)."""
    rows = [list(row) if isinstance(row, list | tuple) else [row] for row in scores]
    numbers = range(first, first + len(rows))
    solver = Scripted(dict(zip(numbers, rows, strict=True)), latency_ms)
    settings = {"repeats": len(rows[0]), "max_error_rate": 1.0, "max_concurrent": 1, **config}
    env = Graded(numbers, name=name, gold=gold, cluster=cluster)
    asyncio.run(run_evaluation(env, solver, settings, output_dir=directory))
    return directory


def judge_scores(count: int, centre: float, seed: int) -> list[float]:
    """Scores of a judge around `centre` with standard deviation 0.1, within 0 and 1."""
    import numpy as np

    drawn = np.random.default_rng(seed).normal(centre, 0.1, count)
    return [round(float(score), 4) for score in np.clip(drawn, 0, 1)]


def balanced_flips(count: int = 500, flips: int = 20) -> tuple[list[float], list[float]]:
    """Right and wrong answers of two runs that differ on `flips` problems, half of them each way."""
    baseline = [1.0] * (count * 7 // 10) + [0.0] * (count - count * 7 // 10)
    candidate = list(baseline)
    for place in range(flips // 2):
        candidate[place], candidate[-1 - place] = 0.0, 1.0
    return baseline, candidate
