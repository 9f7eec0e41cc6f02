"""`nel eval rescore` with another scorer or judge: what changed and why is printed, and earlier scores are kept."""

import json
import re

import pytest
from openai_server import FakeOpenAI, prompt_text

from nel.cli.main import main

BENCHMARK = """
from nel import benchmark, scorer

@benchmark(name="echo", dataset="echo.jsonl", prompt="{question}", target_field="answer")
@scorer
def echo(sample):
    return sample.response == sample.target
"""
OWN = "def loud(sample):\n    return sample.response.upper() == sample.target.upper()\n"
JUDGED = "{metrics: [{type: judge, name: quality, service: j, rubric: Be exact., max_retries: 0}]}"
ROWS = 6


def mark(body):
    """The strict judge gives 1 to odd words, the kind one 5 to all."""
    odd = int(re.search(r"word(\d+)", prompt_text(body), re.IGNORECASE)[1]) % 2
    return f'{{"score": {1 if body["model"] == "strict" and odd else 5}}}'


@pytest.fixture
def model():
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def judge():
    with FakeOpenAI(mark) as server:
        yield server


@pytest.fixture
def ran(tmp_path, model, judge, monkeypatch, capsys):
    """Makes a run with a `scoring`; the word in front of each answer is written in another case."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "echo.py").write_text(BENCHMARK)
    rows = [{"question": f"Word{n}", "answer": f"word{n}" if n else "Word0"} for n in range(ROWS)]
    (tmp_path / "echo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(scoring="{}"):
        (tmp_path / "suite.yaml").write_text(
            f"services:\n  m: {{type: api, url: '{model.chat_url}', model: pupil}}\n"
            f"  j: {{type: api, url: '{judge.chat_url}', model: strict}}\n"
            f"  k: {{type: api, url: '{judge.chat_url}', model: kind}}\n"
            f"benchmarks:\n  - {{name: echo.py, solver: {{type: simple, service: m}}, scoring: {scoring}}}\n"
            "output: {dir: run}\n"
        )
        assert main(["eval", "run", "suite.yaml"]) == 0
        capsys.readouterr()
        return tmp_path / "run" / "echo"

    return run


def rescored(capsys, *arguments):
    code = main(["eval", "rescore", "run", *arguments])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def rewards(cell, name="results.jsonl"):
    return [json.loads(line)["reward"] for line in (cell / name).read_text().splitlines()]


def test_another_scorer_gives_the_reward_and_the_earlier_scores_are_kept(ran, model, capsys):
    cell = ran()
    asked = model.count
    printed = rescored(capsys, "--scorer", "fuzzy_match")
    assert re.search(r"echo +pass@1|echo +mean_reward", printed)
    assert f"{ROWS - 1} higher" in printed
    assert "metrics.fuzzy_match: none -> a scorer" in printed
    assert "primary: default -> fuzzy_match" in printed
    assert model.count == asked
    assert rewards(cell) == [1.0] * ROWS
    assert sorted(rewards(cell, "superseded.jsonl")) == [0.0] * (ROWS - 1) + [1.0]
    score = json.loads((cell / "results.jsonl").read_text().splitlines()[1])
    assert score["scorer_rewards"]["default"]["value"] == 0.0
    assert "as before" not in printed
    bundle = json.loads((cell / "eval-echo.json").read_text())
    assert bundle["config"]["scorers"] == bundle["identity"]["scoring"]
    assert bundle["config"]["scorers"]["primary"] == "fuzzy_match"


def test_rescoring_without_flags_goes_back_to_the_config_and_measures_nothing(ran, capsys):
    cell = ran()
    before = (cell / "results.jsonl").read_bytes()
    rescored(capsys, "--scorer", "fuzzy_match")
    found = json.loads(rescored(capsys, "--json"))
    assert found["cells"][0]["changes"] == {
        "higher": 0, "lower": ROWS - 1, "newly_scored": 0, "no_longer_scored": 0, "measured": 0,
    }  # fmt: skip
    assert (cell / "results.jsonl").read_bytes() == before


def test_a_scorer_of_ones_own_is_named_by_file_and_function(ran, capsys):
    cell = ran()
    rescored(capsys, "--scorer", "mine.py:loud", "--scorer", "exact_match")
    assert rewards(cell) == [1.0] * ROWS
    score = json.loads((cell / "results.jsonl").read_text().splitlines()[0])
    assert score["scorer_rewards"].keys() == {"default", "loud", "exact_match"}
    assert (cell / "code" / "mine.py").exists()


def test_another_judge_goes_by_the_same_rubric(ran, model, judge, capsys):
    ran(JUDGED)
    asked, before = model.count, judge.count
    printed = rescored(capsys, "--judge", "k")
    assert "3 higher" in printed
    assert "metrics.quality.judge.service.model: strict -> kind" in printed
    assert (model.count - asked, judge.count - before) == (0, ROWS)
    assert {body["model"] for body in judge.bodies[before:]} == {"kind"}
    assert "Be exact." in prompt_text(judge.bodies[-1])
    assert "as before" in rescored(capsys, "--judge", "k")
    assert judge.count - before == ROWS


def test_a_run_without_a_judge_gets_one_even_one_that_its_config_did_not_know(ran, judge, capsys):
    cell = ran()
    service = f"services.new={{type: api, url: '{judge.chat_url}', model: strict}}"
    printed = rescored(capsys, "--judge", "new", "-O", service)
    assert "primary: default -> judge" in printed
    assert rewards(cell) == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]


def test_answers_that_a_judge_could_not_grade_are_measured_again_and_no_others(ran, judge, capsys):
    judge.answer = lambda body: "well" if "Word2" in prompt_text(body) else mark(body)
    ran(JUDGED)
    judge.answer, before = mark, judge.count
    printed = rescored(capsys)
    assert "1 newly scored" in printed
    assert "measured again, by the same scorers" in printed
    assert judge.count - before == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--judge", "jj"), "no service 'jj'"),
        (("--judge", "m"), "would judge its own answers"),
        (("--scorer", "exact_mach"), "Did you mean 'exact_match'"),
        (("--scorer", "mine.py:lowd"), "lowd"),
    ],
)
def test_what_cannot_measure_is_refused_and_leaves_the_run_as_it_is(ran, model, judge, capsys, arguments, message):
    cell = ran()
    files = {path: path.read_bytes() for path in cell.parent.rglob("*") if path.is_file()}
    asked = model.count + judge.count
    assert main(["eval", "rescore", "run", *arguments]) == 64
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in cell.parent.rglob("*") if path.is_file()} == files
    assert model.count + judge.count == asked


def test_a_secret_that_a_judge_repeats_is_kept_nowhere(ran, judge, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("OTHER_KEY", "a-secret-of-the-judge")
    ran()
    judge.answer = lambda _: 'Your key is a-secret-of-the-judge. {"score": 5}'
    service = f"services.new={{type: api, url: '{judge.chat_url}', model: strict, api_key: '${{OTHER_KEY}}'}}"
    rescored(capsys, "--judge", "new", "-O", service)
    assert judge.count == ROWS
    assert [
        path for path in (tmp_path / "run").rglob("*") if path.is_file() and b"a-secret-of" in path.read_bytes()
    ] == []
