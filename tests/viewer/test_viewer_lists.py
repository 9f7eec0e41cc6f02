"""What the viewer answers: runs found, attempts filtered, ordered and paged, pairs of two runs, and clear refusals."""

import time
from urllib.parse import urlencode

import pytest
from browser import serving
from viewer_runs import get, two_runs

from nel.core.errors import RunDirError
from nel.reporting.viewer.library import Library
from nel.reporting.viewer.queries import Wish


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return two_runs(tmp_path_factory.mktemp("lists") / "runs")


@pytest.fixture(scope="module")
def address(runs):
    with serving(runs, cache=runs.parent / "cache") as found:
        yield found


@pytest.fixture(scope="module")
def idents(runs):
    return {entry.path.name: entry.ident for entry in Library([runs], runs.parent / "cache").entries()}


@pytest.fixture
def ask(address, idents):
    def asking(path="samples", **wish):
        status, _, value = get(f"{address}/api/run/{idents['first']}/{path}?{urlencode(wish)}")
        assert status == 200, value
        return value

    return asking


def ids(answer):
    return [row["id"] for row in answer["rows"]]


def test_a_page_holds_the_attempts_in_order(ask):
    answer = ask(start=20, end=23)
    assert (answer["count"], answer["total"], answer["note"]) == (60, 60, "")
    assert ids(answer) == ["s20", "s21", "s22"]
    assert answer["rows"][0] | {"pos": 0} == {
        "pos": 0,
        "cell": 0,
        "id": "s20",
        "idx": 20,
        "repeat": 0,
        "outcome": "scored",
        "category": "even",
        "failure": "",
        "value": 1.0,
        "tokens": 6,
        "latency": 30.0,
        "question": "20+1?",
        "answer": "21",
        "expected": "21",
    }


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"standing": "wrong"}, ["s3", "s5"]),
        ({"outcome": "unscored"}, ["s8"]),
        ({"failure": "unscorable"}, ["s8"]),
        ({"standing": "wrong", "category": "even"}, []),
        ({"text": "17+1"}, ["s17"]),
        ({"text": "17 S1 odd"}, ["s17"]),
        ({"text": "%"}, []),
        ({"sort": "value", "end": 3}, ["s3", "s5", "s0"]),
        ({"sort": "-latency", "end": 2}, ["s59", "s58"]),
        ({"sort": "-value", "start": 57}, ["s3", "s5", "s8"]),
        ({"cell": 0, "start": 58}, ["s58", "s59"]),
        ({"cell": 7}, []),
    ],
)
def test_filters_and_orders(ask, wish, expected):
    assert ids(ask(**wish)) == expected


