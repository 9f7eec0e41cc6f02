"""Measured coverage: how often a 95 % interval holds the true mean, exactly or in seeded simulations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.stats

from nel.metrics.intervals import wilson_interval
from nel.metrics.mean import estimate_mean
from nel.metrics.passk import estimate_pass_at_k

RUNS = 1_000
"""The share of 1,000 runs has a standard error of 0.007 around 0.95."""


def coverage(truth: float, draw: Callable[[np.random.Generator], object], *, seed: int) -> float:
    rng = np.random.default_rng(seed)
    found = [draw(rng) for _ in range(RUNS)]
    return float(np.mean([estimate.ci_lower <= truth <= estimate.ci_upper for estimate in found]))


def test_wilson_covers_at_any_accuracy() -> None:
    n = 100
    found = [wilson_interval(successes, n) for successes in range(n + 1)]
    covered = []
    for p in np.arange(0.02, 0.981, 0.01):
        holds = [lower <= p <= upper for lower, upper in found]
        covered.append(scipy.stats.binom.pmf(np.arange(n + 1), n, p)[holds].sum())  # exact: no simulation needed
    assert min(covered) > 0.92
    assert 0.945 < np.mean(covered) < 0.96


def test_repeats_cover_the_mean_over_the_population_of_problems() -> None:
    n, repeats = 60, 4
    problems = np.repeat(np.arange(n), repeats)

    def draw(rng: np.random.Generator) -> object:
        difficulty = rng.beta(0.5, 0.5, n)  # mean 0.5, most problems nearly always or nearly never solved
        return estimate_mean(rng.random(n * repeats) < difficulty[problems], problems)

    assert 0.93 <= coverage(0.5, draw, seed=2) <= 0.97


def test_treating_repeats_as_independent_would_not_cover() -> None:
    n, repeats = 60, 4
    problems = np.repeat(np.arange(n), repeats)

    def draw(rng: np.random.Generator) -> object:
        difficulty = rng.beta(0.5, 0.5, n)
        return estimate_mean(rng.random(n * repeats) < difficulty[problems], np.arange(n * repeats))

    assert coverage(0.5, draw, seed=2) < 0.85


def test_clusters_cover() -> None:
    clusters = np.repeat(np.arange(25), 4)

    def draw(rng: np.random.Generator) -> object:
        return estimate_mean(rng.normal(0, 1, 25)[clusters] + rng.normal(0, 1, 100), range(100), clusters=clusters)

    assert 0.93 <= coverage(0, draw, seed=3) <= 0.97


def test_pass_at_k_covers() -> None:
    n, attempts, k = 80, 6, 3
    problems = np.repeat(np.arange(n), attempts)

    def draw(rng: np.random.Generator) -> object:
        return estimate_pass_at_k(rng.random(n * attempts) < rng.random(n)[problems], problems, k)

    assert 0.925 <= coverage(1 - 1 / 4, draw, seed=4) <= 0.975  # the mean of 1 - (1 - p)^3 over uniform p


def test_rewards_that_came_out_all_equal_cover() -> None:
    def draw(rng: np.random.Generator) -> object:
        return estimate_mean(np.where(rng.random(20) < 0.01, 0.0, 0.8), range(20), bounds=(0, 1))

    # Most of these runs saw no zero at all: a t interval of width 0 would cover in none of them.
    assert coverage(0.8 * 0.99, draw, seed=5) >= 0.95
