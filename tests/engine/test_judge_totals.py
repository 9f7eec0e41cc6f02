"""What judges took is summed over a cell, whatever else stands in the details of metrics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nel.engine.judges import JudgeDetails, JudgeTotals
from nel.metrics.agreement import krippendorff_alpha

USAGE = {"requests": 2, "unreadable": 1, "prompt_tokens": 10, "completion_tokens": 4, "latency_ms": 30.0, "cost": 0.25}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1e9, 1e9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def test_counts_and_costs_are_summed_and_latency_is_that_of_a_reply_which_no_cache_gave():
    totals = JudgeTotals()
    totals.add("quality", JudgeDetails(judge_usage=USAGE))
    totals.add("quality", JudgeDetails(judge_usage={**USAGE, "cached": 1, "cost": None}))
    found = totals.usage()["quality"]
    assert (found["requests"], found["unreadable"], found["prompt_tokens"]) == (4, 2, 20)
    assert found["cost"] == pytest.approx(0.25)
    assert found["mean_latency_ms"] == pytest.approx(20.0)


def test_a_judge_that_could_not_be_read_leaves_a_gap_and_not_a_rating():
    totals = JudgeTotals()
    units = [{"a": 1.0, "b": 1.0}, {"a": 3.0}, {"b": 2.0, "a": 5.0}, {"b": 4.0, "a": 4.0}]
    for unit in units:
        totals.add("both", JudgeDetails(ratings={"verdict": unit}, level="interval"))
    found = totals.agreement()["both"]
    wanted = krippendorff_alpha([list(unit.values()) for unit in units], level="interval")
    assert found["krippendorff_alpha"] == pytest.approx(wanted)
    assert (found["judges"], found["ratings"]) == (["a", "b"], 4)


@given(JSON, JSON, st.sampled_from(["nominal", "interval", None]))
def test_details_of_a_metric_of_ones_own_may_be_called_the_same_and_be_anything(usage, ratings, level):
    totals = JudgeTotals()
    totals.add("mine", JudgeDetails(judge_usage=usage, ratings={"x": ratings}, level=level))
    totals.usage()
    totals.agreement()
