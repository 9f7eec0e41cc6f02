"""`ScoredEnvironment`: a benchmark measured as the config's `scoring` says, by its own scorer, metrics and judges."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nel.config.scoring import DEFAULT
from nel.core.errors import AttemptError, UsageError
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.observability.records import AttemptRecord, MetricScore, ModelResponse, Outcome
from nel.scoring.judging.judge import Grader
from nel.scoring.judging.measurement import Measurement, missing, why
from nel.scoring.judging.request import ANSWERED, ASKED, questions_of
from nel.scoring.judging.verdict import Verdict
from nel.scoring.metric import JudgedSample, Metric

_TOLD: tuple[str, ...] = ("score", "label", "error")
_WHY: tuple[str, ...] = ("error", "reason")


class ScoredEnvironment(EvalEnvironment):
    """The problems of `env`, measured by `metrics` as well, or instead.

    Args:
        env: where problems come from. A benchmark that leaves verdicts to a judge is graded by the first judge (or
            ensemble) that has neither rubric nor scale of its own; that metric then is the benchmark's own score.
        metrics: all measure each answer, at the same time, each with its own outcome.
        primary: the metric that gives the reward; `default` is the benchmark's own score.
        include_defaults: whether the benchmark's own scorer measures too, as the metric `default`.

    Raises:
        UsageError: `primary` is no metric, or the benchmark needs a judge and none of the metrics can be it.
    """

    def __init__(
        self, env: EvalEnvironment, metrics: Sequence[Metric], *, primary: str = DEFAULT, include_defaults: bool = True
    ) -> None:
        self.inner = env
        self.metrics = list(metrics)
        self.primary = primary
        self.include_defaults = include_defaults
        self.name = env.name
        self.version = env.version
        self.cluster_by = env.cluster_by
        self.generation = env.generation
        self.endpoint_type = env.endpoint_type
        self.grader = self._grader()
        self.reward_bounds = self._bounds()
        self.aggregates = env.aggregates if self._is_own_reward() else {}
        names = [metric.name for metric in self.metrics]
        if primary not in ([*names, DEFAULT] if include_defaults else names):
            raise UsageError(f"{env.name}: the primary metric {primary!r} is none of {', '.join(names) or 'none'}")

    def _grader(self) -> Grader | None:
        """Who decides what the benchmark leaves to a judge."""
        if not (self.include_defaults and self.inner.may_need_judge):
            return None
        judges = [metric for metric in self.metrics if isinstance(metric, Grader)]
        free = next((judge for judge in judges if judge.is_open), None)
        if free is not None or judges:
            # A judge with a rubric of its own decides only where the benchmark says nothing of how to.
            return free or judges[0]
        raise UsageError(
            f"{self.inner.name} leaves its verdicts to a judge, and its `scoring` names none",
            hint="Add one to the benchmark's entry: "
            "scoring: {metrics: [{type: judge, name: judge, service: NAME_OF_A_SERVICE}]}",
        )

    def _bounds(self) -> tuple[float, float] | None:
        if self._is_own_reward():
            return self.inner.reward_bounds
        return getattr(next((m for m in self.metrics if m.name == self.primary), None), "bounds", None)

    def _is_own_reward(self) -> bool:
        """Whether the reward is the benchmark's own, perhaps with the help of a judge."""
        return self.primary == DEFAULT or (self.grader is not None and self.primary == self.grader.name)

    async def verify_attempt(self, attempt: AttemptRecord, response: str, expected: Any) -> VerifyResult:
        """The benchmark's own verdict and every metric's; the reward is that of the primary one."""
        return await self.verify_again(attempt, response, expected, {})

    async def verify_again(
        self, attempt: AttemptRecord, response: str, expected: Any, earlier: Mapping[str, MetricScore]
    ) -> VerifyResult:
        """The same; what `earlier` holds of a judge's verdicts is not asked for again."""
        own: VerifyResult | None = None
        if self.include_defaults:
            own = await self._own(attempt, response, expected)
            clash = own.metrics.keys() & {DEFAULT, *(metric.name for metric in self.metrics)}
            if clash:
                raise ValueError(
                    f"the benchmark has a metric {min(clash)!r} of its own: call that of `scoring` something else"
                )

        def sample(name: str) -> JudgedSample:
            return JudgedSample.of(attempt, response, expected, earlier=earlier.get(name))

        others = [metric for metric in self.metrics if metric is not self.grader]
        measuring = asyncio.gather(*(_scored(metric, sample(metric.name)) for metric in others))
        scores: dict[str, MetricScore] = {}
        try:
            if self.grader is not None and own is not None:
                own, scores[self.grader.name] = await self._graded(own, attempt, sample(self.grader.name))
            found = await measuring
        except BaseException:
            measuring.cancel()
            raise
        scores |= {metric.name: score for metric, score in zip(others, found, strict=True)}
        return self._verdict(own, scores)

    def _verdict(self, own: VerifyResult | None, scores: dict[str, MetricScore]) -> VerifyResult:
        metrics = dict(own.metrics) if own is not None else {}
        if own is not None and (self.grader is None or self.grader.name not in scores):
            metrics[DEFAULT] = _as_metric(own, str(self.inner.version))
        metrics |= {metric.name: scores[metric.name] for metric in self.metrics if metric.name in scores}
        by_own = self.primary == DEFAULT or (self.grader is not None and self.primary == self.grader.name)
        if by_own and own is not None:
            own.metrics = metrics
            return own
        primary = metrics[self.primary]
        details: dict[str, Any] = {name: primary.details[name] for name in _TOLD if name in primary.details}
        return VerifyResult(
            reward=primary.value if primary.outcome is Outcome.SCORED else None,
            extracted_answer=primary.details.get("extracted", own.extracted_answer if own is not None else None),
            scoring_details=details,
            metadata=own.metadata if own is not None else {},
            outcome=primary.outcome,
            failure_category=primary.details.get("category"),
            metrics=metrics,
            scoring_method=self.primary,
        )

    async def _own(self, attempt: AttemptRecord, response: str, expected: Any) -> VerifyResult:
        """The benchmark's verdict; a scorer that raises is the outcome of its metric alone."""
        try:
            return await self.inner.verify_attempt(attempt, response, expected)
        except AttemptError as error:
            return VerifyResult(
                reward=None,
                outcome=Outcome.ERROR,
                failure_category=error.category,
                scoring_details={"error": error.message},
            )
        except Exception as error:
            return VerifyResult(
                reward=None,
                outcome=Outcome.ERROR,
                failure_category="scorer_error",
                scoring_details={"error": f"{type(error).__name__}: {error}"},
            )

    async def _graded(
        self, own: VerifyResult, attempt: AttemptRecord, sample: JudgedSample
    ) -> tuple[VerifyResult, MetricScore]:
        """The benchmark's verdict with the judge's help, where it asks for that, and what the judge said."""
        grader = self.grader
        assert grader is not None
        questions = questions_of(own.scoring_details)
        if not questions:
            return own, _as_metric(own, grader.version)
        if not grader.is_open and not all(question.is_open for question in questions.values()):
            own.scoring_details = {
                "error": f"the benchmark says what its judge goes by, and so does the metric {grader.name!r}: "
                "leave its rubric and scale out, or add a judge without them"
            }
            return own, _as_metric(own, grader.version)
        measurement = Measurement(sample)
        verdicts = await grader.decide(measurement, questions)
        lacking = missing(verdicts.values())
        decided = await self._decided(own, attempt, sample, verdicts) if lacking is None else _lacking(own, lacking)
        score = _as_metric(decided, grader.version)
        score.details = {**score.details, **measurement.details()}
        return decided, score

    async def _decided(
        self, own: VerifyResult, attempt: AttemptRecord, sample: JudgedSample, verdicts: Mapping[str, Verdict]
    ) -> VerifyResult:
        """What the scorer makes of the verdicts; one that does not look at them leaves its reward to the judge."""
        told = {name: msgspec.to_builtins(verdict) for name, verdict in verdicts.items()}
        known = msgspec.structs.replace(attempt, seed_metadata={**attempt.seed_metadata, ANSWERED: told})
        again = await self._own(known, sample.response, sample.target)
        if ASKED not in again.scoring_details:
            return again
        if len(verdicts) > 1:
            raise ValueError("the scorer asked several questions and does not look at the answers with judge_score()")
        (verdict,) = verdicts.values()
        kept = {name: value for name, value in own.scoring_details.items() if name not in {ASKED, "reason"}}
        return VerifyResult(
            reward=verdict.value,
            extracted_answer=own.extracted_answer,
            scoring_details={**kept, **why(verdict)},
            metadata=own.metadata,
            metrics=own.metrics,
            scoring_method="judge",
        )

    def scoring_identity(self) -> dict[str, Any]:
        """What the benchmark's own scorer and every metric depend on, and which of them gives the reward."""
        own = {"default": self.inner.scoring_identity()} if self.include_defaults else {}
        metrics = {metric.name: dict(metric.identity()) for metric in self.metrics}
        return {**own, "metrics": metrics, "primary": self.primary}

    # The problems are the wrapped benchmark's.

    async def prepare(self) -> None:
        """Prepares the benchmark."""
        await self.inner.prepare()

    async def dataset_size(self) -> int:
        """How many problems the benchmark has."""
        return await self.inner.dataset_size()

    async def seed(self, idx: int) -> SeedResult:
        """The benchmark's problem."""
        return await self.inner.seed(idx)

    async def verify(
        self,
        response: str,
        expected: Any,
        sandbox: Any = None,
        *,
        metadata: Mapping[str, Any],
        model_response: ModelResponse | None = None,
    ) -> VerifyResult:
        """The benchmark's own verdict alone: the metrics also need what was asked (`verify_attempt`)."""
        return await self.inner.verify(response, expected, sandbox, metadata=metadata, model_response=model_response)

    def data_identity(self) -> dict[str, Any]:
        """What the benchmark's problems were made from."""
        return self.inner.data_identity()

    def kept_files(self) -> dict[str, bytes]:
        """The benchmark's files, and those of metrics of one's own."""
        files = self.inner.kept_files()
        for metric in self.metrics:
            files |= getattr(metric, "kept_files", dict)()
        return files

    async def close(self) -> None:
        """Closes the benchmark."""
        await self.inner.close()


