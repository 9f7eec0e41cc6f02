"""What a rescoring measures instead of what a config says, and what that changes in how scores are made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nel.config.scoring import (
    DEFAULT,
    CustomMetric,
    EnsembleJudgeMetric,
    JudgeMetric,
    Metric,
    PairwiseJudgeMetric,
    ScorerMetric,
    Scoring,
)
from nel.core.contract import encode_json
from nel.core.errors import UsageError

JUDGE = "judge"
"""What a judge is called that no config names."""
_SHOWN = 60


def judged_by(scoring: Scoring, service: str) -> Scoring:
    """The same metrics with `service` as their judge, by the same rubric; without a judge, one that gives the reward.

    `UsageError` for an ensemble, which one service cannot replace.
    """
    metrics = [_asking(metric, service) for metric in scoring.metrics]
    if any(new is not old for new, old in zip(metrics, scoring.metrics, strict=True)):
        return scoring.model_copy(update={"metrics": metrics})
    return _with(scoring, JudgeMetric(type="judge", name=JUDGE, service=service))


def _asking(metric: Metric, service: str) -> Metric:
    if isinstance(metric, JudgeMetric):
        return metric.model_copy(update={"service": service})
    if isinstance(metric, PairwiseJudgeMetric):
        return metric.model_copy(update={"judge_service": service})
    if isinstance(metric, EnsembleJudgeMetric):
        raise UsageError(
            f"metric {metric.name} is an ensemble of {', '.join(metric.services)}, which one judge cannot replace",
            hint="Name the judges of an ensemble in a config, and give it by --config.",
        )
    return metric


def also_scored_by(scoring: Scoring, scorers: Sequence[str]) -> Scoring:
    """The metrics and those of `scorers`, of which the first gives the reward."""
    for scorer in reversed(scorers):
        name = re.split(r"[:/]", scorer)[-1]
        own = ":" in scorer or "/" in scorer
        scoring = _with(
            scoring,
            CustomMetric(type="custom", name=name, class_path=scorer)
            if own
            else ScorerMetric(type="scorer", name=name),
        )
    return scoring


def _with(scoring: Scoring, metric: Metric) -> Scoring:
    others = [other for other in scoring.metrics if other.name != metric.name]
    return scoring.model_copy(update={"metrics": [metric, *others], "primary": metric.name})


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is different between two identities of scores, one line each: `metrics.quality.rubric: a -> b`."""
    found = _pairs("", _whole(before), _whole(after))
    return [f"{path}: {_shown(old)} -> {_shown(new)}" for path, old, new in found]


def _whole(identity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The identity as one with metrics, so that it can be compared with such a one."""
    return identity if "primary" in identity else {"default": identity, "metrics": {}, "primary": DEFAULT}


_ABSENT = object()


def _pairs(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            inner = f"{path}.{name}" if path else str(name)
            yield from _pairs(inner, before.get(name, _ABSENT), after.get(name, _ABSENT))
    else:
        yield path, before, after


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "none"
    if isinstance(value, Mapping):
        kind = value.get("metric") or value.get("scorer")
        return f"a {kind}" if isinstance(kind, str) else "some"
    text = value if isinstance(value, str) else encode_json(value).decode()
    text = " ".join(text.split())
    if re.fullmatch(r"sha256:[0-9a-f]{64}", text):
        return text[:15]
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
