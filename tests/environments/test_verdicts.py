"""What a scorer may return, and what it means."""

import pytest

from nel.environments.base import VerifyResult
from nel.environments.verdict import ScorerResultError, verdict_of
from nel.observability.records import Outcome


@pytest.mark.parametrize(
    ("result", "reward"),
    [
        (True, 1.0),
        (False, 0.0),
        (0.25, 0.25),
        (3, 3.0),
        ({"correct": True, "reward": 0.1}, 1.0),
        ({"reward": 0.5, "f1": 0.75}, 0.5),
        ({"extracted": "x", "f1": 0.75, "bleu": 0.5}, 0.75),
        ({"score": 0, "note": "none"}, 0.0),
    ],
)
def test_the_reward_is_correct_else_reward_else_the_first_number(result, reward):
    verdict = verdict_of(result, "s", "1")
    assert verdict.reward == reward
    assert verdict.outcome is Outcome.SCORED


def test_other_numbers_are_metrics_and_the_rest_details():
    verdict = verdict_of(
        {"correct": False, "f1": 0.5, "exact": True, "extracted": "x", "method": "m", "rule": "last", "span": [0, 1]},
        "s",
        "7",
    )
    assert {name: (metric.value, metric.version) for name, metric in verdict.metrics.items()} == {
        "f1": (0.5, "7"),
        "exact": (1.0, "7"),
    }
    assert verdict.extracted_answer == "x"
    assert verdict.scoring_method == "m"
    assert verdict.scoring_details == {"rule": "last", "span": [0, 1]}


def test_a_scorer_may_decline_to_grade():
    verdict = verdict_of({"outcome": "unscored", "reason": "no judge", "tries": 2}, "s", "1")
    assert verdict.outcome is Outcome.UNSCORED
    assert verdict.reward is None
    assert verdict.failure_category == "unscorable"
    assert verdict.scoring_details == {"reason": "no judge"}


def test_a_verdict_is_taken_as_it_is():
    verdict = VerifyResult(reward=0.5)
    assert verdict_of(verdict, "s", "1") is verdict


@pytest.mark.parametrize(
    "result",
    [
        None,
        "yes",
        [1],
        {},
        {"extracted": "x"},
        {"correct": "yes"},
        {"correct": None},
        float("nan"),
        {"reward": float("inf")},
        {"correct": True, "f1": float("nan")},
        {"correct": True, "outcome": "error"},
    ],
)
def test_a_result_without_a_number_is_an_error_that_names_the_scorer(result):
    with pytest.raises(ScorerResultError, match="scorer my_scorer"):
        verdict_of(result, "my_scorer", "1")
