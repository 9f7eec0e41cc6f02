"""The two lines that an attempt leaves, and `StepRecord`, their join.

`trajectories.jsonl` holds one `AttemptRecord` an attempt (what was asked, what came back), `results.jsonl` one
`ScoreRecord` a measurement (what it was worth). Everything else in a run is derived from these two logs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from nel.core.contract import Record


class Outcome(StrEnum):
    """How an attempt ended; only `SCORED` attempts enter a mean."""

    SCORED = "scored"
    """Asked, answered and graded."""
    UNSCORED = "unscored"
    """Asked and answered, but it could not be graded (a judge that cannot be parsed). Measured again on resume."""
    ERROR = "error"
    """Not measured: timeout, rate limit, sandbox, scorer bug. Attempted (or, after an answer, measured) again."""


class OptionLikelihood(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How likely a model finds one option of a problem as the continuation of its prompt; natural logarithms."""

    sum: float
    """Log-likelihood of all the option's tokens."""
    per_byte: float
    """The same over the bytes (UTF-8) of the option's text, without the space around it."""
    tokens: int
    greedy: bool | None = None
    """Whether every token was the likeliest one; None where the server did not say."""


class ModelResponse(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One choice of one model reply, the same for every protocol."""

    content: str = ""
    """The answer's text; never the reasoning."""
    model: str = ""
    """The name that the server reports."""
    finish_reason: str = ""
    """`stop`, `length`, `tool_calls`, `content_filter`, or what the server said."""
    prompt_tokens: int = 0
    """Counted once when several choices came from one request: on the first choice."""
    completion_tokens: int = 0
    """Includes the reasoning tokens."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    latency_ms: float = 0.0
    """From sending the request that succeeded to its last byte."""
    ttft_ms: float | None = None
    """Time to first token, when streamed."""
    reasoning_content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    """As the chat protocol gives them: `{id, type, function: {name, arguments}}`."""
    logprobs: list[dict[str, Any]] | None = None
    """A list of `{token, logprob, top_logprobs: [{token, logprob}]}`, whatever the protocol's own shape."""
    loglikelihoods: list[OptionLikelihood] | None = None
    """One for each option of the problem, where options are decided by their log-likelihood; `content` then is the
    likeliest."""
    request_hash: str = ""
    """Hex digest of the body that was sent."""
    response_hash: str = ""
    cost: float | None = None
    """In the currency of the price table, when the service has one."""
    tries: int = 1
    cached: bool = False
    """Taken from the response cache."""
    replica: str | None = None
    """Which of a service's URLs answered, when it has several."""
    raw_response: dict[str, Any] | None = None
    """The whole reply, where it was asked for."""

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion."""
        return self.prompt_tokens + self.completion_tokens


class ModelErrorInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why an attempt has no answer."""

    category: str
    message: str
    status: int | None = None
    permanent: bool = False
    tries: int = 1


class Timing(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Wall time of an attempt's parts, in milliseconds."""

    seed_ms: float = 0.0
    model_ms: float = 0.0
    verify_ms: float = 0.0
    total_ms: float = 0.0


class AttemptRecord(Record, tag="nel.attempt/1", kw_only=True):
    """One line of `trajectories.jsonl`: what was asked and what came back; no expected answer, no score."""

    attempt: str
    """Hex identity: the digest of everything that produced the answer (`nel.engine.identity`)."""
    content: str
    """Hex digest of the problem as the solver reads it, without repeat and occurrence."""
    occurrence: int = 0
    """Tells equal problems of one plan apart."""
    problem_idx: int
    """The row's present place in the data: a label, no identity."""
    repeat: int = 0
    step_id: str = ""
    problem_id: str | None = None
    timestamp: float = 0.0
    """Unix seconds at the start of the attempt."""
    prompt: str | None = None
    """The rendered prompt where it is not the last user message of `messages`."""
    messages: list[dict[str, Any]] | None = None
    """What was really sent, the system prompt included."""
    response: str | None = None
    """The answer that is graded, where it is not `model.content`."""
    request: dict[str, Any] | None = None
    """Generation parameters and options as sent, without the messages."""
    seed_metadata: dict[str, Any] = {}
    timing: Timing = msgspec.field(default_factory=Timing)
    model: ModelResponse | None = None
    model_error: ModelErrorInfo | None = None
    failure_category: str | None = None
    retries: int = 0
    """System retries by the pool; HTTP tries are in `model.tries`."""
    trajectory: list[dict[str, Any]] | None = None
    """ATIF documents of a solver that takes several steps; a single turn is `messages` and `model`."""
    solver_reward: float | None = None
    """A verdict that came with the answer; used only where the benchmark trusts it."""
    solver_details: dict[str, Any] = {}
    blobs: dict[str, str] = {}
    """Long texts that stand in `blobs/`: from their place in this record to their digest."""
    run_id: str = ""
    host: str = ""


class MetricScore(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One metric of one attempt, with its own outcome and version."""

    value: float | None = None
    outcome: Outcome = Outcome.SCORED
    version: str = ""
    details: dict[str, Any] = {}


class ScoreRecord(Record, tag="nel.score/1", kw_only=True):
    """One line of `results.jsonl`: one measurement of one attempt."""

    attempt: str
    score: str
    """Hex identity: the attempt, the expected answer, extraction and scorers with their versions."""
    basis: str = ""
    """Hex digest of solver and scorers: tells the lines of the present plan from those of an earlier one."""
    problem_idx: int
    repeat: int = 0
    problem_id: str | None = None
    outcome: Outcome = Outcome.SCORED
    reward: float | None = None
    """Null unless scored."""
    scorer_rewards: dict[str, MetricScore] = {}
    """Every metric of the attempt by name; the primary one is `reward`."""
    extracted_answer: Any = None
    expected_answer: Any = None
    scoring_method: str = ""
    scoring_details: dict[str, Any] = {}
    scoring_metadata: dict[str, Any] = {}
    category: str | None = None
    cluster: str | None = None
    failure_category: str | None = None
    """Why an attempt is an error or unscored, or what kind of failure a scored one is (e.g. `truncated`)."""
    error: str | None = None
    tokens: int = 0
    latency_ms: float = 0.0
    verify_ms: float = 0.0
    run_id: str = ""


class StepRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One attempt as a whole: the join of its two lines, in the field names of NeMo Evaluator."""

    step_id: str
    problem_idx: int
    repeat: int
    prompt: str
    expected_answer: Any
    outcome: Outcome
    reward: float | None
    extracted_answer: Any = None
    scoring_method: str = ""
    scoring_details: dict[str, Any] = {}
    seed_metadata: dict[str, Any] = {}
    model_response: ModelResponse | None = None
    model_error: ModelErrorInfo | None = None
    seed_ms: float = 0.0
    model_ms: float = 0.0
    verify_ms: float = 0.0
    failure_category: str | None = None
    retries: int = 0
    messages: list[dict[str, Any]] | None = None
    trajectory: list[dict[str, Any]] | None = None

    @classmethod
    def join(cls, attempt: AttemptRecord, score: ScoreRecord | None) -> StepRecord:
        """The step that the two lines of one attempt describe; without a score it is an error."""
        return cls(
            step_id=attempt.step_id,
            problem_idx=attempt.problem_idx,
            repeat=attempt.repeat,
            prompt=prompt_of(attempt),
            expected_answer=score.expected_answer if score else None,
            outcome=score.outcome if score else Outcome.ERROR,
            reward=score.reward if score else None,
            extracted_answer=score.extracted_answer if score else None,
            scoring_method=score.scoring_method if score else "",
            scoring_details=score.scoring_details if score else {},
            seed_metadata=attempt.seed_metadata,
            model_response=attempt.model,
            model_error=attempt.model_error,
            seed_ms=attempt.timing.seed_ms,
            model_ms=attempt.timing.model_ms,
            verify_ms=score.verify_ms if score else 0.0,
            failure_category=(score.failure_category if score else None) or attempt.failure_category,
            retries=attempt.retries,
            messages=attempt.messages,
            trajectory=attempt.trajectory,
        )


def prompt_of(attempt: AttemptRecord) -> str:
    """The text that was asked: the stored prompt, else the text of the last user message."""
    if attempt.prompt is not None:
        return attempt.prompt
    for message in reversed(attempt.messages or []):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else []
            return "".join(part.get("text", "") for part in parts if isinstance(part, dict))
    return ""
