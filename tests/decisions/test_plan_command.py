"""`nel plan`: what a run before, two runs or assumptions say of the next one."""

import json

import numpy as np
import pytest
from decision_runs import make_run

from nel.decisions.power import problems_needed


def rows_of(nel, *arguments):
    code, out, err = nel("plan", *arguments, "--format", "json")
    assert code == 0, err
    return json.loads(out)


def noisy(seed, easy, repeats, n=120):
    random = np.random.default_rng(seed)
    return [[float(one) for one in random.random(repeats) < chance] for chance in easy[:n]]


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    """Two models, four attempts at each of 120 problems of very different difficulty."""
    path = tmp_path_factory.mktemp("repeated")
    easy = np.random.default_rng(0).beta(1, 1, 120)
    return make_run(path / "a", noisy(1, easy, 4)), make_run(path / "b", noisy(2, easy, 4))


def test_two_runs_tell_what_repeats_save(nel, repeated):
    plan = rows_of(nel, *repeated, "--drop", "0.05")
    spread = plan["spread"]
    # The models have the same chances, so their true differences vary not at all: all is chance within.
    assert spread["between"] < 0.2 * spread["within"]
    assert spread["within"] == pytest.approx(2 / 6, rel=0.15)  # twice the mean of p(1 - p) over uniform p
    needed = [row["problems"] for row in plan["rows"]]
    assert [row["repeats"] for row in plan["rows"]] == [1, 2, 4, 8]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > 1.7 * needed[1]


def test_a_plan_is_the_power_of_a_t_test(nel):
    plan = rows_of(nel, "--drop", "0.03", "--rate", "0.7", "--correlation", "0.8", "--problems", "500")
    deviation = (2 * 0.7 * 0.3 * 0.2) ** 0.5
    assert [row["problems"] for row in plan["rows"]] == [problems_needed(0.03, deviation)]
    assert plan["rows"][0]["detectable"] == pytest.approx(2.81 * deviation / 500**0.5, rel=0.01)


def test_discordance_tells_the_spread_itself(nel):
    plan = rows_of(nel, "--drop", "0.02", "--discordance", "0.1")
    assert plan["spread"]["between"] == pytest.approx(0.1 - 0.02**2)
    scores = rows_of(nel, "--drop", "0.02", "--sd", "0.2", "--power", "0.9", "--alpha", "0.01")
    assert scores["rows"][0]["problems"] == problems_needed(0.02, 0.2, power=0.9, alpha=0.01)


def test_cost_and_tokens_are_those_of_the_past_run(nel, repeated):
    plan = rows_of(nel, repeated[0], "--drop", "0.1", "--repeats", "2")
    (row,) = plan["rows"]
    assert row["attempts"] == 2 * row["problems"]
    assert row["tokens"] == pytest.approx(25 * row["attempts"])
    assert row["cost"] == pytest.approx(0.01 * row["attempts"])
    priced = rows_of(nel, repeated[0], "--drop", "0.1", "-n", "2", "--input-price", "1", "--output-price", "2")
    assert priced["rows"][0]["cost"] == pytest.approx(row["attempts"] * (20 * 1 + 5 * 2) / 1e6)


def test_correlation_between_the_models_saves_problems(nel, repeated):
    needed = [
        rows_of(nel, repeated[0], "--drop", "0.1", "-n", "8", "--correlation", value)["rows"][0]["problems"]
        for value in ("0", "0.9")
    ]
    assert needed[0] > 2 * needed[1]


def test_clusters_cost_problems(nel, tmp_path):
    paged = [float(place // 10 % 2) for place in range(200)]  # a page stands or falls as a whole
    runs = make_run(tmp_path / "a", paged), make_run(tmp_path / "b", paged, cluster=10)
    alone, clustered = (rows_of(nel, run, "--drop", "0.1") for run in runs)
    assert clustered["spread"]["design_effect"] == pytest.approx(10, rel=0.1)
    assert clustered["rows"][0]["problems"] > 9 * alone["rows"][0]["problems"]


def test_the_page_says_what_it_assumes(nel):
    code, out, _ = nel("plan", "--drop", "0.02", "--rate", "0.7")
    assert code == 0
    assert out.startswith("To see a drop of 0.020 in score with a chance of 80% (two-sided, 5%)")
    assert "correlation 0.5 between the models" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--drop", "0.02"], "--rate"),
        (["--drop", "0", "--rate", "0.5"], "drop is 0"),
        (["--drop", "0.1", "--rate", "1.5"], "rate is 1.5"),
        (["--drop", "0.1", "--rate", "0.5", "--sd", "0.1"], "say the same in two ways"),
        (["--drop", "0.1", "--discordance", "0.01"], "discordance"),
        (["--drop", "0.1", "--discordance", "0.2", "--correlation", "0.1"], "no effect"),
        (["--drop", "0.1", "--rate", "0.5", "--metric", "x"], "reads a run"),
        (["--drop", "0.1", "--rate", "0.5", "--power", "0.01"], "power"),
        (["--drop", "0.1", "--rate", "0.5", "--correlation", "1"], "correlation"),
        (["nowhere", "--drop", "0.1"], "nowhere does not exist"),
        (["nowhere", "--drop", "0.1", "--rate", "0.5"], "--rate is an assumption"),
        (["nowhere", "--drop", "0.1", "--input-price", "1"], "--input-price alone"),
    ],
)
def test_what_has_no_effect_or_no_sense_is_refused(nel, arguments, said):
    code, _, err = nel("plan", *arguments)
    assert code == 64
    assert said in err
