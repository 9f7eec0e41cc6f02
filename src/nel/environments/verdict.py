"""From what a scorer returns to a `VerifyResult`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nel.environments.base import VerifyResult
from nel.observability.records import MetricScore, Outcome
from nel.scoring.judging.request import needs_judge

_TOLD = {
    "extracted",
    "extracted_answer",
    "method",
    "scoring_method",
    "failure_category",
    "outcome",
    "reward",
    "correct",
}


class ScorerResultError(TypeError):
    """A scorer returned nothing that can be a reward."""


def verdict_of(result: Any, scorer: str, version: str) -> VerifyResult:
    """The verdict that a scorer's result stands for.

    A bool or number is the reward. Of a mapping, `correct` is, else `reward`, else its first number; its other numbers
    are further metrics, `extracted`, `method` and `failure_category` are what they say, and `outcome: "unscored"` says
    that the answer could not be graded (no reward is needed then). `ScorerResultError` names the scorer whose result
    has no number.
    """
    if isinstance(result, VerifyResult):
        return result
    if isinstance(result, bool | int | float):
        return VerifyResult(reward=_finite(result, "result", scorer), scoring_method=scorer)
    if not isinstance(result, Mapping):
        raise ScorerResultError(
            f"scorer {scorer} returned {type(result).__name__}; expected: a bool, a number, a mapping, a VerifyResult"
        )
    if result.get("outcome", "scored") not in {"scored", "unscored"}:
        raise ScorerResultError(
            f"scorer {scorer}: outcome is {result['outcome']!r}; 'scored' or 'unscored' is expected"
        )
    if result.get("needs_judge") is True:  # the form of NeMo Evaluator: its `correct: False` is no verdict
        result = needs_judge()
    unscored = result.get("outcome") == "unscored"
    key = None if unscored else _reward_key(result, scorer)
    metrics = {
        str(name): MetricScore(value=_finite(value, str(name), scorer), version=version)
        for name, value in result.items()
        if name != key and name not in _TOLD and isinstance(value, bool | int | float)
    }
    return VerifyResult(
        reward=_finite(result[key], key, scorer) if key is not None else None,
        extracted_answer=result.get("extracted", result.get("extracted_answer")),
        scoring_method=str(result.get("method") or result.get("scoring_method") or scorer),
        scoring_details={
            name: value for name, value in result.items() if name not in _TOLD and name not in metrics and name != key
        },
        outcome=Outcome.UNSCORED if unscored else Outcome.SCORED,
        failure_category=result.get("failure_category") or ("unscorable" if unscored else None),
        metrics=metrics,
    )


def _reward_key(result: Mapping[str, Any], scorer: str) -> str:
    for key in ("correct", "reward"):
        if key in result:
            return key
    for key, value in result.items():
        if isinstance(value, bool | int | float):
            return key
    raise ScorerResultError(
        f"scorer {scorer} returned a mapping without a number; its keys are {', '.join(map(str, result)) or 'none'}"
    )


def _finite(value: Any, name: str, scorer: str) -> float:
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise ScorerResultError(f"scorer {scorer}: {name} is {value!r}; a finite number is expected")
    return float(value)
