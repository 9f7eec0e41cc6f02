"""`run_self_test`: a benchmark's own rows through its real path, with scripted replies instead of a model."""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nel.core.contract import canonical_json, encode_json
from nel.core.errors import NelError, UsageError
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.environments.byob import ByobEnvironment
from nel.environments.definition import BenchmarkDefinition
from nel.environments.registry import get_environment
from nel.environments.sandboxed import SandboxedEnvironment
from nel.environments.scored import ScoredEnvironment
from nel.environments.self_test import MIN_ROWS, SelfTest
from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings
from nel.inference.transport import Reply
from nel.observability.records import AttemptRecord, ModelResponse, Outcome
from nel.sandbox.backends import best_backend
from nel.sandbox.manager import SandboxManager
from nel.scoring.judging.asking import Judge, JudgeSettings
from nel.scoring.judging.judge import JudgeMetric

_SHOWN = 3
"""Faults of one kind that are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTestResult:
    """What a self-test found; means are over scored replies, None where none was scored."""

    benchmark: str
    params: Mapping[str, Any]
    rows: int = 0
    gold: float | None = None
    """Mean reward of the gold replies; must be 1."""
    empty: float | None = None
    """Mean reward of empty replies; must be 0, or none be scored."""
    shuffled: float | None = None
    """Mean reward of the replies of other rows; at most `chance`."""
    chance: float = 0.0
    faults: Sequence[str] = field(default_factory=list)
    """What is wrong; empty where the test is passed."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


async def run_self_test(name: str) -> list[SelfTestResult]:
    """The self-test of the benchmark that `name` names (as `get_environment` reads it), once for each of its `params`.

    `UsageError` where the benchmark has none; what cannot be loaded is raised as `get_environment` does. Whatever the
    benchmark does wrong is a fault in the result.
    """
    test = _self_test_of(get_environment(name))
    if test is None:
        raise UsageError(
            f"benchmark {name} has no self-test", hint="Declare one: @benchmark(..., self_test=SelfTest(...))"
        )
    return [await _tested(name, test, params) for params in test.params]


def has_self_test(name: str) -> bool:
    """Whether the benchmark that `name` names declares a self-test."""
    return _self_test_of(get_environment(name)) is not None


def _self_test_of(env: EvalEnvironment) -> SelfTest | None:
    return env.definition.self_test if isinstance(env, ByobEnvironment) else env.self_test


async def _tested(name: str, test: SelfTest, params: Mapping[str, Any]) -> SelfTestResult:
    result = SelfTestResult(benchmark=name, params=params, chance=test.chance)
    try:
        async with _opened(name, test, params) as env:
            return await _Trial(env, test).run(result)
    except NelError as error:
        return replace(result, faults=[error.message])


@asynccontextmanager
async def _opened(name: str, test: SelfTest, params: Mapping[str, Any]) -> AsyncIterator[EvalEnvironment]:
    """The benchmark on the self-test's rows, with what its verdicts need: a sandbox, the scripted judge."""
    async with AsyncExitStack() as stack:
        env = get_environment(name, params=params)
        if isinstance(env, ByobEnvironment):
            env = ByobEnvironment(_on_rows(env.definition, test.rows))
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nel-self-test-"))
            env = get_environment(name, params=params, dataset=_file_of(test.rows, type(env), Path(folder)))
        stack.push_async_callback(env.close)
        if env.verify_sandbox is not None:
            backend = await best_backend(needs_image=env.verify_sandbox.image is not None)
            manager = await stack.enter_async_context(SandboxManager(backend, concurrency=1))
            env = SandboxedEnvironment(env, env.verify_sandbox, manager)
        if test.judge is not None:
            client = _scripted(test.judge)
            stack.push_async_callback(client.close)
            env = ScoredEnvironment(env, [JudgeMetric("judge", Judge(client, JudgeSettings()))])
        await env.prepare()
        yield env


def _on_rows(definition: BenchmarkDefinition, rows: Sequence[Mapping[str, Any]] | str) -> BenchmarkDefinition:
    """The benchmark with these rows, where it has examples also for those: then one for each problem."""
    if definition.fewshot is None:
        return replace(definition, dataset=rows)
    few = replace(definition.fewshot, rows=rows)
    return replace(definition, dataset=rows, fewshot=few, num_fewshot=min(1, definition.num_fewshot))


def _file_of(rows: Sequence[Mapping[str, Any]] | str, env: type[EvalEnvironment], folder: Path) -> str:
    if isinstance(rows, str):
        return str(Path(inspect.getfile(env)).parent / rows)
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(encode_json(dict(row)) + b"\n" for row in rows))
    return str(path)


