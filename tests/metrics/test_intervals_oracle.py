"""Closed forms against scipy and statsmodels, to 1e-9."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from nel.metrics.intervals import (
    clustered_se,
    normal_ci,
    normal_quantile,
    t_interval,
    t_quantile,
    two_level_se,
    wilson_interval,
)

quick = settings(deadline=None, max_examples=60)
levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])


@quick
@given(n=st.integers(1, 100_000), share=st.floats(0, 1), level=levels)
def test_wilson_agrees_with_statsmodels(n: int, share: float, level: float) -> None:
    successes = round(n * share)
    assert wilson_interval(successes, n, level) == pytest.approx(
        proportion_confint(successes, n, alpha=1 - level, method="wilson"), abs=1e-9
    )


def test_wilson_is_not_empty_and_stays_inside_at_both_ends() -> None:
    assert wilson_interval(0, 20)[0] == 0
    assert wilson_interval(0, 20)[1] == pytest.approx(0.1611, abs=1e-4)
    assert wilson_interval(20, 20)[1] == 1
    assert wilson_interval(20, 20)[0] == pytest.approx(1 - wilson_interval(0, 20)[1])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("df", [1, 2, 7, 30, 1318, 14_041])
def test_quantiles_agree_with_scipy(df: int, level: float) -> None:
    assert t_quantile(df, level) == pytest.approx(scipy.stats.t.ppf((1 + level) / 2, df), rel=1e-9)
    assert normal_quantile(level) == pytest.approx(scipy.stats.norm.ppf((1 + level) / 2), rel=1e-12)


@quick
@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), level=levels)
def test_t_and_normal_intervals_agree_with_scipy(values: list[float], level: float) -> None:
    stderr = clustered_se(values)
    mean, spread = float(np.mean(values)), float(scipy.stats.sem(values))
    assert stderr == pytest.approx(spread, rel=1e-9, abs=1e-9)
    if spread > 0:
        assert t_interval(mean, stderr, len(values) - 1, level) == pytest.approx(
            scipy.stats.t.interval(level, len(values) - 1, mean, spread), rel=1e-9, abs=1e-9
        )
        assert normal_ci(mean, stderr, level) == pytest.approx(
            scipy.stats.norm.interval(level, mean, spread), rel=1e-9, abs=1e-9
        )


@quick
@given(rows=st.lists(st.tuples(st.floats(-100, 100), st.integers(0, 6)), min_size=4, max_size=60))
def test_clustered_error_agrees_with_statsmodels(rows: list[tuple[float, int]]) -> None:
    values, clusters = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    if np.unique(clusters).size < 2:
        with pytest.raises(ValueError, match="at least two clusters"):
            clustered_se(values, clusters)
        return
    fit = sm.OLS(values, np.ones(values.size)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert clustered_se(values, clusters) == pytest.approx(float(fit.bse[0]), rel=1e-9, abs=1e-9)


def test_clustered_error_is_millers_formula_with_a_small_sample_factor() -> None:
    values, clusters = np.array([1.0, 1, 0, 1, 0, 0, 1]), np.array([0, 0, 0, 1, 1, 2, 2])
    mean, n = values.mean(), values.size
    pairs = sum(
        (values[i] - mean) * (values[j] - mean) for i in range(n) for j in range(n) if clusters[i] == clusters[j]
    )
    assert clustered_se(values, clusters) == pytest.approx(math.sqrt(3 / 2 * pairs) / n, rel=1e-12)


def test_two_levels_are_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(3)
    n, repeats = 40, 5
    true = rng.normal(0, 2, n)
    values = true[:, None] + rng.normal(0, 1, (n, repeats))
    split = two_level_se(values.ravel(), np.repeat(np.arange(n), repeats))
    between_ms = repeats * values.mean(axis=1).var(ddof=1)
    within_ms = values.var(axis=1, ddof=1).mean()
    oracle = scipy.stats.f_oneway(*values)
    assert between_ms / within_ms == pytest.approx(oracle.statistic, rel=1e-9)
    assert split.within_variance == pytest.approx(within_ms, rel=1e-9)
    assert split.between_variance == pytest.approx((between_ms - within_ms) / repeats, rel=1e-9)
    assert split.stderr == pytest.approx(scipy.stats.sem(values.mean(axis=1)), rel=1e-9)
    assert math.hypot(split.stderr_between, split.stderr_within) == pytest.approx(split.stderr, rel=1e-9)
    assert (split.problems, split.attempts) == (n, n * repeats)


def test_without_repeats_the_two_sources_cannot_be_told_apart() -> None:
    split = two_level_se([0, 1, 1, 0], [1, 2, 3, 4])
    assert split.stderr == pytest.approx(scipy.stats.sem([0, 1, 1, 0]))
    assert split.stderr_between is split.stderr_within is split.between_variance is split.within_variance is None


def test_chance_alone_leaves_nothing_to_the_choice_of_problems() -> None:
    split = two_level_se([0, 1] * 10, np.repeat(np.arange(10), 2))
    assert split.between_variance == 0
    assert split.within_variance == pytest.approx(0.5)


@pytest.mark.parametrize("level", [0, 1, -1, 95, math.nan])
def test_a_level_that_is_no_share_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson_interval(1, 2, level)


def test_impossible_counts_are_refused() -> None:
    for successes, n in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(ValueError, match="successes"):
            wilson_interval(successes, n)
    with pytest.raises(ValueError, match="degree of freedom"):
        t_interval(0, 1, 0)
    with pytest.raises(ValueError, match="two problems"):
        two_level_se([1, 0], [7, 7])
