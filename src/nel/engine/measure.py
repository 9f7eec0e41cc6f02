"""From an answered attempt to its score: the second half of the loop, which `rescore` runs alone."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from nel.core.errors import AttemptError, NelError
from nel.environments.base import EvalEnvironment, VerifyResult
from nel.observability.records import AttemptRecord, ModelErrorInfo, Outcome, ScoreRecord


@dataclass(frozen=True, slots=True)
class Gold:
    """What is known of a problem and withheld from the solver."""

    expected: Any = None
    category: str | None = None
    cluster: str | None = None


def answer_of(attempt: AttemptRecord) -> str:
    """The text that is graded."""
    if attempt.response is not None:
        return attempt.response
    return attempt.model.content if attempt.model else ""


async def measure(
    env: EvalEnvironment,
    attempt: AttemptRecord,
    gold: Gold,
    *,
    score: str,
    basis: str,
    run_id: str,
    earlier: ScoreRecord | None = None,
) -> ScoreRecord:
    """The score of one attempt; whatever goes wrong is an outcome, never an exception and never a 0.

    `earlier` is the same measurement of another time, which was not complete.
    """
    error = attempt.model_error
    if error is not None:
        return _failed(attempt, gold, error, score, basis, run_id)
    response = answer_of(attempt)
    begin = time.perf_counter()
    try:
        if earlier is not None and earlier.scorer_rewards:
            verdict = await env.verify_again(attempt, response, gold.expected, earlier.scorer_rewards)
        else:
            verdict = await env.verify_attempt(attempt, response, gold.expected)
        _check(verdict)
    except Exception as failure:
        verdict = VerifyResult(
            reward=None,
            outcome=Outcome.ERROR,
            failure_category=failure.category if isinstance(failure, AttemptError) else "scorer_error",
            scoring_details={
                "error": failure.message if isinstance(failure, NelError) else f"{type(failure).__name__}: {failure}"
            },
        )
    verify_ms = round((time.perf_counter() - begin) * 1000, 3)
    scored = verdict.outcome is Outcome.SCORED
    metrics = verdict.metrics
    model = attempt.model
    return ScoreRecord(
        attempt=attempt.attempt,
        score=score,
        basis=basis,
        problem_idx=attempt.problem_idx,
        repeat=attempt.repeat,
        problem_id=attempt.problem_id,
        outcome=verdict.outcome,
        reward=float(verdict.reward) if scored and verdict.reward is not None else None,
        scorer_rewards=metrics,
        extracted_answer=verdict.extracted_answer,
        expected_answer=gold.expected,
        scoring_method=verdict.scoring_method,
        scoring_details=verdict.scoring_details,
        scoring_metadata=verdict.metadata,
        category=gold.category,
        cluster=gold.cluster,
        failure_category=verdict.failure_category or _scored_category(attempt, response, verdict),
        error=None if scored else _reason(verdict),
        tokens=model.total_tokens if model else 0,
        latency_ms=model.latency_ms if model else 0.0,
        verify_ms=verify_ms,
        run_id=run_id,
    )


def _failed(
    attempt: AttemptRecord, gold: Gold, error: ModelErrorInfo, score: str, basis: str, run_id: str
) -> ScoreRecord:
    return ScoreRecord(
        attempt=attempt.attempt,
        score=score,
        basis=basis,
        problem_idx=attempt.problem_idx,
        repeat=attempt.repeat,
        problem_id=attempt.problem_id,
        outcome=Outcome.ERROR,
        expected_answer=gold.expected,
        category=gold.category,
        cluster=gold.cluster,
        failure_category=error.category,
        error=error.message,
        run_id=run_id,
    )


def _check(verdict: Any) -> None:
    """Raises where an environment's verdict is none."""
    if not isinstance(verdict, VerifyResult):
        raise TypeError(f"verify() returned {type(verdict).__name__}, not a VerifyResult")
    _check_value("reward", verdict.outcome, verdict.reward)
    for name, metric in verdict.metrics.items():
        _check_value(f"metric {name!r}", metric.outcome, metric.value)


def _check_value(name: str, outcome: Outcome, value: Any) -> None:
    if outcome is Outcome.SCORED and not (isinstance(value, int | float) and math.isfinite(value)):
        raise ValueError(f"{name} is {value!r}; a scored answer needs a finite number")


def _scored_category(attempt: AttemptRecord, response: str, verdict: VerifyResult) -> str | None:
    """Why a poor score may be no fault of the answer: it was cut, or there was none."""
    if verdict.outcome is not Outcome.SCORED or (verdict.reward or 0) > 0:
        return None
    if attempt.model is not None and attempt.model.finish_reason == "length":
        return "truncated"
    return "empty_response" if not response.strip() else None


def _reason(verdict: VerifyResult) -> str:
    details = verdict.scoring_details
    return str(details.get("error") or details.get("reason") or verdict.failure_category or verdict.outcome.value)
