"""From the `scoring` of a benchmark's entry to metrics, and to the environment that measures by them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import nel.scoring
from nel.config import scoring as config
from nel.core.errors import ConfigError, UsageError
from nel.core.loading import load_object
from nel.environments.grading import ScorerCall, ScorerCode
from nel.environments.verdict import verdict_of
from nel.inference.client import ModelClient
from nel.observability.records import MetricScore, Outcome
from nel.sandbox.base import SandboxSpec
from nel.sandbox.manager import SandboxManager
from nel.scoring.command import COMMAND_SPEC, CommandMetric
from nel.scoring.judging.asking import Judge, JudgeSettings
from nel.scoring.judging.ensemble import EnsembleMetric
from nel.scoring.judging.judge import JudgeMetric
from nel.scoring.judging.measurement import version_of
from nel.scoring.judging.pairwise import ExpectedBaseline, PairwiseMetric, ServiceBaseline
from nel.scoring.judging.prompts import SYSTEM
from nel.scoring.judging.reward import RewardModelMetric
from nel.scoring.judging.scale import Scale
from nel.scoring.metric import JudgedSample, Metric

Service = tuple[ModelClient, Mapping[str, Any]]
"""A client with the generation parameters that its service is configured with."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The sandboxes that commands run in; without a manager they can be planned with."""

    spec: SandboxSpec = COMMAND_SPEC
    manager: SandboxManager | None = None


def build_metric(spec: config.Metric, services: Mapping[str, Service], boxes: Boxes | None = None) -> Metric:
    """The metric that an entry of `scoring.metrics` describes; `services` has those that it names.

    `UsageError` where its scorer, class or rubric file is not there, or its service cannot be asked in that way.
    """
    match spec:
        case config.ScorerMetric():
            return ScorerMetric(spec.name, _built_in(spec.scorer or spec.name), params=spec.params)
        case config.JudgeMetric():
            return JudgeMetric(
                spec.name,
                _judge(spec, services[spec.service]),
                rubric=_rubric(spec),
                scale=_scale(spec),
                reference_free=spec.reference_free,
                swap_check=spec.swap_check,
            )
        case config.EnsembleJudgeMetric():
            return EnsembleMetric(
                spec.name,
                [_judge(spec, services[name]) for name in spec.services],
                aggregation="majority" if spec.aggregation == "majority_vote" else spec.aggregation,
                rubric=_rubric(spec),
                scale=_scale(spec),
                reference_free=spec.reference_free,
            )
        case config.PairwiseJudgeMetric():
            baseline = services[spec.baseline_service] if spec.baseline_service is not None else None
            return PairwiseMetric(
                spec.name,
                _judge(spec, services[spec.judge_service]),
                ServiceBaseline(*baseline) if baseline is not None else ExpectedBaseline(),
                rubric=_rubric(spec),
                swap_check=spec.swap_check,
            )
        case config.RewardModelMetric():
            client, generation = services[spec.service]
            return RewardModelMetric(
                spec.name,
                client,
                generation=generation,
                mode=spec.mode,
                aspect=spec.aspect,
                score_range=spec.score_range,
                threshold=spec.threshold,
                timeout=spec.timeout,
                max_retries=spec.max_retries,
            )
        case config.CustomMetric():
            return _custom(spec)
        case config.SandboxMetric():
            boxes = boxes or Boxes()
            return CommandMetric(
                spec.name, spec.command, spec=boxes.spec, manager=boxes.manager, time_limit=spec.verify_timeout
            )


def _judge(spec: config.JudgeBase, service: Service) -> Judge:
    client, generation = service
    return Judge(
        client,
        JudgeSettings(
            system_prompt=SYSTEM if spec.system_prompt is None else spec.system_prompt,
            temperature=spec.temperature,
            generation=generation,
            timeout=spec.timeout,
            max_retries=spec.max_retries,
            structured=spec.structured_output,
        ),
    )


def _rubric(spec: config.JudgeBase) -> str | None:
    if spec.rubric_file is None:
        return spec.rubric
    try:
        text = Path(spec.rubric_file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"metric {spec.name}: rubric_file {spec.rubric_file}: {error}") from None
    if not text.strip():
        raise UsageError(f"metric {spec.name}: rubric_file {spec.rubric_file} is empty")
    return text


def _scale(spec: config.ScaledJudge) -> Scale | None:
    """The scale that the config asks for; None where it says nothing of one."""
    if spec.labels is not None:
        return Scale.of_labels(spec.labels)
    if spec.model_fields_set & {"min_score", "max_score"}:
        return Scale(low=spec.worst, high=spec.max_score)
    return None


