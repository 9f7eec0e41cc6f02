"""Aggregates: scores of a whole benchmark that are no mean, with intervals that cover."""

import numpy as np
import pytest

from nel.metrics.aggregates import estimate_aggregate


def test_the_f_score_is_the_harmonic_mean_of_its_paper():
    correct = [1] * 30 + [0] * 70
    attempted = [1] * 60 + [0] * 40
    found = estimate_aggregate("f_score", [correct, attempted], range(100))
    overall, given = 30 / 100, 30 / 60
    assert found.value == pytest.approx(2 * overall * given / (overall + given))
    assert found.ci_lower < found.value < found.ci_upper
    assert (found.n, found.scored, found.method) == (100, 100, "bootstrap")


def test_the_clipped_mean_never_leaves_0_to_1():
    found = estimate_aggregate("clipped_mean", [[-3.0, -1.0, 1.0]], range(3))
    assert found.value == 0.0
    assert (found.ci_lower, found.ci_upper) >= (0.0, 0.0)


def test_repeats_of_a_problem_are_averaged_first():
    once = estimate_aggregate("clipped_mean", [[0.25, 1.0]], [0, 1])
    often = estimate_aggregate("clipped_mean", [[0.0, 0.5, 1.0, 1.0]], [0, 0, 1, 1])
    assert (once.value, once.ci_lower, once.ci_upper, once.n) == (often.value, often.ci_lower, often.ci_upper, often.n)


def test_clusters_are_resampled_whole_and_widen_the_interval():
    values = np.repeat([0.0, 1.0] * 10, 10)
    clusters = np.repeat(range(20), 10)
    plain = estimate_aggregate("clipped_mean", [values], range(200))
    whole = estimate_aggregate("clipped_mean", [values], range(200), clusters=clusters, cluster_by="passage")
    assert whole.ci_upper - whole.ci_lower > 2 * (plain.ci_upper - plain.ci_lower)
    assert (whole.method, whole.clusters) == ("bootstrap, clustered by passage", 20)


def test_nothing_scored_and_a_single_problem_have_no_interval():
    nothing = estimate_aggregate("f_score", [[], []], [], unscored=3)
    assert (nothing.value, nothing.n, nothing.unscored) == (None, 0, 3)
    single = estimate_aggregate("f_score", [[1.0], [1.0]], [0])
    assert (single.value, single.ci_lower) == (1.0, None)


def test_the_interval_covers():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        attempted = rng.random(200) < 0.7
        correct = attempted & (rng.random(200) < 0.6)
        found = estimate_aggregate("f_score", [correct, attempted], range(200))
        hits += found.ci_lower <= 2 * 0.42 / 1.7 <= found.ci_upper
    assert hits / 200 >= 0.91  # three standard errors of 200 simulations below 0.95
