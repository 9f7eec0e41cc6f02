"""What intervals and verdicts promise, measured: coverage, false alarms, power. Seeded.

The grid: 30, 100 and 400 problems; 0.5 and 0.9 right; one attempt and four; problems alone and in clusters of five.
With 1,000 draws a share near 0.95 has a standard error of 0.007.
"""

import numpy as np
import pytest

from nel.decisions.evidence import StudentT, difference_of
from nel.decisions.gate import ALPHA
from nel.decisions.multiplicity import adjust
from nel.decisions.power import problems_needed
from nel.decisions.verdict import Verdict, damage_interval, decide

DRAWS = 1_000
GRID = [
    (n, rate, repeats, size)
    for n in (30, 100, 400)
    for rate in (0.5, 0.9)
    for repeats in (1, 4)
    for size in (1, 5)
    if n // size >= 20
]


def two_models(random, n, rate, drop, repeats, size):
    """Scores of baseline and candidate, a row a problem and a column a repeat; both find the same problems hard.

    The candidate's chance is the baseline's less `drop`; problems of a cluster share most of their difficulty.
    """
    clusters = np.arange(n) // size
    shared = random.random(clusters[-1] + 1)[clusters] if size > 1 else random.random(n)
    own = np.where(random.random(n) < 0.7, shared, random.random(n)) if size > 1 else shared
    spread = min(0.08, 1 - rate, rate - drop)
    easy = rate + spread * (2 * own - 1)
    moved = drop * (2 * random.random(clusters[-1] + 1)[clusters] if size > 1 else 1.0)  # on average, `drop`
    baseline = random.random((n, repeats)) < easy[:, None]
    candidate = random.random((n, repeats)) < np.clip(easy - moved, 0, 1)[:, None]
    return baseline.astype(float), candidate.astype(float), clusters if size > 1 else None


def evidence_of(random, n, rate, drop, repeats, size):
    baseline, candidate, clusters = two_models(random, n, rate, drop, repeats, size)
    differences = candidate.mean(axis=1) - baseline.mean(axis=1)
    return difference_of(differences, clusters, bounds=(0, 1), single=repeats == 1)


@pytest.mark.parametrize(("n", "rate", "repeats", "size"), GRID)
def test_intervals_cover_the_true_difference(n, rate, repeats, size):
    random = np.random.default_rng([n, repeats, size, int(rate * 10)])
    drop = 0.04
    holds = 0
    for _ in range(DRAWS):
        low, high = evidence_of(random, n, rate, drop, repeats, size).interval()
        holds += low <= -drop <= high
    assert 0.93 <= holds / DRAWS <= 0.97


def test_few_flips_are_where_student_t_fails_and_the_score_interval_does_not():
    random = np.random.default_rng(8)
    n, share = 100, 0.03
    covered = {"t": 0, "score": 0}
    for _ in range(DRAWS):
        worse = random.random(n) < share  # only losses: a true difference of -0.03
        differences = -worse.astype(float)
        score = difference_of(differences, None, bounds=(0, 1), single=True)
        stderr = differences.std(ddof=1) / n**0.5
        plain = StudentT(differences.mean(), stderr or 1e-9, n - 1, "t")
        for name, found in (("t", plain), ("score", score)):
            low, high = found.interval()
            covered[name] += low <= -share <= high
    assert covered["t"] / DRAWS < 0.9
    assert covered["score"] / DRAWS >= 0.93


@pytest.mark.parametrize(("repeats", "size"), [(1, 1), (4, 1), (1, 5), (4, 5)])
def test_false_verdicts_are_no_more_than_promised(repeats, size):
    """At a true drop of exactly the allowed one, BLOCK and PASS are both wrong at most once in 40 times."""
    random = np.random.default_rng([4, repeats, size])
    verdicts = []
    for _ in range(DRAWS):
        found = evidence_of(random, 200, 0.6, 0.05, repeats, size)
        verdicts.append(decide(damage_interval(found, -1.0), 0.05))
    noise = 3 * (0.025 * 0.975 / DRAWS) ** 0.5
    assert verdicts.count(Verdict.BLOCK) / DRAWS <= 0.025 + noise
    assert (verdicts.count(Verdict.PASS) + verdicts.count(Verdict.WARN)) / DRAWS <= 0.025 + noise


def test_a_gate_of_many_benchmarks_raises_no_more_false_alarms_than_one():
    """Ten benchmarks at the allowed drop: one by one, one in five gates would stop; corrected, one in forty."""
    random = np.random.default_rng(6)
    alarms = {"corrected": 0, "each": 0}
    gates = 400
    for _ in range(gates):
        p_values = [evidence_of(random, 150, 0.6, 0.05, 2, 1).p_below(-0.05) for _ in range(10)]
        alarms["each"] += min(p_values) <= ALPHA
        alarms["corrected"] += min(adjust(p_values)) <= ALPHA
    assert alarms["each"] / gates > 0.15
    assert alarms["corrected"] / gates <= 0.025 + 3 * (0.025 * 0.975 / gates) ** 0.5


@pytest.mark.parametrize("repeats", [1, 4])
def test_a_plan_has_the_power_it_promises(repeats):
    random = np.random.default_rng([7, repeats])
    drop, easy = 0.1, 0.6
    within = easy * (1 - easy) + (easy - drop) * (1 - easy + drop)
    n = problems_needed(drop, (within / repeats) ** 0.5)
    found = 0
    for _ in range(DRAWS):
        baseline = random.binomial(repeats, easy, n) / repeats
        candidate = random.binomial(repeats, easy - drop, n) / repeats
        low, high = difference_of(candidate - baseline, None, bounds=(0, 1), single=repeats == 1).interval()
        found += not low <= 0 <= high
    assert found / DRAWS == pytest.approx(0.8, abs=0.03)
