"""Runtime statistics and failure reports derived from attempts."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.observability.collector import ArtifactCollector
from nel.observability.failure_report import FailureReport
from nel.observability.failures import CATEGORIES
from nel.observability.records import (
    AttemptRecord,
    ModelErrorInfo,
    ModelResponse,
    Outcome,
    ScoreRecord,
    Timing,
)
from nel.observability.runtime import RuntimeStats

Pair = tuple[AttemptRecord, ScoreRecord | None]


def attempt(problem: int, *, start: float = 0.0, total_ms: float = 1000.0, **fields: object) -> AttemptRecord:
    return AttemptRecord(
        attempt=f"{problem:x}",
        content="c",
        problem_idx=problem,
        timestamp=start,
        timing=Timing(total_ms=total_ms),
        **fields,
    )


def score(problem: int, reward: float | None = 1.0, **fields: object) -> ScoreRecord:
    return ScoreRecord(attempt=f"{problem:x}", score="s", problem_idx=problem, reward=reward, **fields)


def collect(pairs: list[Pair]) -> ArtifactCollector:
    collector = ArtifactCollector()
    for one, two in pairs:
        collector.add(one, two)
    return collector


def files(pairs: list[Pair]) -> bytes:
    collector = collect(pairs)
    return collector.runtime_stats().to_json() + collector.failure_report().to_json()


def reply(**fields: object) -> ModelResponse:
    return ModelResponse(
        **{"content": "a", "finish_reason": "stop", "prompt_tokens": 10, "completion_tokens": 5, **fields}
    )


def test_elapsed_time_is_when_anything_was_in_progress() -> None:
    stats = collect(
        [
            (attempt(0, start=100, total_ms=4000), score(0)),
            (attempt(1, start=102, total_ms=5000), score(1)),  # overlaps the first: 100 to 107
            (attempt(2, start=103, total_ms=500), score(2)),  # within
            (attempt(3, start=9000, total_ms=2000), score(3)),  # the run was resumed much later
        ]
    ).runtime_stats()
    assert stats.elapsed_seconds == 9.0
    assert stats.steps_per_second == round(4 / 9, 3)


@settings(deadline=None, max_examples=60)
@given(spans=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=20))
def test_elapsed_time_is_the_length_of_a_union(spans: list[tuple[int, int]]) -> None:
    pairs: list[Pair] = [(attempt(at, start=s, total_ms=1000 * d), score(at)) for at, (s, d) in enumerate(spans)]
    covered = {second for start, length in spans for second in range(start, start + length)}
    stats = collect(pairs).runtime_stats()
    assert stats.elapsed_seconds == len(covered)
    assert (stats.steps_per_second is None) == (not covered)


@settings(deadline=None, max_examples=40)
@given(latencies=st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_percentiles_are_numpys(latencies: list[float]) -> None:
    stats = collect(
        [(attempt(at, model=reply(latency_ms=ms, ttft_ms=ms / 2)), score(at)) for at, ms in enumerate(latencies)]
    ).runtime_stats()
    for name, q in (("p50", 50), ("p90", 90), ("p99", 99)):
        assert stats.latency_percentiles_ms[name] == round(float(np.percentile(latencies, q)), 3)
        assert stats.ttft_percentiles_ms[name] == round(float(np.percentile(np.array(latencies) / 2, q)), 3)


def test_tokens_cost_tries_and_finish_reasons_add_up() -> None:
    stats = collect(
        [
            (attempt(0, model=reply(cost=0.1, tries=3, reasoning_tokens=2, cached_tokens=4), retries=1), score(0)),
            (attempt(1, model=reply(cost=0.2, finish_reason="length")), score(1)),
            (attempt(2, model=reply(cached=True, latency_ms=9e9, tries=7)), score(2)),
            (
                attempt(3, model_error=ModelErrorInfo(category="rate_limit", message="429", tries=4)),
                score(3, None, outcome=Outcome.ERROR, failure_category="rate_limit"),
            ),
        ]
    ).runtime_stats()
    assert (stats.total_steps, stats.model_errors) == (4, 1)
    assert (stats.total_prompt_tokens, stats.total_completion_tokens, stats.total_tokens) == (30, 15, 45)
    assert (stats.total_reasoning_tokens, stats.total_cached_tokens) == (2, 4)
    assert stats.tokens_per_second == 30  # the service's, in one second: a cached reply costs no time
    assert stats.total_tries == 3 + 1 + 4
    assert stats.total_retries == 1 + 2 + 3
    assert stats.finish_reason_counts == {"length": 1, "stop": 2}
    assert stats.errors_by_category == {"rate_limit": 1}
    assert stats.cost == 0.3
    assert (stats.cache.hits, stats.cache.misses) == (1, 2)
    assert stats.latency_percentiles_ms["p99"] < 1e6


def test_what_was_never_known_is_null_and_not_zero() -> None:
    stats = collect([]).runtime_stats()
    assert (stats.cost, stats.tokens_per_second, stats.latency_percentiles_ms) == (None, None, {})
    assert collect([]).failure_report().failure_rate == 0
    fields = stats.to_dict()
    assert set(RuntimeStats.__struct_fields__) <= set(fields)
    assert RuntimeStats.from_dict(fields) == stats


def test_a_report_tells_not_measured_from_not_graded_from_worth_a_look() -> None:
    report = collect(
        [
            (attempt(0), score(0)),
            (attempt(1, failure_category="truncated"), score(1, 0.0)),
            (attempt(2), score(2, 1.0, failure_category="truncated")),
            (attempt(3), score(3, None, outcome=Outcome.UNSCORED, failure_category="judge_unparsable")),
            (
                attempt(4, model_error=ModelErrorInfo(category="model_timeout", message="no answer in 120 s")),
                score(4, None, outcome=Outcome.ERROR),
            ),
            (attempt(5), score(5, None, outcome=Outcome.ERROR, error="KeyError: 'answer'")),
            (attempt(6), score(6, None, outcome=Outcome.UNSCORED)),
            (attempt(7), None),
        ]
    ).failure_report()
    assert (report.total_steps, report.total_failures, report.failure_rate) == (8, 7, 7 / 8)
    assert (report.errors, report.unscored, report.flagged) == (3, 2, 2)
    assert list(report.categories) == [
        "truncated", "interrupted", "judge_unparsable", "model_timeout", "scorer_error", "unscorable"
    ]  # fmt: skip
    assert set(report.categories) <= set(CATEGORIES)
    assert report.categories["truncated"].outcomes == {"scored": 2}
    assert report.categories["truncated"].percentage == 0.25
    assert report.categories["model_timeout"].exemplars[0].error == "no answer in 120 s"
    assert report.categories["scorer_error"].exemplars[0].error == "KeyError: 'answer'"
    assert report.categories["interrupted"].exemplars[0].error == "interrupted"
    assert FailureReport.from_json(report.to_json()) == report


def test_three_short_examples_a_category_the_first_by_problem() -> None:
    pairs: list[Pair] = [
        (
            attempt(at, repeat=1),
            score(at, None, outcome=Outcome.ERROR, failure_category="solver_error", error="x" * 900),
        )
        for at in (9, 4, 7, 1, 8)
    ]
    found = collect(pairs).failure_report().categories["solver_error"]
    assert [(e.problem_idx, e.repeat) for e in found.exemplars] == [(1, 1), (4, 1), (7, 1)]
    assert {len(e.error) for e in found.exemplars} == {500}
    assert found.count == 5


@pytest.mark.parametrize("seed", range(5))
def test_derived_again_in_another_order_gives_the_same_bytes(seed: int) -> None:
    rng = random.Random(7)
    pairs: list[Pair] = []
    for at in range(200):
        kind = rng.choice(["scored", "error", "unscored", "missing"])
        model = reply(latency_ms=rng.random() * 1e4, cost=rng.random() / 1000, ttft_ms=rng.random())
        one = attempt(at % 70, repeat=at // 70, start=rng.random() * 50, total_ms=rng.random() * 900, model=model)
        two = score(at % 70, None if kind != "scored" else 1.0, outcome=Outcome(kind)) if kind != "missing" else None
        pairs.append((one, two))
    assert files(random.Random(seed).sample(pairs, len(pairs))) == files(pairs)