def test_an_attempt_opens_by_position_and_by_its_place_in_the_plan(ask):
    by_place = ask("sample", cell=0, idx=3, repeat=0)
    assert by_place == ask("sample", pos=by_place["row"]["pos"])
    assert by_place["detail"]["messages"] == [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "3+1?"},
    ]
    assert (by_place["detail"]["answer"], by_place["detail"]["expected"]) == ("0", "4")
    assert by_place["detail"]["values"] == {"length": 1.0, "reward": 0.0}


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("samples?colour=red", 400, "no filter colour"),
        ("samples?sort=name", 400, "none of value, tokens, latency"),
        ("samples?standing=odd", 400, "none of right, wrong, partial"),
        ("samples?start=-1", 400, "whole numbers"),
        ("samples?cell=x", 400, "no filter cell=x"),
        ("sample?pos=9999", 404, "no such attempt"),
        ("sample?cell=0&idx=999&repeat=0", 404, "no such attempt"),
        ("sample", 400, "Name an attempt"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_reason(address, idents, path, status, words):
    found, _, body = get(f"{address}/api/run/{idents['first']}/{path}")
    assert found == status
    assert words in body


def test_an_unknown_run_is_a_page_that_says_so(address):
    status, _, body = get(f"{address}/run/000000000000")
    assert status == 404
    assert "There is no such run here." in body


def test_the_state_lists_what_can_be_filtered(ask, address, idents):
    _, _, state = get(f"{address}/api/run/{idents['first']}")
    assert (state["stage"], state["done"], state["planned"]) == ("completed", 60, 60)
    assert state["outcomes"] == [["scored", 59], ["unscored", 1]]
    assert dict(state["categories"]) == {"even": 30, "odd": 30}


def test_pairs_tell_what_became_worse_and_better(address, idents):
    base = f"{address}/api/compare/{idents['first']}/{idents['second']}"

    def pairs(**wish):
        return get(f"{base}/samples?{urlencode({'cell': 0, 'other': 0, **wish})}")[2]

    assert (pairs()["count"], pairs()["total"]) == (60, 60)
    assert ids(pairs(change="worse")) == ["s10"]
    assert ids(pairs(change="better")) == ["s3"]
    assert ids(pairs(change="unmeasured")) == ["s8"]
    assert pairs(change="same")["count"] == 57
    (row,) = pairs(change="worse")["rows"]
    assert (row["value"], row["other_value"]) == (1.0, 0.0)
    both = get(f"{base}/sample?pos={row['pos']}&other={row['other']}")[2]
    assert [side["detail"]["answer"] for side in both] == ["11", "0"]


def test_the_page_of_two_runs_counts_pairs_and_their_difference(address, idents):
    _, _, page = get(f"{address}/compare/{idents['first']}/{idents['second']}")
    for change, count in (("worse", 1), ("better", 1), ("same", 57), ("unmeasured", 1)):
        assert f'data-change="{change}"><b>{count}</b>' in page
    assert f"/compare/{idents['second']}/{idents['first']}?cell=0&amp;other=0" in page


def test_problems_with_another_expected_answer_are_no_pairs(runs, tmp_path):
    from viewer_runs import Adder, Sums, evaluate

    evaluate(tmp_path / "changed", Sums(60, gold=2), Adder())
    with serving(runs, tmp_path, cache=tmp_path / "cache") as address:
        found = {entry.path.name: entry.ident for entry in Library([runs, tmp_path], tmp_path / "cache").entries()}
        answer = get(f"{address}/api/compare/{found['first']}/{found['changed']}/samples")[2]
    assert answer["total"] == 0


def test_a_directory_without_runs_is_refused_with_what_it_is(tmp_path):
    with pytest.raises(RunDirError, match="is not a run directory"):
        Library([tmp_path], tmp_path / "cache")
    with pytest.raises(RunDirError, match="does not exist"):
        Library([tmp_path / "nowhere"], tmp_path / "cache")


def test_earlier_runs_that_were_set_aside_are_not_listed(runs):
    places = [entry.place for entry in Library([runs.parent], runs.parent / "cache").entries()]
    assert sorted(place.split("/", 1)[1] for place in places) == ["runs/first", "runs/second"]


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(runs, tmp_path):
    manifest = (runs / "first" / "manifest.json").read_text()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "manifest.json").write_text(manifest.replace('"models"', '"dreams"'))
    with serving(runs, tmp_path, cache=tmp_path / "cache") as address:
        status, _, page = get(address)
    assert status == 200
    assert "runs/first" in page
    assert "is a run of kind &#39;dreams&#39;" in page


def test_a_known_list_is_paged_without_asking_again(ask):
    ask(sort="-tokens")
    started = time.perf_counter()
    ask(sort="-tokens", start=50)
    assert time.perf_counter() - started < 1


def test_a_wish_keeps_conditions_and_values_apart():
    condition, values = Wish(text="a' OR 1=1", category="x'; DROP TABLE units").where(texts=True)
    assert "DROP" not in condition
    assert "OR 1=1" not in condition
    assert values == ["x'; DROP TABLE units", "a'", "or", "1=1"]
