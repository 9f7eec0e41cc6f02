"""`ArtifactCollector`: runtime statistics and failure report in one pass over a cell's attempts.

Between 24 and 32 bytes are kept an attempt, and the result does not depend on the order in which attempts are added.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from nel.observability.failure_report import Exemplar, FailureCategory, FailureReport
from nel.observability.records import ModelErrorInfo, Outcome, Timing
from nel.observability.runtime import CacheStats, RuntimeStats

_EXEMPLARS = 3
_MESSAGE = 500
_COST_UNIT = 1e12
"""Costs are summed as whole trillionths, so that their order does not matter."""


class ReplyLike(Protocol):
    """The numbers of a `ModelResponse`."""

    @property
    def finish_reason(self) -> str: ...  # noqa: D102
    @property
    def prompt_tokens(self) -> int: ...  # noqa: D102
    @property
    def completion_tokens(self) -> int: ...  # noqa: D102
    @property
    def reasoning_tokens(self) -> int: ...  # noqa: D102
    @property
    def cached_tokens(self) -> int: ...  # noqa: D102
    @property
    def latency_ms(self) -> float: ...  # noqa: D102
    @property
    def ttft_ms(self) -> float | None: ...  # noqa: D102
    @property
    def cost(self) -> float | None: ...  # noqa: D102
    @property
    def tries(self) -> int: ...  # noqa: D102
    @property
    def cached(self) -> bool: ...  # noqa: D102


class AttemptLike(Protocol):
    """An `AttemptRecord`, or a row with only these fields of one."""

    @property
    def problem_idx(self) -> int: ...  # noqa: D102
    @property
    def repeat(self) -> int: ...  # noqa: D102
    @property
    def timestamp(self) -> float: ...  # noqa: D102
    @property
    def timing(self) -> Timing: ...  # noqa: D102
    @property
    def model(self) -> ReplyLike | None: ...  # noqa: D102
    @property
    def model_error(self) -> ModelErrorInfo | None: ...  # noqa: D102
    @property
    def failure_category(self) -> str | None: ...  # noqa: D102
    @property
    def retries(self) -> int: ...  # noqa: D102


class ScoreLike(Protocol):
    """A `ScoreRecord`, or a row with only these fields of one."""

    @property
    def outcome(self) -> Outcome: ...  # noqa: D102
    @property
    def failure_category(self) -> str | None: ...  # noqa: D102
    @property
    def error(self) -> str | None: ...  # noqa: D102


@dataclass(slots=True)
class _Failures:
    """One category so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    exemplars: list[tuple[int, int, str]] = field(default_factory=list)