class _Trial:
    """One run over all rows."""

    def __init__(self, env: EvalEnvironment, test: SelfTest) -> None:
        self._env = env
        self._test = test
        self._faults: list[str] = []

    async def run(self, result: SelfTestResult) -> SelfTestResult:
        size = await self._env.dataset_size()
        if size < MIN_ROWS:
            raise UsageError(f"the self-test of {self._env.name} has {size} rows; at least {MIN_ROWS} are needed")
        problems = [await self._env.seed(idx) for idx in range(size)]
        answers = [self._test.answer(problem) for problem in problems]
        gold = await self._graded("gold", problems, answers)
        self._tell("gold", [_wrong(answer, v) for answer, v in zip(answers, gold, strict=True) if v.reward != 1])
        empty = await self._graded("empty", problems, [""] * size)
        self._tell("empty", [f"reward {v.reward:g}" for v in empty if (v.reward or 0) > 0])
        shuffled = await self._graded("shuffled", problems, _others(problems, answers))
        mean = _mean(shuffled)
        if mean is not None and mean > result.chance + 1e-9:
            self._faults.append(f"shuffled replies have a mean of {mean:g}; at most {result.chance:g} is chance")
        return replace(result, rows=size, gold=_mean(gold), empty=_mean(empty), shuffled=mean, faults=self._faults)

    async def _graded(self, kind: str, problems: list[SeedResult], answers: list[str]) -> list[VerifyResult]:
        verdicts = []
        errors = []
        for idx, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
            verdict = await self._verdict(idx, problem, answer)
            if verdict.outcome is Outcome.ERROR:
                errors.append(f"error: {verdict.scoring_details.get('error', verdict.failure_category)}")
            verdicts.append(verdict)
        self._tell(kind, errors)
        return verdicts

    async def _verdict(self, idx: int, problem: SeedResult, answer: str) -> VerifyResult:
        scripted = self._test.model_response
        model = scripted(problem, answer) if scripted is not None and answer else ModelResponse(content=answer)
        user = [{"role": "user", "content": problem.prompt}]
        system = [{"role": "system", "content": problem.system}] if problem.system else []
        attempt = AttemptRecord(
            attempt="",
            content="",
            problem_idx=idx,
            problem_id=problem.problem_id,
            messages=problem.messages or [*system, *user],
            response=answer,
            seed_metadata=problem.metadata,
            model=model,
        )
        try:
            stored = AttemptRecord.from_json(encode_json(attempt))  # as a run that is scored again reads it
            return await self._env.verify_attempt(stored, answer, json.loads(encode_json(problem.expected_answer)))
        except Exception as error:
            return VerifyResult(
                reward=None, outcome=Outcome.ERROR, scoring_details={"error": f"{type(error).__name__}: {error}"}
            )

    def _tell(self, kind: str, faults: list[str]) -> None:
        self._faults += [f"{kind} reply: {fault}" for fault in faults[:_SHOWN]]
        if len(faults) > _SHOWN:
            self._faults.append(f"{kind} reply: {len(faults) - _SHOWN} more")


def _wrong(answer: str, verdict: VerifyResult) -> str:
    said = f"reward {verdict.reward:g}" if verdict.reward is not None else verdict.outcome.value
    why = verdict.scoring_details.get("error") or verdict.scoring_details.get("reason") or verdict.failure_category
    return f"{said}{f' ({why})' if why else ''}, extracted {verdict.extracted_answer!r} from {answer[-80:]!r}"


def _others(problems: list[SeedResult], answers: list[str]) -> list[str]:
    """For each problem the reply to the next one that expects another answer, or at least has another reply."""
    expected = [canonical_json(problem.expected_answer) for problem in problems]
    found = []
    for idx in range(len(problems)):
        following = [*range(idx + 1, len(problems)), *range(idx)]
        other = next((at for at in following if expected[at] != expected[idx] and answers[at] != answers[idx]), None)
        if other is None:
            other = next((at for at in following if answers[at] != answers[idx]), None)
        if other is None:
            raise UsageError("all rows of the self-test have the same reply, so that shuffling them shows nothing")
        found.append(answers[other])
    return found


def _mean(verdicts: list[VerifyResult]) -> float | None:
    rewards = [verdict.reward for verdict in verdicts if verdict.reward is not None]
    return sum(rewards) / len(rewards) if rewards else None


def _scripted(judge: Callable[[str], str]) -> ModelClient:
    settings = ServiceSettings(name="judge", urls=["http://self-test.invalid/v1/chat/completions"], max_retries=0)
    return ModelClient(settings, transport=_ScriptedTransport(judge))


class _ScriptedTransport:
    """Answers chat requests with what a function makes of the last message."""

    def __init__(self, judge: Callable[[str], str]) -> None:
        self._judge = judge

    async def send(
        self,
        url: str,  # noqa: ARG002 - there is one service
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes | None,
        on_chunk: Callable[[bytes], bool] | None = None,  # noqa: ARG002 - never streamed
    ) -> Reply:
        asked = json.loads(body or b"{}")["messages"][-1]["content"]
        message = {"role": "assistant", "content": self._judge(asked)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Reply(200, {"content-type": "application/json"}, encode_json({"choices": [choice]}))

    async def close(self) -> None:
        """Nothing is held."""
