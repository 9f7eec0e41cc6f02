"""Every number of a decision agrees with scipy, statsmodels, brute force or the literature."""

import itertools

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from nel.core.errors import UsageError
from nel.decisions.evidence import AllEqual, NoEvidence, PairedProportions, StudentT, difference_of
from nel.decisions.multiplicity import Correction, adjust
from nel.decisions.paired_tests import LARGE, TestKind, binomial_half, choose, run_test
from nel.decisions.power import detectable, power_of, problems_needed
from nel.decisions.verdict import Verdict, damage_interval, decide, more_units, worst

CLOSE = {"rel": 1e-9, "abs": 1e-12}
counts = st.integers(0, 60)


def mixed(worse: int, better: int, same: int) -> np.ndarray:
    return np.array([1.0] * worse + [-1.0] * better + [0.0] * same)


@given(counts, counts)
@settings(deadline=None, max_examples=60)
def test_mcnemar_and_the_sign_test_are_exact(worse, better):
    table = [[5, worse], [better, 7]]
    p = run_test(TestKind.MCNEMAR, mixed(worse, better, 12), None, one_sided=False).p_value
    assert p == pytest.approx(mcnemar(table, exact=True).pvalue if worse + better else 1.0, **CLOSE)
    one = binomial_half(worse, better, one_sided=True)
    expected = scipy.stats.binomtest(worse, worse + better, alternative="greater").pvalue if worse + better else 1.0
    assert one == pytest.approx(expected, **CLOSE)
    sign = run_test(TestKind.SIGN, 0.3 * mixed(worse, better, 3), None, one_sided=False).p_value
    assert sign == pytest.approx(p, **CLOSE)


def test_large_samples_use_the_normal_form_and_say_so():
    damage = mixed(1200, 1000, LARGE)
    test = run_test(TestKind.MCNEMAR, damage, None, one_sided=False)
    assert test.p_value == pytest.approx(mcnemar([[0, 1200], [1000, 0]], exact=False, correction=False).pvalue, **CLOSE)
    assert "large sample" in test.name
    permuted = run_test(TestKind.PERMUTATION, damage, None, one_sided=False)
    assert permuted.p_value == pytest.approx(test.p_value, **CLOSE)  # signs of equal size: the same statistic
    assert "large sample" in permuted.name
    one = run_test(TestKind.MCNEMAR, damage, None, one_sided=True).p_value
    assert one == pytest.approx(test.p_value / 2, **CLOSE)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9), st.booleans())
@settings(deadline=None, max_examples=50)
def test_a_permutation_of_few_units_is_brute_force(values, one_sided):
    damage = np.array(values) / 7
    sums = [np.dot(signs, damage) for signs in itertools.product((1, -1), repeat=damage.size)]
    observed = damage.sum()
    far = [s >= observed - 1e-9 if one_sided else abs(s) >= abs(observed) - 1e-9 for s in sums]
    test = run_test(TestKind.PERMUTATION, damage, None, one_sided=one_sided)
    assert test.p_value == pytest.approx(np.mean(far), **CLOSE)


@pytest.mark.parametrize("levels", [3, None], ids=["few sizes", "many sizes"])
def test_a_drawn_permutation_is_near_the_exact_one_and_never_0(levels):
    random = np.random.default_rng(5)
    damage = random.integers(-1, 3, 40) / 2 if levels else random.normal(0.2, 1, 40)
    test = run_test(TestKind.PERMUTATION, damage, None, one_sided=False)
    exact = scipy.stats.permutation_test(
        (damage,), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    ).pvalue
    assert test.p_value == pytest.approx(exact, abs=0.015)
    assert test.p_value == run_test(TestKind.PERMUTATION, damage, None, one_sided=False).p_value, "seeded"
    sure = run_test(TestKind.PERMUTATION, np.full(60, 1.0), None, one_sided=False)
    assert sure.p_value == pytest.approx(1 / 10_001)


