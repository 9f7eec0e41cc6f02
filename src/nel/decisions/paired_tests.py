"""Tests of paired differences: McNemar, sign, permutation, and their large-sample forms."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec
import numpy as np

from nel.core.errors import UsageError
from nel.metrics.grouping import Floats, Ints

LARGE = 100_000
"""Pairs above which the large-sample form is used, and named."""
DRAWS = 10_000
SEED = 42
_FEW = 64
"""Up to so many different sizes of difference, signs are drawn by size and not one by one."""
_EXACT_UNITS = 13
"""2^13 sign patterns are fewer than the draws, so all of them are taken."""
_CHUNK = 1 << 22
_TIE = 1e-9


class TestKind(StrEnum):
    """Which test; `auto` chooses by the type of the score."""

    __test__ = False  # pytest takes the name for a class of tests

    AUTO = "auto"
    MCNEMAR = "mcnemar"
    SIGN = "sign"
    PERMUTATION = "permutation"


class PairedTest(msgspec.Struct, kw_only=True):
    """A test of "no difference", reported beside the verdict."""

    kind: TestKind
    name: str
    """The test in words, its large-sample form named."""
    reason: str
    """Why this one."""
    alternative: str
    """`two-sided`, or `worse`: the candidate is worse."""
    p_value: float
    worse: int
    """Units (problems, or clusters where the test is by cluster) on which the candidate does worse."""
    better: int
    p_adjusted: float | None = None
    """By Holm's method over the benchmarks that were compared together; None where there is but one."""


def choose(kind: TestKind, *, single: bool, clustered: bool, cluster_by: str) -> tuple[TestKind, str]:
    """The test that fits, and why. `single`: scores are right or wrong, asked once of each problem."""
    if kind is TestKind.MCNEMAR and not single:
        raise UsageError(
            "McNemar's test needs one answer to each problem, right or wrong; these scores are something else.",
            hint="Say which scores count as right with --correct-above X (with one repeat), or use --test permutation.",
        )
    if kind is not TestKind.AUTO:
        ignored = f"; it takes problems of one {cluster_by} as independent" if _alone(kind) and clustered else ""
        return kind, f"as asked{ignored}"
    if single and not clustered:
        return TestKind.MCNEMAR, "right or wrong, asked once of each problem"
    if single:
        return TestKind.PERMUTATION, f"problems of one {cluster_by} are not independent"
    return TestKind.PERMUTATION, "scores on a scale, or several repeats"


def _alone(kind: TestKind) -> bool:
    return kind in {TestKind.MCNEMAR, TestKind.SIGN}


def run_test(kind: TestKind, damage: Floats, clusters: Ints | None, *, one_sided: bool, reason: str = "") -> PairedTest:
    """The test of the damage of each problem (positive: the candidate is worse).

    Permutation flips the sign of whole clusters. McNemar and sign count problems that differ, and leave out the others.
    """
    units = damage
    if kind is TestKind.PERMUTATION and clusters is not None:
        units = np.bincount(clusters, weights=damage)
    worse, better = int((units > 0).sum()), int((units < 0).sum())
    large = damage.size > LARGE
    if kind is TestKind.PERMUTATION:
        p, name = _large_z(units, one_sided=one_sided) if large else _permutation(units, one_sided=one_sided)
    else:
        p = (
            _half_normal(worse, better, one_sided=one_sided)
            if large
            else binomial_half(worse, better, one_sided=one_sided)
        )
        name = {TestKind.MCNEMAR: "McNemar", TestKind.SIGN: "sign test"}[kind]
        name += f", large sample (more than {LARGE:,} pairs)" if large else ", exact"
    return PairedTest(
        kind=kind,
        name=name,
        reason=reason,
        alternative="worse" if one_sided else "two-sided",
        p_value=p,
        worse=worse,
        better=better,
    )


def binomial_half(worse: int, better: int, *, one_sided: bool) -> float:
    """The exact binomial test of `worse` against `better` at one half; 1 where nothing differs."""
    from scipy.special import bdtr

    n = worse + better
    if n == 0:
        return 1.0
    if one_sided:
        return float(bdtr(better, n, 0.5))  # P(X >= worse) = P(X <= better), by symmetry
    return min(1.0, 2 * float(bdtr(min(worse, better), n, 0.5)))


def _half_normal(worse: int, better: int, *, one_sided: bool) -> float:
    """McNemar's statistic without continuity correction."""
    n = worse + better
    return _normal_p((worse - better) / math.sqrt(n), one_sided=one_sided) if n else 1.0


def _large_z(units: Floats, *, one_sided: bool) -> tuple[float, str]:
    """Sign flips of many units are normal: their sum over the root of the sum of squares."""
    size = math.sqrt(float(units @ units))
    p = _normal_p(float(units.sum()) / size, one_sided=one_sided) if size else 1.0
    return p, f"paired permutation, large sample (more than {LARGE:,} pairs)"


def _normal_p(z: float, *, one_sided: bool) -> float:
    return math.erfc(z / math.sqrt(2)) / 2 if one_sided else math.erfc(abs(z) / math.sqrt(2))


def _permutation(units: Floats, *, one_sided: bool) -> tuple[float, str]:
    sizes = np.abs(units[units != 0])
    observed = float(units.sum())
    slack = _TIE * float(sizes.sum())
    if sizes.size <= _EXACT_UNITS:
        drawn, name = _all_sums(sizes), f"paired permutation, all {2**sizes.size:,} sign patterns"
        plus = 0
    else:
        drawn, name = _random_sums(sizes), f"paired permutation, {DRAWS:,} draws"
        plus = 1  # the observed pattern is one of them (Phipson and Smyth 2010)
    far = drawn >= observed - slack if one_sided else np.abs(drawn) >= abs(observed) - slack
    return (int(far.sum()) + plus) / (drawn.size + plus), name


def _all_sums(sizes: Floats) -> Floats:
    sums = np.zeros(1)
    for size in sizes.tolist():
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _random_sums(sizes: Floats) -> Floats:
    """The sum under each of `DRAWS` random sign patterns."""
    random = np.random.default_rng(SEED)
    values, counts = np.unique(sizes, return_counts=True)
    if values.size <= _FEW:
        return np.asarray((2 * random.binomial(counts, 0.5, size=(DRAWS, counts.size)) - counts) @ values)
    sums = np.empty(DRAWS)
    rows = max(1, _CHUNK // sizes.size)
    for start in range(0, DRAWS, rows):
        count = min(rows, DRAWS - start)
        bits = np.unpackbits(random.integers(0, 256, size=(count, -(-sizes.size // 8)), dtype=np.uint8), axis=1)
        sums[start : start + count] = 2 * (bits[:, : sizes.size] @ sizes) - sizes.sum()
    return sums
