"""Agreement between raters equals the published worked examples, statsmodels, and what the definitions promise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from nel.metrics.agreement import cohen_kappa, krippendorff_alpha

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
PUBLISHED = [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]


@pytest.mark.parametrize(("level", "alpha"), PUBLISHED)
def test_alpha_is_that_of_krippendorffs_own_example(level, alpha):
    assert krippendorff_alpha(zip(*OBSERVERS, strict=True), level=level) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_binary_data_is_that_of_krippendorffs_example():
    """Section A: two observers, ten units, alpha = 0.095."""
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha(zip(first, second, strict=True)) == pytest.approx(0.095, abs=5e-4)


def test_alpha_of_nominal_data_is_that_of_krippendorffs_example():
    """Section B: two observers, twelve units, alpha = 0.692."""
    first, second = "aabbdcccedda", "babbbcccedd" + "d"
    assert krippendorff_alpha(zip(first, second, strict=True)) == pytest.approx(0.692, abs=5e-4)


@pytest.mark.parametrize("units", [[], [[1]], [[1, None], [2]], [[3, 3], [3, 3]]])
def test_alpha_is_none_where_nothing_can_be_told(units):
    assert krippendorff_alpha(units) is None


def test_alpha_refuses_labels_that_are_no_numbers_where_distances_count():
    with pytest.raises(ValueError, match=r"'[ab]' is no finite number"):
        krippendorff_alpha([["a", "b"]], level="interval")
    with pytest.raises(ValueError, match="none of nominal"):
        krippendorff_alpha([[1, 2]], level="ratio")


units = st.lists(st.lists(st.integers(1, 4), min_size=2, max_size=4), min_size=2, max_size=12)


@settings(deadline=None, max_examples=60)
@given(units, st.sampled_from(["nominal", "ordinal", "interval"]), st.randoms())
def test_alpha_does_not_depend_on_order_and_is_at_most_one(ratings, level, random):
    alpha = krippendorff_alpha(ratings, level=level)
    shuffled = [random.sample(unit, len(unit)) for unit in random.sample(ratings, len(ratings))]
    if alpha is None:
        assert krippendorff_alpha(shuffled, level=level) is None
    else:
        assert alpha <= 1 + 1e-12
        assert krippendorff_alpha(shuffled, level=level) == pytest.approx(alpha)


@settings(deadline=None, max_examples=40)
@given(units)
def test_alpha_of_intervals_knows_neither_origin_nor_unit(ratings):
    alpha = krippendorff_alpha(ratings, level="interval")
    moved = krippendorff_alpha([[3 * value - 7 for value in unit] for unit in ratings], level="interval")
    assert moved == (alpha if alpha is None else pytest.approx(alpha))


def test_alpha_is_one_for_full_agreement():
    assert krippendorff_alpha([[1, 1], [2, 2], [3, 3]], level="ordinal") == 1.0


def table(first, second, size):
    return [
        [sum((a, b) == (i, j) for a, b in zip(first, second, strict=True)) for j in range(size)] for i in range(size)
    ]


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60),
    st.sampled_from([None, "linear", "quadratic"]),
)
def test_kappa_equals_statsmodels(pairs, weights):
    first, second = zip(*pairs, strict=True)
    found = cohen_kappa(first, second, weights=weights, values=[0, 1, 2, 3])
    if found.value is None:
        assert len({*first, *second}) == 1
        return
    with np.errstate(all="ignore"):
        oracle = cohens_kappa(table(first, second, 4), wt=weights)
    assert found.value == pytest.approx(oracle.kappa, abs=1e-9)
    variance = max(0.0, float(oracle.var_kappa))
    assert (found.stderr or 0.0) == pytest.approx(math.sqrt(variance), abs=1e-6)
    if found.stderr is not None:
        assert -1 <= found.ci_lower <= found.value <= found.ci_upper <= 1


def test_kappa_of_a_textbook_table():
    """Two readers of 50 proposals (20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no): kappa = 0.4."""
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = cohen_kappa(first, second)
    assert (found.value, found.observed, found.expected) == pytest.approx((0.4, 0.7, 0.5))
    assert found.ci_lower == pytest.approx(0.1511, abs=1e-3)


def test_kappa_says_why_it_is_none():
    assert "one and the same value" in cohen_kappa(["a", "a"], ["a", "a"]).method
    for first, second in ((["a"], []), ([], [])):
        with pytest.raises(ValueError, match=r"labels|rated"):
            cohen_kappa(first, second)
    with pytest.raises(ValueError, match="'c' is none of 'a', 'b'"):
        cohen_kappa(["c"], ["a"], values=["a", "b"])
