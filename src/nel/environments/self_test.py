"""`SelfTest`: how a benchmark shows, without a model and without a network, that it grades as it should."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nel.core.errors import UsageError
from nel.environments.base import SeedResult
from nel.observability.records import ModelResponse, OptionLikelihood

MIN_ROWS = 4
"""With fewer rows a shuffled answer is right too often by chance."""


def preferred(problem: SeedResult, reply: str) -> ModelResponse:
    """The response of a model that finds `reply` the likeliest of the problem's `options`: for `model_response`."""
    options = problem.metadata["options"]
    sums = [-1.0 if option.strip() == reply.strip() else -1000.0 for option in options]
    found = [
        OptionLikelihood(sum=value, per_byte=value / len(option), tokens=1)
        for value, option in zip(sums, options, strict=True)
    ]
    return ModelResponse(content=reply, loglikelihoods=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """Rows, and the replies that a right model (and a right judge) would give to them.

    The gold replies must each be scored 1, empty replies never above 0, and the replies of other rows must have a mean
    of at most `chance`. `UsageError` where the rows are too few to tell.
    """

    rows: Sequence[Mapping[str, Any]] | str
    """Rows as the data set itself gives them, or the path of a JSONL file, from the folder of the defining file."""
    answer: Callable[[SeedResult], str]
    """The reply of a right model to a problem, whose `expected_answer` and `metadata` it sees."""
    chance: float = 0.0
    """The mean reward that the replies of other rows may have, 0 to below 1."""
    judge: Callable[[str], str] | None = None
    """A right judge's reply to the text that judges are sent, where the benchmark needs a judge."""
    model_response: Callable[[SeedResult, str], ModelResponse] | None = None
    """The whole model response that stands for a reply, where the text alone does not decide (log-probabilities)."""
    params: Sequence[Mapping[str, Any]] = ({},)
    """The `params` to test the benchmark with, each in turn."""

    def __post_init__(self) -> None:
        if not isinstance(self.rows, str) and len(self.rows) < MIN_ROWS:
            raise UsageError(f"a self-test has {len(self.rows)} rows; at least {MIN_ROWS} are needed")
        if not 0 <= self.chance < 1:
            raise UsageError(f"a self-test has chance={self.chance}; it is the mean reward of wrong replies, below 1")
        if not self.params:
            raise UsageError("a self-test has no params; `({},)` are the benchmark's own settings")
