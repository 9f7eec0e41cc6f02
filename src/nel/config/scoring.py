"""`scoring`: measurements beside, or instead of, the benchmark's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from nel.config.base import Float, Model, Name, Positive, Temperature, Whole, key, refusal


class ScorerMetric(Model):
    """A scorer by name."""

    type: Literal["scorer"] = key(..., "A scorer by name.")
    name: Name = key(..., "Name of the metric, and of the built-in scorer unless `scorer` names it.")
    scorer: Name | None = key(None, "The built-in scorer, where the metric has another name.")
    params: dict[str, Any] = key(dict, "The scorer's own parameters, such as `letters` of `multichoice_regex`.")


class JudgeBase(Model):
    """What judges share."""

    name: Name = key(..., "Name of the metric.")
    system_prompt: str | None = key(None, "The judge's system prompt, instead of NEL's own; empty: none.")
    rubric: Name | None = key(None, "What the judge goes by, instead of NEL's own rubric.")
    rubric_file: Name | None = key(None, "File with the rubric, instead of `rubric`.")
    temperature: Temperature = key(0.0, "Sampling temperature of the judge.")
    timeout: Positive = key(120.0, "Seconds for one reply of the judge.")
    max_retries: Whole = key(2, "Further tries after a reply that cannot be read.")
    structured_output: bool = key(False, "Ask for JSON by a schema (`response_format`), where the endpoint has it.")
    allow_self_judge: bool = key(False, "Let a model grade its own answers.")

    @model_validator(mode="after")
    def _one_rubric(self) -> JudgeBase:
        if self.rubric and self.rubric_file:
            raise refusal("either `rubric` or `rubric_file`", "rubric_file")
        return self


class ScaledJudge(JudgeBase):
    """What judges share that give scores."""

    min_score: Float | None = key(None, "Worst score; by default 1, or 0 where the best is not above 1.")
    max_score: Positive = key(5.0, "Best score.")
    labels: dict[str, Float] | None = key(None, "What the judge may say, and what it is worth, instead of a number.")
    reference_free: bool = key(False, "Do not show the expected answer.")

    @property
    def worst(self) -> float:
        """The worst score."""
        if self.min_score is not None:
            return self.min_score
        return 1.0 if self.max_score > 1 else 0.0

    @model_validator(mode="after")
    def _a_scale(self) -> ScaledJudge:
        if self.labels is None:
            if self.worst >= self.max_score:
                raise refusal(f"{self.worst:g} is not below max_score, {self.max_score:g}", "min_score")
            return self
        for name in ("min_score", "max_score"):
            if name in self.model_fields_set:
                raise refusal("the labels say what the worst and the best score are", name)
        if len(set(self.labels.values())) < 2:
            raise refusal("needs labels that stand for different scores", "labels")
        if len({label.strip().casefold() for label in self.labels} - {""}) < len(self.labels):
            raise refusal("two labels differ only in case or spaces, or one is empty", "labels")
        return self


class JudgeMetric(ScaledJudge):
    """A model grades each answer."""

    type: Literal["judge"] = key(..., "A model grades each answer.")
    service: Name = key(..., "The judge.")
    swap_check: bool = key(False, "Ask in both orders of answer and expected answer, and average.")

    @model_validator(mode="after")
    def _something_to_swap(self) -> JudgeMetric:
        if self.swap_check and self.reference_free:
            raise refusal("there is nothing to swap with: `reference_free` hides the expected answer", "swap_check")
        return self


class PairwiseJudgeMetric(JudgeBase):
    """A model prefers one of two answers."""

    type: Literal["pairwise_judge"] = key(..., "A model prefers one of two answers.")
    judge_service: Name = key(..., "The judge.")
    baseline_service: Name | None = key(None, "Whose answers are compared with; by default the expected answers.")
    swap_check: bool = key(True, "Ask in both orders; verdicts that differ are a tie.")


class EnsembleJudgeMetric(ScaledJudge):
    """Several models grade each answer."""

    type: Literal["ensemble_judge"] = key(..., "Several models grade each answer.")
    services: Annotated[list[Name], Field(min_length=2)] = key(..., "The judges.")
    aggregation: Literal["mean", "median", "majority", "majority_vote"] = key(
        "mean", "What is made of their scores; `majority_vote` is `majority`."
    )

    @model_validator(mode="after")
    def _different(self) -> EnsembleJudgeMetric:
        for index, name in enumerate(self.services):
            if name in self.services[:index]:
                raise refusal(f"{name!r} is a judge already", "services", index)
        return self


class SandboxMetric(Model):
    """A command's exit code in the sandbox."""

    type: Literal["sandbox"] = key(..., "A command's exit code in the sandbox.")
    name: Name = key(..., "Name of the metric.")
    command: Name = key(..., "Shell command; the answer is in `answer.txt`, the sample as JSON on standard input.")
    verify_timeout: Positive = key(600.0, "Seconds for it; afterwards the answer is worth 0.")