class ArtifactCollector:
    """Takes the attempts of a cell one by one and tells what they consumed and how they failed."""

    def __init__(self) -> None:
        self._starts = array("d")
        self._ends = array("d")
        self._latencies = array("d")
        self._ttfts = array("d")
        self._tokens: Counter[str] = Counter()
        self._finish_reasons: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._failures: dict[str, _Failures] = {}
        self._outcomes: Counter[Outcome] = Counter()
        self._model_errors = self._retries = self._tries = self._hits = self._misses = 0
        self._cost: int | None = None

    def add(self, attempt: AttemptLike, score: ScoreLike | None) -> None:
        """Count one attempt; without a score it was not measured, because the run was stopped before."""
        self._starts.append(attempt.timestamp)
        self._ends.append(attempt.timestamp + attempt.timing.total_ms / 1000)
        self._retries += attempt.retries
        if attempt.model is not None:
            self._add_reply(attempt.model)
        if attempt.model_error is not None:
            self._model_errors += 1
            self._tries += attempt.model_error.tries
            self._retries += max(0, attempt.model_error.tries - 1)
        self._add_failure(attempt, score)

    def _add_reply(self, reply: ReplyLike) -> None:
        self._tokens["prompt"] += reply.prompt_tokens
        self._tokens["completion"] += reply.completion_tokens
        self._tokens["reasoning"] += reply.reasoning_tokens
        self._tokens["cached"] += reply.cached_tokens
        if reply.finish_reason:
            self._finish_reasons[reply.finish_reason] += 1
        if reply.cost is not None:
            self._cost = (self._cost or 0) + round(reply.cost * _COST_UNIT)
        if reply.cached:
            self._hits += 1
            return
        self._misses += 1
        self._tokens["served"] += reply.prompt_tokens + reply.completion_tokens
        self._tries += reply.tries
        self._retries += max(0, reply.tries - 1)
        self._latencies.append(reply.latency_ms)
        if reply.ttft_ms is not None:
            self._ttfts.append(reply.ttft_ms)

    def _add_failure(self, attempt: AttemptLike, score: ScoreLike | None) -> None:
        outcome = score.outcome if score else Outcome.ERROR
        category = (score.failure_category if score else None) or attempt.failure_category
        message = score.error if score else None
        if attempt.model_error is not None:
            category = category or attempt.model_error.category
            message = message or attempt.model_error.message
        if category is None and outcome is not Outcome.SCORED:
            # Said by nobody: a scorer's error, or an answer that was never measured.
            category = "unscorable" if outcome is Outcome.UNSCORED else "scorer_error" if score else "interrupted"
        if category is None:
            return
        if outcome is Outcome.ERROR:
            self._errors[category] += 1
        self._outcomes[outcome] += 1
        failures = self._failures.setdefault(category, _Failures())
        failures.outcomes[outcome.value] += 1
        place = (attempt.problem_idx, attempt.repeat, (message or category)[:_MESSAGE])
        if len(failures.exemplars) < _EXEMPLARS or place < failures.exemplars[-1]:
            insort(failures.exemplars, place)
            del failures.exemplars[_EXEMPLARS:]

    def runtime_stats(self) -> RuntimeStats:
        """What the attempts added so far consumed."""
        elapsed = _covered(self._starts, self._ends)
        return RuntimeStats(
            total_steps=len(self._starts),
            total_tokens=self._tokens["prompt"] + self._tokens["completion"],
            total_prompt_tokens=self._tokens["prompt"],
            total_completion_tokens=self._tokens["completion"],
            total_reasoning_tokens=self._tokens["reasoning"],
            total_cached_tokens=self._tokens["cached"],
            elapsed_seconds=round(elapsed, 3),
            latency_percentiles_ms=_percentiles(self._latencies),
            ttft_percentiles_ms=_percentiles(self._ttfts),
            tokens_per_second=round(self._tokens["served"] / elapsed, 3) if elapsed > 0 else None,
            steps_per_second=round(len(self._starts) / elapsed, 3) if elapsed > 0 else None,
            model_errors=self._model_errors,
            errors_by_category=dict(sorted(self._errors.items())),
            total_retries=self._retries,
            total_tries=self._tries,
            finish_reason_counts=dict(sorted(self._finish_reasons.items())),
            cost=None if self._cost is None else self._cost / _COST_UNIT,
            cache=CacheStats(hits=self._hits, misses=self._misses),
        )

    def failure_report(self) -> FailureReport:
        """What went wrong in the attempts added so far."""
        steps = len(self._starts)
        total = self._outcomes.total()
        categories = sorted(self._failures.items(), key=lambda item: (-item[1].outcomes.total(), item[0]))
        return FailureReport(
            total_steps=steps,
            total_failures=total,
            failure_rate=total / steps if steps else 0.0,
            errors=self._outcomes[Outcome.ERROR],
            unscored=self._outcomes[Outcome.UNSCORED],
            flagged=self._outcomes[Outcome.SCORED],
            categories={
                name: FailureCategory(
                    count=found.outcomes.total(),
                    percentage=found.outcomes.total() / steps,
                    outcomes=dict(sorted(found.outcomes.items())),
                    exemplars=[
                        Exemplar(problem_idx=problem, repeat=repeat, error=error)
                        for problem, repeat, error in found.exemplars
                    ],
                )
                for name, found in categories
            },
        )


def _covered(starts: array[float], ends: array[float]) -> float:
    """Seconds in the union of the intervals."""
    import numpy as np

    if not starts:
        return 0.0
    begin, end = np.asarray(starts), np.asarray(ends)
    order = np.lexsort((end, begin))
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, begin[1:] > reach[:-1]))  # each starts a stretch without a gap
    last = np.append(first[1:] - 1, begin.size - 1)
    return float((reach[last] - begin[first]).sum())


def _percentiles(values: array[float]) -> dict[str, float]:
    """The 50th, 90th and 99th percentile, linearly interpolated between the values in order, to the microsecond."""
    import numpy as np

    if not values:
        return {}
    found = np.percentile(np.asarray(values), [50, 90, 99])
    return {name: round(float(value), 3) for name, value in zip(("p50", "p90", "p99"), found, strict=True)}