async def _scored(metric: Metric, sample: JudgedSample) -> MetricScore:
    """A metric's score; one that raises is an error, and leaves the other metrics alone."""
    try:
        score = await metric.score(sample)
    except AttemptError as error:
        return MetricScore(outcome=Outcome.ERROR, details={"category": error.category, "error": error.message})
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return MetricScore(outcome=Outcome.ERROR, details={"category": "scorer_error", "error": said})
    return score


def _as_metric(verdict: VerifyResult, version: str) -> MetricScore:
    details = {} if verdict.outcome is Outcome.SCORED else {"category": verdict.failure_category}
    told: dict[str, Any] = {name: verdict.scoring_details[name] for name in _WHY if name in verdict.scoring_details}
    return MetricScore(
        value=verdict.reward if verdict.outcome is Outcome.SCORED else None,
        outcome=verdict.outcome,
        version=version,
        details={**details, **told},
    )


def _lacking(own: VerifyResult, verdict: Verdict) -> VerifyResult:
    """The benchmark's verdict where the judge gave none."""
    return VerifyResult(
        reward=None,
        extracted_answer=own.extracted_answer,
        scoring_details={"error": verdict.error},
        metadata=own.metadata,
        outcome=verdict.outcome,
        failure_category=verdict.category,
        scoring_method="judge",
    )
