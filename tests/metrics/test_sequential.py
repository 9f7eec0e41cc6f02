"""The confidence sequence: whoever looks after every value and stops when it pleases is right as often as promised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nel.metrics.sequential import ConfidenceSequence

LOOKS = 600
RUNS = 300


def values_of(kind, rng, size):
    return {
        "rare": lambda: rng.random(size) < 0.05,
        "even": lambda: rng.random(size) < 0.5,
        "common": lambda: rng.random(size) < 0.9,
        "graded": lambda: rng.beta(2, 5, size),
        "constant": lambda: np.full(size, 0.3),
    }[kind]().astype(float)


MEANS = {"rare": 0.05, "even": 0.5, "common": 0.9, "graded": 2 / 7, "constant": 0.3}


@pytest.mark.parametrize("kind", MEANS)
def test_the_mean_is_in_every_interval_at_once(kind):
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(RUNS):
        sequence = ConfidenceSequence()
        for value in values_of(kind, rng, LOOKS):
            sequence.add(value)
            lower, upper = sequence.interval
            if not lower - 1e-9 <= MEANS[kind] <= upper + 1e-9:
                missed += 1
                break
    assert missed / RUNS <= 0.05


def test_a_fixed_sample_interval_looked_at_as_often_would_fail():
    """Why the sequence is needed: the usual interval, looked at after each of 600 values, misses far more often."""
    rng = np.random.default_rng(7)
    values = (rng.random((RUNS, LOOKS)) < 0.5).astype(float)
    n = np.arange(1, LOOKS + 1)
    means = values.cumsum(axis=1) / n
    half = 1.96 * np.sqrt(means * (1 - means) / n)
    missed = (np.abs(means - 0.5) > half)[:, 20:].any(axis=1).mean()
    assert missed > 0.2


def test_it_narrows_at_the_rate_of_the_usual_interval():
    sequence = ConfidenceSequence()
    for value in values_of("even", np.random.default_rng(1), 10_000):
        sequence.add(value)
    lower, upper = sequence.interval
    assert (upper - lower) / 2 < 3 * 1.96 * 0.5 / 100


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(-5, 5), st.floats(0.1, 10))
def test_other_bounds_are_the_same_thing_moved_and_stretched(values, low, width):
    plain, moved = ConfidenceSequence(), ConfidenceSequence((low, low + width))
    for value in values:
        plain.add(value)
        moved.add(min(low + width, low + width * value))
    for here, there in zip(plain.interval, moved.interval, strict=True):
        assert low + width * here == pytest.approx(there, abs=1e-6)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=100))
def test_it_never_widens_and_stays_within_the_bounds(values):
    sequence, before = ConfidenceSequence(), (0.0, 1.0)
    for value in values:
        sequence.add(value)
        lower, upper = sequence.interval
        assert before[0] - 1e-12 <= lower <= upper <= before[1] + 1e-12
        before = (lower, upper)


def test_a_value_outside_the_bounds_is_refused():
    with pytest.raises(ValueError, match="outside"):
        ConfidenceSequence().add(1.5)
