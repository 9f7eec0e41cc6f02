"""`EvalEnvironment`: a source of problems that can also grade answers.

The engine calls `prepare()` once, `seed(idx)` for each problem it is about to attempt, and `verify(...)` for each
answer. Environments never choose, count or aggregate: the evaluator owns the loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nel.observability.records import AttemptRecord, MetricScore, ModelResponse, Outcome
from nel.sandbox.base import SandboxSpec

if TYPE_CHECKING:
    from nel.environments.self_test import SelfTest


@dataclass(slots=True, kw_only=True)
class SeedResult:
    """One problem, ready to be attempted."""

    prompt: str
    expected_answer: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    """The row's own fields and what the environment adds. A solver reads only the keys that it declares."""
    messages: list[dict[str, Any]] | None = None
    """A whole conversation; without it the prompt is one user message."""
    system: str | None = None
    """The benchmark's system prompt; a solver's own replaces it."""
    images: list[str] | None = None
    """File paths, URLs or data URIs."""
    tools: list[dict[str, Any]] | None = None
    problem_id: str | None = None
    category: str | None = None
    """What `categories` in the bundle are broken down by."""
    cluster: str | None = None
    """Problems that share a passage, subject or repository are not independent: intervals honour this."""
    repeat: int = 0
    """Which repeat is asked; the engine sets it."""


@dataclass(slots=True, kw_only=True)
class VerifyResult:
    """What an answer is worth."""

    reward: float | None
    """The primary metric; None exactly when `outcome` is not scored."""
    extracted_answer: Any = None
    scoring_details: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.SCORED
    failure_category: str | None = None
    metrics: dict[str, MetricScore] = field(default_factory=dict)
    """Further metrics of the same answer by name."""
    scoring_method: str = ""


class EvalEnvironment(ABC):
    """Problems by index, and a verdict on each answer."""

    name: str = ""
    version: str = "1"
    """Raise it when `verify` changes what it returns for the same answer."""
    reward_bounds: tuple[float, float] | None = None
    """The range that every reward lies in; intervals of graded rewards are clipped to it."""
    cluster_by: str = "cluster"
    """What `SeedResult.cluster` is (`passage`, `subject`, ...), for the method that an interval names."""
    aggregates: Mapping[str, Sequence[str]] = {}
    """Scores of the whole benchmark that are no mean of the rewards: a name of `nel.metrics.aggregates`, and the
    metrics (`reward` is one) that it is made of."""
    generation: Mapping[str, Any] = {}
    """What the problems need to be sent (`max_tokens`, `logprobs`, ...), under the user's own parameters."""
    endpoint_type: str = "chat"
    """What the prompts are written for: `chat`, `completions`, or `loglikelihood` (text completions that decide by how
    likely each of `metadata["options"]` is); checked against the service before the first request."""

    may_need_judge: bool = False
    """Whether its verdicts may ask for a judge (`nel.scoring.needs_judge`); refused at planning where there is none."""
    verify_sandbox: SandboxSpec | None = None
    """What `verify` needs to run in, where it runs what a model wrote; the configuration may narrow it."""
    self_test: SelfTest | None = None
    """Rows and right replies that `nel validate --self-test` grades; the constructor then takes `dataset`."""

    async def prepare(self) -> None:
        """Load what `dataset_size` and `seed` need; called once, before either."""

    @abstractmethod
    async def dataset_size(self) -> int:
        """How many problems there are."""

    @abstractmethod
    async def seed(self, idx: int) -> SeedResult:
        """Problem `idx`, 0-based; the same for the same index, in any order of calls. `DataError` names the row."""

    @abstractmethod
    async def verify(
        self,
        response: str,
        expected: Any,
        sandbox: Any = None,
        *,
        metadata: Mapping[str, Any],
        model_response: ModelResponse | None = None,
    ) -> VerifyResult:
        """The verdict on one answer. Raising means *error* (scorer_error), never a score of 0."""

    async def verify_attempt(self, attempt: AttemptRecord, response: str, expected: Any) -> VerifyResult:
        """The verdict on a stored attempt: what the engine calls. By default `verify`; override it where a verdict
        needs what was asked as well."""
        return await self.verify(response, expected, None, metadata=attempt.seed_metadata, model_response=attempt.model)

    async def verify_again(
        self,
        attempt: AttemptRecord,
        response: str,
        expected: Any,
        earlier: Mapping[str, MetricScore],  # noqa: ARG002 - for environments that keep what was scored
    ) -> VerifyResult:
        """The verdict on an attempt that the same scorers measured before, but not completely: `earlier` has what they
        said, by metric. By default all is measured anew."""
        return await self.verify_attempt(attempt, response, expected)

    def sandbox_specs(self) -> list[SandboxSpec] | None:
        """Every kind of sandbox that the benchmark's problems and verdicts need; None where they need none."""
        return [self.verify_sandbox] if self.verify_sandbox is not None else None

    def scoring_identity(self) -> dict[str, Any]:
        """What `verify` depends on beside the answer and the expected one: scorer names, versions, code digests.

        It is part of every score's identity: when it changes, answers are graded again, without a request.
        """
        return {
            "environment": f"{type(self).__module__}:{type(self).__qualname__}",
            "version": getattr(self, "version", "1"),
        }

    def data_identity(self) -> dict[str, Any]:
        """What the problems were made from, for the bundle: `{source, revision?, sha256?, rows?, license?}`."""
        return {}

    def kept_files(self) -> dict[str, bytes]:
        """Files that the run keeps so that it can be scored again elsewhere: name to content (a user's own code)."""
        return {}

    async def close(self) -> None:
        """Release what `prepare` took."""
