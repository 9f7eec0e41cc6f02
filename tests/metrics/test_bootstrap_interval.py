"""The percentile bootstrap: reproducible, fast, and near the closed forms."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.metrics.bootstrap import FEW, bootstrap_ci


def test_few_different_values_are_drawn_by_their_counts() -> None:
    values = np.array([1.0] * 400 + [0.0] * 600)
    found = bootstrap_ci(values)
    exact = scipy.stats.binom.ppf([0.025, 0.975], 1000, 0.4) / 1000
    assert found == pytest.approx(tuple(exact), abs=0.0015)


def test_many_different_values_agree_with_scipy() -> None:
    values = np.random.default_rng(1).gamma(2, 1, 300)
    assert np.unique(values).size > FEW
    oracle = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert bootstrap_ci(values) == pytest.approx((oracle.low, oracle.high), abs=0.02)


def test_the_two_ways_of_drawing_give_the_same_distribution() -> None:
    values = np.random.default_rng(4).integers(0, 40, 500).astype(float)
    few = bootstrap_ci(values)
    many = bootstrap_ci(values + np.arange(500) * 1e-9)
    assert few == pytest.approx(many, abs=0.12)


def test_clusters_are_drawn_whole() -> None:
    values = np.repeat([1.0, 0, 1, 1, 0, 0, 1, 0] * 5, 6)
    clusters = np.repeat(np.arange(40), 6)
    alone, whole = bootstrap_ci(values), bootstrap_ci(values, clusters=clusters)
    assert (whole[1] - whole[0]) == pytest.approx((alone[1] - alone[0]) * math.sqrt(6), rel=0.1)
    assert whole == pytest.approx(bootstrap_ci(values[::6]), abs=0.03)


@settings(deadline=None, max_examples=15)
@given(values=st.lists(st.floats(-5, 5), min_size=2, max_size=100), seed=st.integers(0, 9))
def test_same_values_in_any_order_same_interval(values: list[float], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(values))
    data, clusters = np.array(values), np.arange(len(values)) // 3
    assert bootstrap_ci(data[order], draws=200) == bootstrap_ci(data, draws=200)
    assert bootstrap_ci(data[order], draws=200, clusters=clusters[order]) == bootstrap_ci(
        data, draws=200, clusters=clusters
    )


def test_the_seed_is_part_of_the_result() -> None:
    values = np.random.default_rng(6).random(50)
    assert bootstrap_ci(values) == bootstrap_ci(values, seed=42) != bootstrap_ci(values, seed=43)


@pytest.mark.parametrize(("values", "clusters"), [([], None), ([0.4], None), ([1] * 9, None), ([1, 0], [3, 3])])
def test_where_resampling_can_tell_nothing_there_is_no_interval(values, clusters) -> None:
    assert bootstrap_ci(values, clusters=clusters) is None


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="value 1 is nan"):
        bootstrap_ci([1, math.nan])
    with pytest.raises(ValueError, match="at least 100"):
        bootstrap_ci([1, 0], draws=10)
    with pytest.raises(ValueError, match="between 0 and 1"):
        bootstrap_ci([1, 0], level=2)
    with pytest.raises(ValueError, match="one cluster per value"):
        bootstrap_ci([1, 0], clusters=[1])


def test_ten_thousand_draws_of_mmlu_cost_less_than_one_pass_over_them() -> None:
    values = (np.arange(14_042) % 3 == 0).astype(float)
    best = min(_seconds(lambda: bootstrap_ci(values)) for _ in range(5))
    loop = min(_seconds(lambda: [values.sum() for _ in range(10_000)]) for _ in range(2))
    assert best < loop


def _seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
