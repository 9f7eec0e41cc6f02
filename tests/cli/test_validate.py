"""`nel validate`: a few problems end to end, and a failure only when nothing could be measured."""

import json
import tempfile

import pytest
from openai_server import FakeOpenAI
from sums_benchmark import SOURCE, right

from nel.cli.main import main


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "sums.py").write_text(SOURCE)
    return tmp_path


def validate(server, *more):
    return main(["validate", "--bench", "sums.py", "--model-url", f"{server.url}/v1", *more])


def test_each_sample_is_shown_with_question_answer_and_verdict(capsys):
    with FakeOpenAI(right) as server:
        assert validate(server, "--samples", "2", "--shuffle-seed", "none") == 0
        assert server.count == 2
    said = capsys.readouterr().out
    assert "sums: 2 of 2 attempts scored" in said
    assert "--- problem 0: reward 1" in said
    assert "system: You add." in said
    assert "user: What is 1 + 2?" in said
    assert "answer: 3" in said
    assert "expected: '3'" in said


def test_a_low_score_is_no_failure():
    with FakeOpenAI(lambda body: "no idea") as server:
        assert validate(server) == 0


def test_a_run_that_could_not_be_measured_is_a_failure_with_the_reason(capsys):
    with FakeOpenAI(right, api_key="another") as server:
        assert validate(server, "--model-id", "fake") == 1
    said = capsys.readouterr().out
    assert "0 of 5 attempts scored" in said
    assert "auth_error" in said


def test_a_benchmark_that_cannot_be_loaded_is_a_failure_with_the_reason(work, capsys):
    (work / "sums.py").write_text("raise RuntimeError('out of order')")
    with FakeOpenAI(right) as server:
        assert validate(server) != 0
    assert "out of order" in capsys.readouterr().err


def test_as_json_the_attempts_are_whole(capsys):
    with FakeOpenAI(right) as server:
        assert validate(server, "-s", "1", "--json", "--shuffle-seed", "none") == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    (attempt,) = cell["attempts"]
    assert (attempt["answer"], attempt["expected"], attempt["reward"]) == ("3", "3", 1.0)


def test_a_long_answer_is_shortened_unless_it_is_wanted_whole(capsys):
    long = "\n".join(f"line {number}" for number in range(40))
    with FakeOpenAI(lambda body: long) as server:
        validate(server, "-s", "1")
        assert "line 39" not in capsys.readouterr().out
        validate(server, "-s", "1", "--full")
        assert "line 39" in capsys.readouterr().out


def test_a_config_is_tried_with_few_problems_and_leaves_nothing_behind(work, capsys):
    with FakeOpenAI(right) as server:
        (work / "suite.yaml").write_text(
            f"services: {{model: {{type: api, url: '{server.chat_url}', model: fake}}}}\n"
            "benchmarks: [{name: sums.py, repeats: 4, solver: {type: simple, service: model}}]\n"
            "output: {dir: results}\n"
        )
        assert main(["validate", "suite.yaml", "--samples", "2"]) == 0
        assert server.count == 2
    assert sorted(path.name for path in work.iterdir() if path.name != ".config") == ["suite.yaml", "sums.py", "tmp"]
    assert list((work / "tmp").iterdir()) == []


def test_a_benchmark_and_a_config_are_not_both_taken(capsys):
    assert main(["validate"]) == 64
    assert main(["validate", "suite.yaml", "--bench", "sums.py"]) == 64
    assert main(["validate", "suite.yaml", "--max-tokens", "3"]) == 64
    assert "-O 'services.NAME.generation.max_tokens=VALUE'" in capsys.readouterr().err