def test_a_permutation_by_cluster_flips_whole_clusters():
    damage = np.array([1.0, 1, 1, -1, 0, 2])
    clusters = np.array([0, 0, 1, 1, 2, 2])
    by_cluster = run_test(TestKind.PERMUTATION, damage, clusters, one_sided=False)
    sums = run_test(TestKind.PERMUTATION, np.array([2.0, 0, 2]), None, one_sided=False)
    assert by_cluster.p_value == sums.p_value


def test_the_test_follows_the_type_of_the_score():
    def kind(**case):
        return choose(TestKind.AUTO, cluster_by="page", **case)[0]

    assert kind(single=True, clustered=False) is TestKind.MCNEMAR
    assert kind(single=True, clustered=True) is TestKind.PERMUTATION
    assert kind(single=False, clustered=False) is TestKind.PERMUTATION
    with pytest.raises(UsageError, match="McNemar"):
        choose(TestKind.MCNEMAR, single=False, clustered=False, cluster_by="page")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(deadline=None, max_examples=60)
def test_holm_and_benjamini_hochberg(p_values):
    assert adjust(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], **CLOSE)
    assert adjust(p_values, Correction.BH) == pytest.approx(multipletests(p_values, method="fdr_bh")[1], **CLOSE)


@given(st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=3, max_size=40).filter(lambda v: np.ptp(v) > 1e-3))
@settings(deadline=None, max_examples=60)
def test_a_t_interval_and_its_p_values_are_those_of_scipy(values):
    found = difference_of(np.array(values), None, bounds=None, single=False)
    expected = scipy.stats.ttest_1samp(values, 0.1, alternative="less")
    interval = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.interval() == pytest.approx(tuple(interval), **CLOSE)
    assert found.p_below(0.1) == pytest.approx(expected.pvalue, **CLOSE)
    assert found.p_above(0.1) == pytest.approx(1 - expected.pvalue, rel=1e-6, abs=1e-12)


def test_a_clustered_interval_is_that_of_statsmodels():
    random = np.random.default_rng(3)
    clusters = np.repeat(np.arange(12), 5)
    values = random.normal(0, 1, 12)[clusters] + random.normal(0.3, 1, 60)
    found = difference_of(values, clusters, bounds=None, single=False, cluster_by="page")
    # statsmodels multiplies by (n - 1)/(n - k) as well, which is 1 for a mean.
    fit = sm.OLS(values, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    assert found.value == pytest.approx(fit.params[0], **CLOSE)
    assert found.stderr == pytest.approx(fit.bse[0], **CLOSE)
    assert found.interval() == pytest.approx(tuple(fit.conf_int()[0]), **CLOSE)
    assert found.method == "t, clustered by page"


def test_the_interval_of_paired_proportions_is_tangos():
    # Airway hyper-responsiveness before and after transplantation (Fagerland, Lydersen and Laake 2014, table 8).
    assert PairedProportions(up=1, down=7, n=21).interval() == pytest.approx((-0.517, -0.026), abs=5e-4)
    at_zero = PairedProportions(up=5, down=14, n=80)
    chi2 = mcnemar([[0, 14], [5, 0]], exact=False, correction=False)
    assert 2 * at_zero.p_below(0.0) == pytest.approx(chi2.pvalue, **CLOSE)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(2, 300), st.floats(-0.9, 0.9))
@settings(deadline=None, max_examples=80)
def test_intervals_and_p_values_always_agree(up, down, same, limit):
    n = up + down + same
    kinds = [
        PairedProportions(up, down, n),
        StudentT((up - down) / n, 0.02, n - 1, "t"),
        AllEqual(0.0, n, (-1.0, 1.0), "wilson bound"),
    ]
    for found in kinds:
        low, high = found.interval()
        assert low <= found.value <= high
        if min(abs(low - limit), abs(high - limit)) > 1e-6:
            assert (low > limit) == (found.p_above(limit) < 0.025)
            assert (high < limit) == (found.p_below(limit) < 0.025)


