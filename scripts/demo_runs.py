"""Runs to look at: a made-up model answers three small benchmarks in memory, with errors, judge and tools."""

# ruff: noqa: ARG002 - `verify` is called with more than these graders need

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

from nel.core.errors import AttemptError
from nel.engine.cell import plan_cell
from nel.engine.session import CellKey, Session
from nel.engine.settings import EvaluationSettings
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.observability.records import MetricScore, ModelResponse, Outcome
from nel.solvers.base import BaseSolver, SolveResult

NAMES = ("Amira", "Jonas", "Mei", "Tomás", "Priya", "Olu", "Ingrid", "Kenji")


def _word_problem(idx: int) -> tuple[str, str, int]:
    """Category, question and answer."""
    draw = random.Random(idx)
    who, a, b, c = draw.choice(NAMES), draw.randint(3, 40), draw.randint(2, 12), draw.randint(2, 9)
    return [
        ("rates", f"{who} fills {a} bottles in {b} minutes. How many bottles in {b * c} minutes?", a * c),
        ("percentages", f"A coat costs {a * 20} euros and is reduced by {b * 5} %. What is the new price?",
         a * (100 - b * 5) // 5),
        ("geometry", f"A garden is {a} m long and {b} m wide. How long is a fence around it, in metres?", 2 * (a + b)),
        ("time", f"{who} reads {a} pages on each of {b} days, and {c} pages on one more. How many in all?", a * b + c),
        ("money", f"{who} has {a * c + b} coins and gives {b} away. The rest is for {c} friends. How many each?", a),
    ][idx % 5]  # fmt: skip


class WordProblems(EvalEnvironment):
    """Sums in words, graded by the last number."""

    name = "word_problems"

    async def dataset_size(self) -> int:
        return 240

    async def seed(self, idx: int) -> SeedResult:
        category, question, answer = _word_problem(idx)
        return SeedResult(prompt=question, expected_answer=str(answer), category=category, problem_id=f"wp-{idx:03}")

    async def verify(self, response: str, expected: Any, sandbox: Any = None, **_: Any) -> VerifyResult:
        found = response.rpartition("Answer:")[2].strip()
        if not found:
            return VerifyResult(reward=0.0, failure_category="extraction_failed", scoring_method="last number")
        return VerifyResult(
            reward=float(found == expected),
            extracted_answer=found,
            scoring_method="last number",
            metrics={"steps shown": MetricScore(value=float("so" in response))},
        )


class Letters(EvalEnvironment):
    """Replies to customers, graded by a judge in words."""

    name = "support_letters"
    reward_bounds = (0.0, 1.0)
    subjects = ("a late parcel", "a broken kettle", "a wrong invoice", "a lost password", "a cancelled course")

    async def dataset_size(self) -> int:
        return 80

    async def seed(self, idx: int) -> SeedResult:
        who, subject = NAMES[idx % len(NAMES)], self.subjects[idx % len(self.subjects)]
        return SeedResult(
            prompt=f"Write a short reply to {who}, who complains about {subject}. (case {idx})",
            expected_answer="Apologise, name the cause, offer one concrete next step.",
            category=subject.split(" ", 1)[1],
            problem_id=f"letter-{idx:02}",
        )

    async def verify(self, response: str, expected: Any, sandbox: Any = None, **_: Any) -> VerifyResult:
        if "refund" not in response and "sorry" not in response:
            return VerifyResult(reward=None, outcome=Outcome.UNSCORED, failure_category="judge_unparseable")
        score = (2 * ("sorry" in response) + 2 * ("because" in response) + ("tomorrow" in response)) / 5
        words = "The reply apologises" + (" and says why" if "because" in response else ", but gives no cause")
        return VerifyResult(
            reward=score,
            scoring_method="judge",
            scoring_details={"judge": "judge-72b", "grade": f"{score * 5:.0f} of 5", "reason": f"{words}."},
        )


class Lookup(EvalEnvironment):
    """Questions that need a tool."""

    name = "stock_lookup"

    async def dataset_size(self) -> int:
        return 60

    async def seed(self, idx: int) -> SeedResult:
        return SeedResult(
            prompt=f"How many of article {1000 + idx} are in stock?", expected_answer=str(idx * 7 % 90),
            category="warehouse", problem_id=f"article-{1000 + idx}",
        )  # fmt: skip

    async def verify(self, response: str, expected: Any, sandbox: Any = None, **_: Any) -> VerifyResult:
        count = response.partition(" ")[0]
        return VerifyResult(reward=float(count == expected), extracted_answer=count)


class Model(BaseSolver):
    """Right in a share of the problems; the better one is right wherever the worse one is, almost."""

    def __init__(self, name: str, skill: float, pace: float, down: float) -> None:
        self.name, self.skill, self.pace, self.down = name, skill, pace, down

    def identity(self) -> dict[str, Any]:
        return {"solver": "demo", "service": {"model": self.name}}

    async def solve(self, task: SeedResult) -> SolveResult:
        draw, own = random.Random(task.prompt), random.Random(f"{self.name} {task.prompt}")
        luck = 0.8 * draw.random() + 0.2 * own.random()
        seconds = self.pace * own.lognormvariate(0, 0.45)
        if task.prompt.startswith("How many of article") and own.random() < self.down:
            raise AttemptError("HTTP 429: too many requests, retry after 20 s", category="rate_limit", permanent=True)
        good = luck < self.skill
        reasoning, text, calls = self._words(task, good, luck, own)
        return SolveResult(
            response=text,
            model_response=ModelResponse(
                content=text, reasoning_content=reasoning, tool_calls=calls, finish_reason="stop",
                prompt_tokens=20 + len(task.prompt) // 4, completion_tokens=(len(text) + len(reasoning)) // 4,
                latency_ms=seconds * 1000,
            ),
            messages=[
                {"role": "system", "content": "You are careful. Think, then answer."},
                {"role": "user", "content": task.prompt},
            ],
        )  # fmt: skip

    def _words(self, task: SeedResult, good: bool, luck: float, own: random.Random) -> tuple[str, str, Any]:
        ident = task.problem_id or ""
        idle = " ".join(own.choices(("Let me check the units.", "That seems plausible.", "Once more, slowly."), k=4))
        if ident.startswith("wp-"):
            _, question, answer = _word_problem(int(ident[3:]))
            said = answer if good else answer + own.choice((-10, -1, 1, 2, 10))
            thought = f"The question is: {question} I write down what is given. {idle}"
            ending = "" if luck > 0.97 else f"\n\nAnswer: {said}"
            return thought, f"First I take what is given, so each part is known. {idle}{ending}", None
        if ident.startswith("letter-"):
            cause = " It happened because our carrier changed." if good else ""
            text = f"Dear {task.prompt.split()[6].strip(',')},\n\nwe are sorry.{cause}"
            text += " You will hear from us tomorrow." if luck < self.skill / 2 else ""
            return f"Apology, cause, next step. {idle}", "Noted." if luck > 0.9 else text, None
        article = int(ident.rpartition("-")[2])
        count = (article - 1000) * 7 % 90
        call = {"id": "c1", "type": "function", "function": {"name": "stock", "arguments": f'{{"article": {article}}}'}}
        return f"I look it up. {idle}", f"{count if good else count + 1} are in stock.", [call]


async def _run(folder: Path, model: Model) -> None:
    settings = EvaluationSettings(max_error_rate=0.05)
    with Session.open(folder, resume=False) as session:
        for env in (WordProblems(), Letters(), Lookup()):
            plan = await plan_cell(env, model, settings, config={"model": model.name})
            await session.evaluate(CellKey(env.name, model.name), plan, directory=env.name)


def make_runs(folder: Path) -> list[Path]:
    """Two runs in `folder`, of a smaller and of a larger model."""
    models = {"small": Model("tern-3b", 0.62, 0.9, 0.2), "large": Model("tern-14b", 0.79, 2.1, 0.0)}
    for name, model in models.items():
        asyncio.run(_run(folder / name, model))
    return [folder / name for name in models]
