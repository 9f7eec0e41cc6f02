"""What an estimate of a mean promises."""

from __future__ import annotations

import math
import random
import time

import msgspec
import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nel.metrics.estimate import Estimate
from nel.metrics.intervals import wilson_interval
from nel.metrics.mean import category_breakdown, estimate_mean

quick = settings(deadline=None, max_examples=80)
rewards = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-1000, 1000))
attempts = st.lists(st.tuples(rewards, st.integers(0, 8)), min_size=1, max_size=40)
binary_attempts = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 8)), min_size=1, max_size=40)


def interval(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.ci_lower, estimate.ci_upper


def close(left: Estimate, right: Estimate) -> bool:
    pairs = [(left.value, right.value), (left.stderr, right.stderr), *zip(interval(left), interval(right), strict=True)]
    return all((a is None and b is None) or a == pytest.approx(b, rel=1e-9, abs=1e-9) for a, b in pairs)


def test_the_value_is_the_mean_over_problems_however_often_each_was_asked() -> None:
    # Problem 1: two of four right; problem 2: one of one; problem 3: none of two.
    estimate = estimate_mean([1, 1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 2, 3, 3], unscored=2, error=5)
    assert estimate.value == 0.5
    assert (estimate.n, estimate.scored, estimate.unscored, estimate.error) == (3, 7, 2, 5)
    assert estimate.method == "t, clustered by problem"
    assert interval(estimate) == (0, 1)


def test_one_right_or_wrong_answer_a_problem_gets_wilson() -> None:
    estimate = estimate_mean([1] * 30 + [0] * 10, range(40))
    assert interval(estimate) == wilson_interval(30, 40)
    assert estimate.method == "wilson"
    assert estimate.stderr == pytest.approx(scipy.stats.sem([1] * 30 + [0] * 10))


def test_repeats_that_always_agree_change_nothing() -> None:
    once = estimate_mean([1, 0, 1, 1], [0, 1, 2, 3])
    thrice = estimate_mean([1, 0, 1, 1] * 3, [0, 1, 2, 3] * 3)
    assert interval(thrice) == interval(once)
    assert thrice.method == "wilson, clustered by problem"
    assert (thrice.n, thrice.scored) == (4, 12)


@quick
@given(values=st.lists(st.floats(0.01, 0.99), min_size=2, max_size=30), level=st.sampled_from([0.8, 0.95]))
def test_other_rewards_get_a_t_interval_on_problem_means(values: list[float], level: float) -> None:
    assume(np.ptp(values) > 1e-6)
    estimate = estimate_mean(values, range(len(values)), level=level)
    oracle = scipy.stats.t.interval(level, len(values) - 1, np.mean(values), scipy.stats.sem(values))
    assert interval(estimate) == pytest.approx(oracle, rel=1e-9, abs=1e-9)
    assert estimate.method == "t"


@quick
@given(rows=attempts)
def test_clusters_agree_with_statsmodels(rows: list[tuple[float, int]]) -> None:
    problems = np.array([row[1] for row in rows])
    passages = problems % 3
    means = [np.mean([v for v, p in rows if p == problem]) for problem in np.unique(problems)]
    groups = np.unique(problems) % 3
    estimate = estimate_mean(
        [row[0] for row in rows], problems, clusters=[f"p{x}" for x in passages], cluster_by="passage"
    )
    assert estimate.clusters == np.unique(groups).size
    if estimate.stderr is None or estimate.clusters == estimate.n:
        return
    fit = sm.OLS(means, np.ones(len(means))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert estimate.stderr == pytest.approx(float(fit.bse[0]), rel=1e-7, abs=1e-9)
    if estimate.method.startswith("t"):
        assert estimate.method == "t, clustered by passage"
        bounded = np.clip(fit.conf_int()[0], 0, 1) if set(means) <= {0, 1} else fit.conf_int()[0]
        if not all(value in {0, 1} for value, _ in rows):
            assert interval(estimate) == pytest.approx(tuple(bounded), rel=1e-7, abs=1e-9)


def test_a_shared_passage_widens_the_interval() -> None:
    values = np.repeat([1.0, 0, 1, 1, 0, 0, 1, 0], 5)
    alone = estimate_mean(values, range(40))
    shared = estimate_mean(values, range(40), clusters=np.repeat(np.arange(8), 5), cluster_by="passage")
    assert shared.ci_upper - shared.ci_lower > 2 * (alone.ci_upper - alone.ci_lower)
    assert shared.method == "t, clustered by passage"
    assert (shared.clusters, alone.clusters) == (8, None)


def test_a_problem_without_a_cluster_stands_alone() -> None:
    values = [0.1, 0.5, 0.9, 0.3, 0.4]
    named = estimate_mean(values, range(5), clusters=["a", "a", None, "b", None])
    coded = estimate_mean(values, range(5), clusters=np.array([4, 4, -1, 7, -1]))
    assert named == coded
    assert named.clusters == 4


@quick
@given(rows=attempts)
def test_clusters_of_one_problem_each_are_no_clusters(rows: list[tuple[float, int]]) -> None:
    values, problems = [row[0] for row in rows], [row[1] for row in rows]
    plain = estimate_mean(values, problems)
    named = estimate_mean(values, problems, clusters=[f"c{p}" for p in problems])
    assert msgspec.structs.replace(named, clusters=None) == plain


@quick
@given(rows=attempts, seed=st.integers(0, 99), clustered=st.booleans())
def test_the_order_of_attempts_changes_no_bit(rows: list[tuple[float, int]], seed: int, clustered: bool) -> None:
    shuffled = random.Random(seed).sample(rows, len(rows))

    def of(rows: list[tuple[float, int]]) -> bytes:
        clusters = [f"c{p // 3}" for _, p in rows] if clustered else None
        return msgspec.json.encode(estimate_mean([v for v, _ in rows], [p for _, p in rows], clusters=clusters))

    assert of(shuffled) == of(rows)


@quick
@given(rows=st.one_of(attempts, binary_attempts), copies=st.integers(2, 4))
def test_copies_of_every_attempt_do_not_narrow_the_interval(rows: list[tuple[float, int]], copies: int) -> None:
    values, problems = [row[0] for row in rows], [row[1] for row in rows]
    assert close(estimate_mean(values, problems), estimate_mean(values * copies, problems * copies))


@quick
@given(rows=st.one_of(attempts, binary_attempts))
def test_more_problems_of_the_same_kind_narrow_the_interval(rows: list[tuple[float, int]]) -> None:
    values, problems = [row[0] for row in rows], [row[1] for row in rows]
    once = estimate_mean(values, problems)
    twice = estimate_mean(values * 2, problems + [p + 100 for p in problems])
    assume(once.ci_lower is not None)
    assert twice.value == pytest.approx(once.value, rel=1e-9, abs=1e-9)
    assert twice.ci_upper - twice.ci_lower < once.ci_upper - once.ci_lower + 1e-12


@quick
@given(rows=st.one_of(attempts, binary_attempts), clustered=st.booleans())
def test_an_interval_holds_its_value_and_json_holds_the_estimate(
    rows: list[tuple[float, int]], clustered: bool
) -> None:
    values, problems = [row[0] for row in rows], [row[1] for row in rows]
    clusters = [f"c{p // 2}" for p in problems] if clustered else None
    estimate = estimate_mean(values, problems, clusters=clusters, bounds=(-1000, 1000))
    assert msgspec.json.decode(msgspec.json.encode(estimate), type=Estimate) == estimate
    if estimate.ci_lower is not None:
        assert -1000 <= estimate.ci_lower <= estimate.value + 1e-9
        assert estimate.value - 1e-9 <= estimate.ci_upper <= 1000
        assert estimate.ci_lower < estimate.ci_upper
    else:
        assert estimate.method.startswith("none: ")


@pytest.mark.parametrize(
    ("values", "problems", "clusters", "reason"),
    [
        ([], [], None, "none: no scored attempt"),
        ([1, 0, 1], [4, 4, 4], None, "none: one problem"),
        ([0.2, 0.4], [1, 2], ["a", "a"], "none: all problems in one passage"),
        ([0.7, 0.7, 0.7], [1, 2, 3], None, "none: every problem has the same mean and no bounds are declared"),
        ([7, 3, 7, 3], [1, 2, 3, 4], list("aabb"), "none: every passage has the same mean and no bounds are declared"),
    ],
)
def test_where_there_is_no_interval_the_method_says_why(
    values: list[float], problems: list[int], clusters: list[str] | None, reason: str
) -> None:
    estimate = estimate_mean(values, problems, clusters=clusters, cluster_by="passage")
    assert interval(estimate) == (None, None)
    assert estimate.stderr is None
    assert estimate.method == reason
    assert estimate.value == (pytest.approx(np.mean(values)) if values else None)


def test_rewards_that_are_all_equal_are_not_certain() -> None:
    estimate = estimate_mean([0.6] * 20, range(20), bounds=(0, 1))
    unseen = wilson_interval(0, 20)[1]
    assert interval(estimate) == pytest.approx((0.6 - 0.6 * unseen, 0.6 + 0.4 * unseen))
    assert estimate.method == "wilson bound, every problem has the same mean"
    assert estimate.stderr is None


def test_all_right_in_every_passage_is_as_sure_as_that_many_passages() -> None:
    estimate = estimate_mean([1] * 12, range(12), clusters=[at // 3 for at in range(12)], cluster_by="passage")
    assert interval(estimate) == pytest.approx(wilson_interval(4, 4))
    assert estimate.method == "wilson bound, every passage has the same mean"


def test_an_interval_is_clipped_only_to_declared_bounds() -> None:
    values = [0.9, 1.0, 0.95, 0.2]
    assert estimate_mean(values, range(4)).ci_upper > 1
    assert estimate_mean(values, range(4), bounds=(0, 1)).ci_upper == 1
    assert estimate_mean([1, 0, 1, 1], range(4), bounds=(0, 5)).method == "t"
    assert estimate_mean([1, 0, 1, 1], range(4), bounds=(0, 1)).method == "wilson"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200])
def test_a_number_that_is_not_finite_is_refused_by_place(bad: float) -> None:
    with pytest.raises(ValueError, match="value 2 is"):
        estimate_mean([0, 1, bad], [1, 2, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimate_mean([1, 0], [1]), "2 values but 1 problem ids"),
        (lambda: estimate_mean([1, 0], ["a", "b"]), "problem ids are integers"),
        (lambda: estimate_mean([1, 0], [1, 2], clusters=["a"]), "2 values but 1 clusters"),
        (lambda: estimate_mean([1, 0], [1, 1], clusters=["a", "b"]), "a problem is in two clusters"),
        (lambda: estimate_mean([1, 2], [1, 2], bounds=(0, 1)), "value 2.0 lies outside its declared bounds 0 to 1"),
        (lambda: estimate_mean([1, -2], [1, 2], bounds=(0, 1)), "value -2.0 lies outside"),
        (lambda: estimate_mean([1], [1], bounds=(1, 0)), "lower < upper"),
        (lambda: estimate_mean([[1]], [[1]]), "flat sequence"),
        (lambda: estimate_mean([], [], level=95), "between 0 and 1"),
        (lambda: category_breakdown([1, 0], [1, 2], ["a"]), "2 values but 1 categories"),
    ],
)
def test_input_that_does_not_fit_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_breakdown_is_an_estimate_a_category_with_its_own_counts() -> None:
    found = category_breakdown(
        [1, 0, 1, 1, 0, 1],
        [1, 2, 3, 4, 5, 6],
        ["law", "law", None, "art", "art", "art"],
        unscored={"law": 3},
        error={"sport": 2},
    )
    assert list(found) == ["art", "law", "sport"]
    assert found["art"] == estimate_mean([1, 0, 1], [4, 5, 6])
    assert (found["law"].value, found["law"].n, found["law"].unscored) == (0.5, 2, 3)
    assert (found["sport"].value, found["sport"].error) == (None, 2)


def test_any_field_can_be_broken_down_by() -> None:
    found = category_breakdown([1, 0, 0.5, 1], range(4), [True, 1, 2.5, True], clusters=["a", None, "b", "a"])
    assert list(found) == ["1", "2.5", "true"]
    assert found["true"].method == "none: all problems in one cluster"
    # The benchmark's rewards are not all 0 or 1, so no category of it is treated as if they were.
    assert category_breakdown([1, 0, 0.5], range(3), ["a", "a", "b"])["a"].method == "t"


def test_a_hundred_thousand_attempts_take_a_few_hundredths_of_a_second() -> None:
    rng = np.random.default_rng(0)
    values, problems = rng.random(100_000), rng.integers(0, 25_000, 100_000)
    best = min(_seconds(lambda: estimate_mean(values, problems)) for _ in range(5))
    sorting = min(_seconds(lambda: np.lexsort((values, problems))) for _ in range(5))
    assert best < 20 * sorting  # about 2 on a quiet machine: a loop in Python would be 50


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
