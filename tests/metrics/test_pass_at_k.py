"""pass@k, pass^k, maj@k and mean@k against enumeration."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.metrics import majority
from nel.metrics.majority import estimate_maj_at_k, maj_at_k
from nel.metrics.mean import estimate_mean
from nel.metrics.passk import (
    estimate_mean_at_k,
    estimate_pass_at_k,
    estimate_pass_hat_k,
    pass_at_k,
    pass_hat_k,
)

quick = settings(deadline=None, max_examples=80)


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_answer(n: int) -> None:
    for c in range(n + 1):
        attempts = [1] * c + [0] * (n - c)
        for k in range(1, n + 1):
            subsets = list(combinations(attempts, k))
            assert pass_at_k(n, c, k) == pytest.approx(np.mean([any(s) for s in subsets]), abs=1e-12)
            assert pass_hat_k(n, c, k) == pytest.approx(np.mean([all(s) for s in subsets]), abs=1e-12)


@quick
@given(data=st.data(), n=st.integers(1, 3000))
def test_pass_at_k_is_exact_for_any_k_up_to_n(data: st.DataObject, n: int) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    exact = 1 - Fraction(math.comb(n - c, k), math.comb(n, k))
    assert pass_at_k(n, c, k) == pytest.approx(float(exact), rel=1e-9, abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(float(Fraction(math.comb(c, k), math.comb(n, k))), rel=1e-9)


def test_k_beyond_the_attempts_is_refused() -> None:
    for formula in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="k from 1 to 4 only"):
            formula(4, 2, 5)
        with pytest.raises(ValueError, match="k is 0"):
            formula(4, 2, 0)
        with pytest.raises(ValueError, match="5 right of 4"):
            formula(4, 5, 1)


def test_each_problem_counts_once_and_short_ones_are_counted_as_excluded() -> None:
    values, problems = [1, 0, 0, 1, 1, 1, 0], [5, 5, 5, 6, 6, 6, 7]
    estimate = estimate_pass_at_k(values, problems, 2, error=4)
    assert estimate.value == pytest.approx((pass_at_k(3, 1, 2) + pass_at_k(3, 3, 2)) / 2)
    assert (estimate.n, estimate.excluded, estimate.scored, estimate.error) == (2, 1, 7, 4)
    assert estimate.method == "t, clustered by problem"
    assert estimate_pass_hat_k(values, problems, 3).value == pytest.approx(0.5)
    assert estimate_mean_at_k(values, problems, 3).value == pytest.approx((1 / 3 + 1) / 2)


def test_pass_at_1_is_the_mean() -> None:
    rng = np.random.default_rng(5)
    values, problems = rng.integers(0, 2, 300), rng.integers(0, 60, 300)
    mean = estimate_mean(values, problems)
    for estimate in (
        estimate_pass_at_k(values, problems, 1),
        estimate_pass_hat_k(values, problems, 1),
        estimate_mean_at_k(values, problems, 1),
    ):
        assert estimate.value == pytest.approx(mean.value, rel=1e-12)
        assert (estimate.ci_lower, estimate.ci_upper) == pytest.approx((mean.ci_lower, mean.ci_upper), rel=1e-9)
        assert (estimate.method, estimate.n) == (mean.method, mean.n)


def test_the_best_of_all_attempts_is_right_or_wrong_and_gets_wilson() -> None:
    estimate = estimate_pass_at_k([1, 0, 0, 0, 1, 1], [1, 1, 2, 2, 3, 3], 2)
    assert estimate.value == pytest.approx(2 / 3)
    assert estimate.method == "wilson, clustered by problem"


def test_pass_at_k_honours_a_declared_cluster() -> None:
    values, problems = [1, 0, 0, 0, 1, 1, 0, 1, 1], [1, 1, 2, 2, 3, 3, 4, 4, 5]
    estimate = estimate_pass_at_k(
        values, problems, 2, clusters=["a", "a", "a", "a", "b", "b", "b", "b", "c"], cluster_by="repository"
    )
    assert estimate.method == "t, clustered by repository"
    assert (estimate.clusters, estimate.excluded) == (2, 1)


def test_when_no_problem_has_k_attempts_the_estimate_says_so() -> None:
    estimate = estimate_pass_at_k([1, 0], [1, 2], 8)
    assert (estimate.value, estimate.n, estimate.excluded) == (None, 0, 2)
    assert estimate.method == "none: no problem has enough scored attempts"


def test_rewards_between_right_and_wrong_need_a_threshold_first() -> None:
    with pytest.raises(ValueError, match="threshold"):
        estimate_pass_at_k([1, 0.5], [1, 1], 1)
    with pytest.raises(ValueError, match="at least 1"):
        estimate_mean_at_k([1, 0.5], [1, 1], 0)


def majority_by_enumeration(answers: list[str | None], rewards: list[float], k: int) -> float:
    worth = {a: np.mean([r for b, r in zip(answers, rewards, strict=True) if a == b]) for a in answers}
    total = []
    for subset in combinations(answers, k):
        votes = Counter(answer for answer in subset if answer is not None)
        most = max(votes.values(), default=0)
        total.append(np.mean([worth[a] for a, count in votes.items() if count == most]) if most else 0.0)
    return float(np.mean(total))


attempt = st.tuples(st.sampled_from(["a", "b", "c", "d", "e", None]), st.sampled_from([0.0, 0.3, 1.0]))


@quick
@given(rows=st.lists(attempt, min_size=1, max_size=9), data=st.data())
def test_a_majority_vote_is_the_mean_over_all_subsets(rows: list[tuple[str | None, float]], data) -> None:
    answers, rewards = [row[0] for row in rows], [row[1] for row in rows]
    k = data.draw(st.integers(1, len(rows)))
    assert maj_at_k(answers, rewards, k) == pytest.approx(majority_by_enumeration(answers, rewards, k), abs=1e-12)


def test_ties_are_split_and_silence_is_no_vote() -> None:
    assert maj_at_k(["7", "8"], [1, 0], 2) == 0.5
    assert maj_at_k(["7", None, None], [1, 0, 0], 3) == 1
    assert maj_at_k([None, None], [0, 0], 2) == 0
    assert maj_at_k([["A", "C"], ["A", "C"], "B"], [1, 1, 0], 3) == 1


def test_a_vote_too_large_to_count_out_is_sampled_close_by_and_reproducibly(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    answers = [str(answer) for answer in rng.integers(0, 9, 40)]
    rewards = [float(answer in {"3", "5"}) for answer in answers]
    exact = maj_at_k(answers, rewards, 12)
    monkeypatch.setattr(majority, "EXACT_LIMIT", 0)
    majority._vote.cache_clear()
    sampled = maj_at_k(answers, rewards, 12)
    majority._vote.cache_clear()
    assert maj_at_k(answers, rewards, 12) == sampled != exact
    assert sampled == pytest.approx(exact, abs=0.02)
    estimate = estimate_maj_at_k(answers * 2, rewards * 2, [1] * 40 + [2] * 40, 12)
    majority._vote.cache_clear()
    assert estimate.method.endswith("; votes of 2 problems from 10,000 sampled subsets each")


def test_a_majority_estimate_is_a_mean_over_problems() -> None:
    answers = ["7", "7", "8", "1", "2", "2", "9"]
    values = [1, 1, 0, 1, 0, 0, 1]
    problems = [1, 1, 1, 2, 2, 2, 3]
    estimate = estimate_maj_at_k(answers, values, problems, 3)
    assert estimate.value == 0.5
    assert (estimate.n, estimate.excluded) == (2, 1)
    assert estimate.method == "wilson, clustered by problem; exact votes"
    assert estimate_maj_at_k(answers, values, problems, 1).value == pytest.approx(estimate_mean(values, problems).value)
    with pytest.raises(ValueError, match="7 values but 1 answers"):
        estimate_maj_at_k(["7"], values, problems, 1)
    with pytest.raises(ValueError, match="1 answers but 2 rewards"):
        maj_at_k(["7"], [1, 0], 1)
    with pytest.raises(ValueError, match="k from 1 to 1"):
        maj_at_k(["7"], [1], 2)


@quick
@given(rows=st.lists(attempt, min_size=2, max_size=30), seed=st.integers(0, 9))
def test_the_order_of_attempts_changes_no_bit_of_a_vote(rows: list[tuple[str | None, float]], seed: int) -> None:
    place = np.random.default_rng(seed).permutation(len(rows)).tolist()
    problems = [at % 3 for at in range(len(rows))]

    def of(order: list[int]) -> object:
        return estimate_maj_at_k(
            [rows[at][0] for at in order], [rows[at][1] for at in order], [problems[at] for at in order], 2
        )

    assert of(place) == of(list(range(len(rows))))
