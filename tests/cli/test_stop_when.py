"""A benchmark that ends when enough is known: at the same problem in any order of answers, also after a kill."""

from __future__ import annotations

import json
import random

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI, prompt_text

from nel.cli.main import main

ROWS = 400
BENCHMARK = f"""
from nel import benchmark, scorer

@benchmark(name="coin", dataset=lambda: [{{"q": f"q{{n}}", "target": "yes", "kind": str(n % 3)}} for n in range({ROWS})],
           prompt="{{q}}", category_field="kind")
@scorer
def coin(sample):
    return sample.response == "yes"
"""


def knows(rate):
    return lambda body: "yes" if random.Random(prompt_text(body) + str(rate)).random() < rate else "no"


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coin.py").write_text(BENCHMARK)
    return tmp_path


def run(server, out, *more, rule=None):
    rules = ["-O", f"benchmarks[0].stop_when={rule}"] if rule else []
    model = ["--model-url", f"{server.url}/v1", "--model-id", "fake"]
    return main(["eval", "run", "--bench", "coin.py", *model, "-o", str(out), *rules, *more])


def bundle(out):
    return json.loads((out / "coin/eval-coin.json").read_text())


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


RULE = "{half_width: 0.1}"


def test_it_ends_with_an_interval_as_narrow_as_asked_for_and_says_so(work):
    with FakeOpenAI(knows(0.9)) as server:
        assert run(server, work / "out", rule=RULE) == 0
        assert server.count < ROWS
    found = bundle(work / "out")
    score = found["benchmark"]["scores"]["pass@1"]
    assert score["ci_upper"] - score["ci_lower"] <= 0.2
    assert score["method"].startswith("confidence sequence")
    assert found["sequential"]["problems"] == score["n"] == found["counts"]["planned"] < ROWS
    assert found["sequential"]["planned"] == ROWS
    assert {value["ci_lower"] for value in found["benchmark"]["categories"].values()} == {None}


def test_what_was_attempted_beyond_the_end_is_kept_and_not_counted(work):
    with FakeOpenAI(knows(0.9)) as server:
        run(server, work / "out", rule=RULE)
        sent = server.count
    counted = lines(work / "out/coin/results.jsonl")
    beyond = [line for line in lines(work / "out/coin/superseded.jsonl") if line["schema"].startswith("nel.attempt")]
    assert len(counted) == bundle(work / "out")["sequential"]["problems"]
    assert len(counted) + len(beyond) == sent


@pytest.mark.parametrize("concurrency", ["7", "64"])
def test_the_end_does_not_depend_on_who_answers_first(work, concurrency):
    with FakeOpenAI(knows(0.9)) as server:
        run(server, work / "one", "--max-concurrent", "1", rule=RULE)
        # The wrong answers come late: whoever counted what is there first would see too good a model.
        server.rule = lambda body, number: Fault.slow(0.05) if knows(0.9)(body) == "no" else None
        run(server, work / "out", "--max-concurrent", concurrency, rule=RULE)
    assert bundle(work / "out")["sequential"] == bundle(work / "one")["sequential"]


def test_a_resume_ends_where_the_run_would_have(work):
    with FakeOpenAI(knows(0.9)) as server:
        run(server, work / "whole", rule=RULE)
        end = bundle(work / "whole")["sequential"]
        run(server, work / "out", "--max-problems", "20")
        (work / "out/coin/eval-coin.json").unlink()
        before = server.count
        assert run(server, work / "out", "--resume", rule=RULE) == 0
        assert server.count - before <= end["problems"] - 20 + 64
        again = server.count
        assert run(server, work / "out", "--resume", rule=RULE) == 0
        assert server.count == again
    assert bundle(work / "out")["sequential"] == end


@pytest.mark.parametrize(("rate", "worse"), [(0.95, False), (0.3, True)])
def test_it_ends_when_it_is_decided_whether_the_candidate_is_worse(work, rate, worse):
    with FakeOpenAI(knows(0.9)) as server:
        run(server, work / "baseline")
    with FakeOpenAI(knows(rate)) as server:
        rule = f"{{decides: {{baseline: {work / 'baseline'}, max_drop: 0.2}}}}"
        assert run(server, work / "out", rule=rule) == 0
    found = bundle(work / "out")["sequential"]
    lower, upper = found["difference"]
    assert found["problems"] < ROWS
    assert (upper < -0.2) if worse else (lower >= -0.2)


def test_without_enough_problems_it_runs_to_the_end_and_tells_what_is_known(work):
    with FakeOpenAI(knows(0.5)) as server:
        assert run(server, work / "out", rule="{half_width: 0.01}") == 0
        assert server.count == ROWS
    assert bundle(work / "out")["sequential"]["problems"] == ROWS


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("{half_width: 0.1, decides: {baseline: x}}", "either `half_width` or `decides`"),
        ("{}", "either `half_width` or `decides`"),
        ("{decides: {baseline: nowhere}}", "nowhere"),
        ("{half_wdith: 0.1}", "half_width"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(work, capsys, rule, said):
    with FakeOpenAI(knows(0.5)) as server:
        assert run(server, work / "out", rule=rule) == 64
        assert server.count == 0
    assert said in capsys.readouterr().err


def test_shards_and_a_fixed_order_are_refused(work, capsys, monkeypatch):
    with FakeOpenAI(knows(0.5)) as server:
        assert run(server, work / "out", "-O", "benchmarks[0].shuffle_seed=null", rule=RULE) == 64
        assert "random order" in capsys.readouterr().err
        monkeypatch.setenv("NEL_SHARD_IDX", "0")
        monkeypatch.setenv("NEL_TOTAL_SHARDS", "2")
        assert run(server, work / "out", rule=RULE) == 64
        assert "shards" in capsys.readouterr().err
