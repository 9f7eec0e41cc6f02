"""`scoring`: measurements beside, or instead of, the benchmark's own."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from nel.config.base import Float, Model, Name, Positive, Temperature, Whole, key, refusal


class ScorerMetric(Model):
    """A scorer by name."""

    later: ClassVar[str] = "metrics of type scorer"
    type: Literal["scorer"] = key(..., "A scorer by name.")
    name: Name = key(..., "The scorer.")


class JudgeBase(Model):
    """What judges share."""

    name: Name = key(..., "Name of the metric.")
    rubric: str | None = key(None, "What the judge goes by.")
    rubric_file: str | None = key(None, "File with the rubric, instead of `rubric`.")
    max_score: Positive = key(5.0, "Best score.")
    temperature: Temperature = key(0.0, "Sampling temperature of the judge.")
    timeout: Positive = key(120.0, "Seconds for one verdict.")
    max_retries: Whole = key(2, "Further tries for a verdict.")

    @model_validator(mode="after")
    def _one_rubric(self) -> JudgeBase:
        if self.rubric and self.rubric_file:
            raise refusal("either `rubric` or `rubric_file`", "rubric_file")
        return self


class JudgeMetric(JudgeBase):
    """A model grades each answer."""

    later: ClassVar[str] = "judges"
    type: Literal["judge"] = key(..., "A model grades each answer.")
    service: Name = key(..., "The judge.")
    system_prompt: str | None = key(None, "Its system prompt.")
    swap_check: bool = key(False, "Ask twice, in both orders.")
    reference_free: bool = key(False, "Do not show the expected answer.")
    allow_self_judge: bool = key(False, "Let a model grade its own answers.")


class PairwiseJudgeMetric(JudgeBase):
    """A model prefers one of two answers."""

    later: ClassVar[str] = "judges"
    type: Literal["pairwise_judge"] = key(..., "A model prefers one of two answers.")
    judge_service: Name = key(..., "The judge.")
    baseline_service: Name = key(..., "Whose answers are compared with.")
    swap_check: bool = key(True, "Ask twice, in both orders.")


class EnsembleJudgeMetric(JudgeBase):
    """Several models grade each answer."""

    later: ClassVar[str] = "judges"
    type: Literal["ensemble_judge"] = key(..., "Several models grade each answer.")
    services: Annotated[list[str], Field(min_length=2)] = key(..., "The judges.")
    aggregation: Literal["mean", "median", "majority", "majority_vote"] = key("mean", "What is made of their scores.")


class SandboxMetric(Model):
    """A command's exit code in the sandbox."""

    later: ClassVar[str] = "metrics of type sandbox"
    type: Literal["sandbox"] = key(..., "A command's exit code in the sandbox.")
    name: Name = key(..., "Name of the metric.")
    command: str | None = key(None, "The command.")
    verify_timeout: Positive = key(600.0, "Seconds for it.")


class RewardModelMetric(Model):
    """A reward model's score."""

    later: ClassVar[str] = "metrics of type reward_model"
    type: Literal["reward_model"] = key(..., "A reward model's score.")
    name: Name = key(..., "Name of the metric.")
    service: Name = key(..., "The reward model.")
    mode: Literal["single", "multi_aspect", "pairwise"] = key("single", "What it is asked.")
    aspect: str | None = key(None, "The aspect that counts.")
    score_range: tuple[Float, Float] = key((0.0, 1.0), "Worst and best score.")
    threshold: Float = key(0.5, "Score from which an answer counts as right.")
    timeout: Positive = key(120.0, "Seconds for one score.")
    max_retries: Whole = key(2, "Further tries for a score.")

    @model_validator(mode="after")
    def _a_range(self) -> RewardModelMetric:
        if self.score_range[0] >= self.score_range[1]:
            raise refusal("the worst score comes first", "score_range")
        return self


class CustomMetric(Model):
    """A metric of one's own class."""

    later: ClassVar[str] = "metrics of type custom"
    type: Literal["custom"] = key(..., "A metric of one's own class.")
    name: Name = key(..., "Name of the metric.")
    class_path: Name = key(..., "module:Class.")
    config: dict[str, Any] = key(dict, "Its settings.")


Metric = Annotated[
    ScorerMetric
    | JudgeMetric
    | PairwiseJudgeMetric
    | EnsembleJudgeMetric
    | SandboxMetric
    | RewardModelMetric
    | CustomMetric,
    Field(discriminator="type"),
]


class Scoring(Model):
    """Measurements beside, or instead of, the benchmark's own."""

    include_defaults: bool = key(True, "Keep the benchmark's own scorer.", later=True)
    metrics: list[Metric] = key(list, "Further metrics.")
    primary: str | None = key(None, "The metric that gives the reward; needed with more than one.", later=True)

    @model_validator(mode="after")
    def _names(self) -> Scoring:
        names = [metric.name for metric in self.metrics]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise refusal(f"a second metric with the name {name!r}", "metrics", index, "name")
        if self.primary is not None and names and self.primary not in names:
            raise refusal(f"{self.primary!r} is none of the metrics: {', '.join(names)}", "primary")
        if len(names) > 1 and self.primary is None:
            raise refusal(f"{len(names)} metrics need `primary`, the name of the one that gives the reward")
        return self
