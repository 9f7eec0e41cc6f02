"""`Metric`: one measurement of one answer, by a scorer, a judge, a reward model or code of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from nel.observability.records import AttemptRecord, MetricScore, Outcome, prompt_of
from nel.scoring.sample import ScorerInput


@dataclass(slots=True, kw_only=True)
class JudgedSample(ScorerInput):
    """One answer with what was asked, so that whoever grades it sees the question."""

    prompt: str = ""
    """The text that was asked: the last user turn."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    """The whole conversation as it was sent, the system prompt included."""
    repeat: int = 0
    """Which repeat of the problem the answer is."""
    earlier: MetricScore | None = None
    """What this metric said of this very answer before, where that was not complete: what is scored in it stands."""

    @classmethod
    def of(
        cls, attempt: AttemptRecord, response: str, expected: Any, *, earlier: MetricScore | None = None
    ) -> JudgedSample:
        """The sample that a stored attempt is."""
        prompt = prompt_of(attempt)
        return cls(
            response=response,
            target=expected,
            metadata=attempt.seed_metadata,
            model_response=attempt.model,
            prompt=prompt,
            messages=attempt.messages or [{"role": "user", "content": prompt}],
            repeat=attempt.repeat,
            earlier=earlier,
        )


@runtime_checkable
class Metric(Protocol):
    """Measures one answer; a class of one's own needs only these three."""

    name: str

    def identity(self) -> Mapping[str, Any]:
        """All that the score depends on beside the sample: code, versions, prompts, services, settings."""
        ...

    async def score(self, sample: JudgedSample) -> MetricScore:
        """The score, or why there is none: an outcome, a category and a reason. Raising means *error*."""
        ...


def not_scored(outcome: Outcome, category: str, reason: str, *, version: str = "", **details: Any) -> MetricScore:
    """A metric that has no value: its category (`nel.observability.failures`) and reason stand in the details."""
    return MetricScore(outcome=outcome, version=version, details={"category": category, "error": reason, **details})
