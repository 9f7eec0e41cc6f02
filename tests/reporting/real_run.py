"""A real run to read: a few sums, answered in memory."""

import asyncio
from pathlib import Path
from typing import Any

from nel.core.errors import AttemptError
from nel.engine.run import run_evaluation
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.observability.records import MetricScore, ModelResponse, Outcome
from nel.solvers.base import BaseSolver, SolveResult


class Sums(EvalEnvironment):
    """Problem n is `n+1?`; the answer `?` cannot be graded."""

    name = "sums"

    def __init__(self, count: int = 6, *, gold: int = 1) -> None:
        self.count, self.gold = count, gold

    async def dataset_size(self) -> int:
        return self.count

    async def seed(self, idx: int) -> SeedResult:
        return SeedResult(
            prompt=f"{idx}+1?",
            expected_answer=str(idx + self.gold),
            category="odd" if idx % 2 else "even",
            cluster=f"page {idx // 2}",
            problem_id=f"s{idx}",
            metadata={"row": idx},
        )

    async def verify(self, response: str, expected: Any, sandbox: Any = None, **_: Any) -> VerifyResult:
        if response == "?":
            return VerifyResult(reward=None, outcome=Outcome.UNSCORED, failure_category="unscorable")
        right = response == expected
        return VerifyResult(
            reward=float(right), extracted_answer=response, metrics={"length": MetricScore(value=float(len(response)))}
        )

    def data_identity(self) -> dict[str, Any]:
        return {"source": "sums", "rows": self.count, "gold": self.gold}


class Adder(BaseSolver):
    """Adds; problems in `wrong` get 0, those in `unreadable` a question mark, those in `down` no answer at all."""

    def __init__(self, *, wrong: tuple = (), unreadable: tuple = (), down: tuple = (), answer: str = "") -> None:
        self.wrong, self.unreadable, self.down, self.answer = wrong, unreadable, down, answer

    async def solve(self, task: SeedResult) -> SolveResult:
        number = int(task.prompt.partition("+")[0])
        if number in self.down:
            raise AttemptError("HTTP 429: slow down", category="rate_limit", permanent=True)
        text = "0" if number in self.wrong else "?" if number in self.unreadable else self.answer or str(number + 1)
        return SolveResult(
            response=text,
            model_response=ModelResponse(
                content=text, finish_reason="stop", prompt_tokens=5, completion_tokens=1, latency_ms=10.0 + number
            ),
            messages=[{"role": "system", "content": "Add."}, {"role": "user", "content": task.prompt}],
        )


def evaluate(directory: Path, env: EvalEnvironment | None = None, solver: Any = None, **config: Any) -> dict[str, Any]:
    """The bundle of one run in `directory`."""
    config = {"max_error_rate": 1.0, **config}
    return asyncio.run(run_evaluation(env or Sums(), solver or Adder(), config, output_dir=directory))