class RewardModelMetric(Model):
    """A reward model's score."""

    type: Literal["reward_model"] = key(..., "A reward model's score.")
    name: Name = key(..., "Name of the metric.")
    service: Name = key(..., "The reward model.")
    mode: Literal["single", "multi_aspect", "pairwise"] = key("single", "What it is asked.")
    aspect: Name | None = key(None, "The aspect that counts, in mode `multi_aspect`.")
    score_range: tuple[Float, Float] = key((0.0, 1.0), "Worst and best score; one outside is no score.")
    threshold: Float | None = key(
        None, "Score from which an answer counts as right; without it the score itself is the value."
    )
    timeout: Positive = key(120.0, "Seconds for one score.")
    max_retries: Whole = key(2, "Further tries after a reply that cannot be read.")

    @model_validator(mode="after")
    def _a_range(self) -> RewardModelMetric:
        if self.score_range[0] >= self.score_range[1]:
            raise refusal("the worst score comes first", "score_range")
        if (self.mode == "multi_aspect") != (self.aspect is not None):
            raise refusal("goes with mode `multi_aspect`, which needs it", "aspect")
        if self.threshold is not None:
            if self.mode == "pairwise":
                raise refusal("mode `pairwise` compares two scores and has no threshold", "threshold")
            if not self.score_range[0] <= self.threshold <= self.score_range[1]:
                raise refusal("lies outside `score_range`", "threshold")
        return self


class CustomMetric(Model):
    """A metric of one's own class."""

    type: Literal["custom"] = key(..., "A metric of one's own class.")
    name: Name = key(..., "Name of the metric.")
    class_path: Name = key(..., "module:Class or file.py:Class; a scorer function will do too.")
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


DEFAULT = "default"
"""What the benchmark's own score is called among metrics."""


class Scoring(Model):
    """Measurements beside, or instead of, the benchmark's own."""

    include_defaults: bool = key(True, "Keep the benchmark's own scorer, as the metric `default`.")
    metrics: list[Metric] = key(list, "Further metrics.")
    primary: str | None = key(
        None, "The metric that gives the reward, or `default`; needed with more than one, else the one there is."
    )

    @model_validator(mode="after")
    def _names(self) -> Scoring:
        names = [metric.name for metric in self.metrics]
        for index, name in enumerate(names):
            if name == DEFAULT:
                raise refusal(f"{DEFAULT!r} is the benchmark's own score", "metrics", index, "name")
            if name in names[:index]:
                raise refusal(f"a second metric with the name {name!r}", "metrics", index, "name")
        if not names and not self.include_defaults:
            raise refusal("without `metrics` nothing would be measured", "include_defaults")
        known = [*names, DEFAULT] if self.include_defaults else names
        if self.primary is not None and self.primary not in known:
            raise refusal(f"{self.primary!r} is none of the metrics: {', '.join(known)}", "primary")
        if len(names) > 1 and self.primary is None:
            raise refusal(f"{len(names)} metrics need `primary`, the name of the one that gives the reward")
        return self

    @property
    def reward(self) -> str:
        """The metric that gives the reward."""
        return self.primary or (self.metrics[0].name if self.metrics else DEFAULT)
