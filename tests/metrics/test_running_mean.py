"""The running mean follows the final estimate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.metrics.mean import estimate_mean
from nel.metrics.running import RunningMean

binary = st.sampled_from([0.0, 1.0])
graded = st.sampled_from([0.0, 0.25, 0.5, 1.0, 7.0])


@settings(deadline=None, max_examples=100)
@given(rows=st.one_of(*(st.lists(st.tuples(st.integers(0, 7), kind), max_size=40) for kind in (binary, graded))))
def test_at_every_moment_it_is_what_the_estimate_would_say(rows: list[tuple[int, float]]) -> None:
    running = RunningMean(8)
    for at, (problem, value) in enumerate(rows, 1):
        running.add(problem, value)
        final = estimate_mean([v for _, v in rows[:at]], [p for p, _ in rows[:at]], bounds=(-100, 100))
        if not {v for _, v in rows[:at]} - {0, 1}:
            final = estimate_mean([v for _, v in rows[:at]], [p for p, _ in rows[:at]])
        assert running.mean == pytest.approx(final.value, abs=1e-9)
        if final.method.startswith("wilson, ") or final.method == "wilson":
            assert running.interval() == pytest.approx((final.ci_lower, final.ci_upper), abs=1e-9)
        elif final.stderr is None:
            assert running.interval() is None
        elif final.ci_lower > 0 and final.ci_upper < 1:  # the running interval is not clipped
            assert running.interval() == pytest.approx((final.ci_lower, final.ci_upper), abs=1e-7)


def test_before_the_first_score_there_is_nothing_to_show() -> None:
    running = RunningMean(3)
    assert running.mean is None
    assert running.interval() is None


def test_repeats_of_one_problem_are_not_more_evidence() -> None:
    once, often = RunningMean(2), RunningMean(2)
    for problem, value in ((0, 1.0), (1, 0.0)):
        once.add(problem, value)
        for _ in range(10):
            often.add(problem, value)
    assert often.interval() == once.interval()
    assert often.mean == once.mean == 0.5
