"""`nel compare` of three runs and more: a ranking with ties."""

import json

import pytest
from decision_runs import make_run


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Two that cannot be told apart, and one that is worse beyond doubt."""
    path = tmp_path_factory.mktemp("three")
    good = [1.0] * 160 + [0.0] * 40
    close = [0.0, *good[1:]]
    return [
        make_run(path / name, scores)
        for name, scores in (("low", [0.0] * 60 + good[60:]), ("good", good), ("close", close))
    ]


def test_ties_share_a_rank_and_the_worse_run_comes_last(nel, three):
    code, out, _ = nel("compare", *three, "--format", "json")
    assert code == 0
    (ranking,) = json.loads(out)["rankings"]
    assert [(run["rank"], run["path"].rsplit("/")[-1]) for run in ranking["runs"]] == [
        (1, "good"),
        (1, "close"),
        (3, "low"),
    ]
    assert ranking["runs"][0]["tied_with"] == [str(three[2])]
    assert ranking["runs"][2]["tied_with"] == []
    assert len(ranking["pairs"]) == 3
    assert all(one["p_adjusted"] >= one["p_value"] for one in ranking["pairs"])


def test_the_page_shows_intervals_and_ties(nel, three):
    _, out, _ = nel("compare", *three)
    assert "Not separable from" in out
    assert "0.800 [" in out


def test_copies_of_one_run_are_all_first(nel, three):
    _, out, _ = nel("compare", three[1], three[1], three[1], "--format", "json")
    assert [run["rank"] for run in json.loads(out)["rankings"][0]["runs"]] == [1, 1, 1]


def test_options_that_mean_nothing_for_a_ranking_are_refused(nel, three):
    code, _, err = nel("compare", *three, "--max-drop", "0.1")
    assert code == 64
    assert "--max-drop" in err