def test_too_little_is_no_evidence():
    assert difference_of(np.array([]), None, bounds=None, single=False).interval() is None
    assert difference_of(np.array([0.4]), None, bounds=None, single=False).interval() is None
    one_page = difference_of(np.array([0.4, 0.2]), np.array([0, 0]), bounds=None, single=False, cluster_by="page")
    assert isinstance(one_page, NoEvidence)
    assert "one page" in one_page.method
    assert decide(damage_interval(one_page, -1), 0.05) is Verdict.INCONCLUSIVE


@given(st.integers(2, 5000), st.floats(0.01, 8))
@settings(deadline=None, max_examples=40)
def test_power_is_that_of_a_paired_t_test(n, noncentrality):
    expected = TTestPower().power(noncentrality / n**0.5, n, 0.05)
    assert power_of(noncentrality, n - 1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [3, 10, 200, 14_042])
def test_the_detectable_effect_has_the_power_it_claims(n):
    effect = detectable(n - 1) / n**0.5
    assert TTestPower().power(effect, n, 0.05) == pytest.approx(0.8, abs=1e-9)


def test_the_detectable_effect_of_many_units_is_two_sided():
    expected = scipy.stats.norm.ppf(0.975) + scipy.stats.norm.ppf(0.8)
    assert detectable(1e7) == pytest.approx(expected, rel=1e-5)  # and a trace of the wrong side
    assert power_of(40.0, 28) == 1.0


@pytest.mark.parametrize(("drop", "deviation"), [(0.02, 0.4), (0.1, 0.3), (0.5, 0.5)])
def test_the_number_of_problems_is_the_least_that_will_do(drop, deviation):
    n = problems_needed(drop, deviation)
    assert TTestPower().power(drop / deviation, n, 0.05) >= 0.8
    assert TTestPower().power(drop / deviation, n - 1, 0.05) < 0.8


RULE = [
    ((0.06, 0.10), Verdict.BLOCK),
    ((0.01, 0.04), Verdict.WARN),
    ((-0.01, 0.04), Verdict.PASS),
    ((-0.20, -0.10), Verdict.PASS),
    ((0.05, 0.05), Verdict.WARN),
    ((0.04, 0.06), Verdict.INCONCLUSIVE),
    ((-0.1, 0.1), Verdict.INCONCLUSIVE),
    (None, Verdict.INCONCLUSIVE),
]


@pytest.mark.parametrize(("damage", "verdict"), RULE)
def test_the_rule(damage, verdict):
    assert decide(damage, 0.05) is verdict


def test_the_worst_verdict_wins():
    assert worst([Verdict.PASS, Verdict.WARN]) is Verdict.WARN
    assert worst([Verdict.WARN, Verdict.INCONCLUSIVE]) is Verdict.INCONCLUSIVE
    assert worst([Verdict.BLOCK, Verdict.INCONCLUSIVE, Verdict.PASS]) is Verdict.BLOCK
    assert worst([]) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "evidence",
    [
        StudentT(-0.03, 0.02, 99, "t"),
        StudentT(-0.09, 0.04, 99, "t"),
        PairedProportions(10, 14, 100),
        AllEqual(0.0, 20, (-1, 1), ""),
    ],
    ids=["within", "beyond", "proportions", "equal"],
)
def test_more_units_are_the_least_that_decide(evidence):
    n = 100
    more = more_units(evidence, -1.0, n, 0.05)
    assert decide(damage_interval(evidence.scaled((n + more) / n), -1.0), 0.05) is not Verdict.INCONCLUSIVE
    assert decide(damage_interval(evidence.scaled((n + more - 2) / n), -1.0), 0.05) is Verdict.INCONCLUSIVE


def test_no_number_of_units_decides_a_damage_at_the_limit():
    assert more_units(StudentT(-0.05, 0.02, 99, "t"), -1.0, 100, 0.05) is None