def _built_in(name: str) -> Callable[..., Any]:
    scorers = [scorer for scorer in nel.scoring.VERSIONS if not scorer.startswith("extract_")]
    if name not in scorers:
        near = get_close_matches(name, scorers, n=1)
        known = f"Scorers: {', '.join(scorers)}."
        raise UsageError(
            f"no built-in scorer {name!r}", hint=f"Did you mean {near[0]!r}? {known}" if near else f"{known} "
            "A scorer of one's own is a metric of type custom."
        )  # fmt: skip
    scorer: Callable[..., Any] = getattr(nel.scoring, name)
    return scorer


class ScorerMetric:
    """A scorer, built in or of one's own, as a metric."""

    VERSION = "1"

    def __init__(
        self,
        name: str,
        scorer: Callable[..., Any],
        *,
        params: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._config = dict(config or {})
        try:
            inspect.signature(scorer).bind(None, **(params or {}))
        except TypeError as error:
            raise UsageError(f"metric {name}: its scorer cannot be called with these params: {error}") from None
        function = partial(scorer, **params) if params else scorer
        self._call = ScorerCall(function)
        self._code = ScorerCode(function)

    def identity(self) -> dict[str, Any]:
        """The scorer's version, or the digest of its file, and its settings."""
        return {"metric": "scorer", "version": self.VERSION, "config": self._config, **self._code.identity()}

    @cached_property
    def version(self) -> str:
        """The version in each of its scores."""
        return version_of(self.VERSION, self.identity())

    def kept_files(self) -> dict[str, bytes]:
        """The file of a scorer of one's own."""
        return _kept(self._code)

    async def score(self, sample: JudgedSample) -> MetricScore:
        """What the scorer makes of the answer; its reward is the value."""
        sample.config = self._config
        return _metric_score(await self._call(sample), self._code.name, self.version)


class CustomMetric:
    """An object with a `score` method, of a class of one's own."""

    def __init__(self, name: str, metric: Any, settings: Mapping[str, Any]) -> None:
        self.name = name
        self._metric = metric
        self._settings = dict(settings)
        self._call = ScorerCall(metric.score)
        self._code = ScorerCode(metric.score)

    def identity(self) -> dict[str, Any]:
        """What the object says of itself, its settings, and the digest of its file."""
        own: Mapping[str, Any] = getattr(self._metric, "identity", dict)()
        return {"metric": "custom", "config": self._settings, **self._code.identity(), "own": dict(own)}

    @cached_property
    def version(self) -> str:
        """The version in each of its scores."""
        return version_of(str(getattr(self._metric, "version", "1")), self.identity())

    def kept_files(self) -> dict[str, bytes]:
        """The file of its class."""
        return _kept(self._code)

    async def score(self, sample: JudgedSample) -> MetricScore:
        """The value: a `MetricScore`, or whatever a scorer may return."""
        return _metric_score(await self._call(sample), self._code.name, self.version)


def _custom(spec: config.CustomMetric) -> Metric:
    found = load_object(spec.class_path, what="metric")
    if not inspect.isclass(found):
        if not callable(found):
            raise UsageError(f"metric {spec.name}: {spec.class_path} is neither a class nor a scorer function")
        return ScorerMetric(spec.name, found, config=spec.config)
    try:
        metric = found(**spec.config)
    except TypeError as error:
        raise ConfigError(f"metric {spec.name}: {spec.class_path}: {error}", key="config") from None
    if not callable(getattr(metric, "score", None)):
        raise UsageError(f"metric {spec.name}: {spec.class_path} has no method `score(sample)`")
    return CustomMetric(spec.name, metric, spec.config)


def _metric_score(result: Any, scorer: str, version: str) -> MetricScore:
    if isinstance(result, MetricScore):
        if result.outcome is Outcome.SCORED and (result.value is None or not math.isfinite(result.value)):
            raise ValueError(f"{scorer} returned a score of {result.value!r}")
        result.version = result.version or version
        return result
    verdict = verdict_of(result, scorer, version)
    details = {**verdict.scoring_details, **{name: score.value for name, score in verdict.metrics.items()}}
    if verdict.extracted_answer is not None:
        details["extracted"] = verdict.extracted_answer
    if verdict.failure_category is not None:
        details["category"] = verdict.failure_category
    return MetricScore(value=verdict.reward, outcome=verdict.outcome, version=version, details=details)


def _kept(code: ScorerCode) -> dict[str, bytes]:
    return {code.file.name: code.content} if not code.is_own and code.file is not None else {}
