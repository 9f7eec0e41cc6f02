"""Results of other tools are read as runs, so that teams can compare across tools."""

from __future__ import annotations

import json
import zipfile

import pytest
from openai_server import FakeOpenAI, prompt_text

from nel.cli.main import main
from nel.core.errors import RunDirError
from nel.reporting.run_view import open_run

ROWS = 40


def nemo_row(number, repeat=0, **more):
    return {
        "problem_idx": number,
        "repeat": repeat,
        "reward": float(number % 4 != 0),
        "scorer_rewards": {"length": 3.0},
        "prompt": f"What is {number} + 0?",
        "model_response": str(number),
        "extracted_answer": str(number),
        "expected_answer": number,
        "scoring_details": {"method": "numeric"},
        "metadata": {"category": "even" if number % 2 == 0 else "odd"},
        "tokens": 7,
        "latency_ms": 12.5,
        **more,
    }


@pytest.fixture
def nemo(tmp_path):
    """A result directory with one benchmark."""
    folder = tmp_path / "nemo" / "sums"
    folder.mkdir(parents=True)
    bundle = {
        "run_id": "abc",
        "config": {"benchmark": "sums", "model": "theirs", "repeats": 1},
        "benchmark": {"name": "sums", "samples": ROWS, "repeats": 1, "scores": {"pass@1": {"value": 0.75}}},
        "n_results": ROWS,
    }
    (folder / "eval-20260101T000000-sums.json").write_text(json.dumps(bundle))

    def write(rows):
        (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path / "nemo"

    write.folder = folder
    return write


def test_a_nemo_evaluator_directory_is_a_run(nemo):
    run = open_run(nemo([nemo_row(number) for number in range(ROWS)]))
    (cell,) = run.cells()
    assert (run.kind, cell.benchmark, cell.model, cell.problems) == ("nemo-evaluator", "sums", "theirs", ROWS)
    headline = cell.headline_metric
    assert (cell.headline, headline.value, headline.n) == ("pass@1", 0.75, ROWS)
    assert headline.ci_lower < 0.75 < headline.ci_upper
    units = list(run.units(cell))
    assert units[5].category == "odd"
    detail = run.detail(cell, units[5])
    assert (detail.messages[0]["content"], detail.answer, detail.expected) == ("What is 5 + 0?", "5", 5)


def test_errors_and_null_rewards_are_no_zeros(nemo):
    rows = [nemo_row(0, reward=0.0, scoring_details={"error": "timeout"}), nemo_row(1, reward=None), nemo_row(2)]
    (cell,) = open_run(nemo(rows)).cells()
    assert (cell.counts.scored, cell.counts.unscored, cell.counts.error) == (1, 1, 1)
    assert cell.headline_metric.value == 1.0


def test_the_same_questions_are_paired_with_those_of_a_run_of_ours(nemo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    theirs = nemo([nemo_row(number) for number in range(ROWS)])
    (tmp_path / "sums.py").write_text(
        "from nel import benchmark, scorer\n"
        f"ROWS = [{{'q': f'What is {{n}} + 0?', 'target': n}} for n in range({ROWS})]\n"
        "@benchmark(name='sums', dataset=lambda: ROWS, prompt='{q}')\n@scorer\n"
        "def sums(sample):\n    return sample.response == str(sample.target)\n"
    )
    with FakeOpenAI(lambda body: prompt_text(body).split()[2]) as server:
        model = ["--model-url", f"{server.url}/v1", "--model-id", "ours"]
        assert main(["eval", "run", "--bench", "sums.py", *model, "-o", "ours"]) == 0
    capsys.readouterr()
    main(["compare", str(theirs), "ours", "--no-strict"])
    assert "40 paired problems" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["eval", "report"], ["export", "-d", "csv", "-o", "x"]])
def test_other_commands_take_them_too(nemo, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = nemo([nemo_row(number) for number in range(ROWS)])
    assert main([*command, str(path)]) == 0
    assert "sums" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "results.jsonl").unlink(), "has no results.jsonl beside it"),
        (lambda folder: (folder / "results.jsonl").write_text('{"problem_idx": 0, "rew'), "results.jsonl:1"),
        (
            lambda folder: (folder / "results.jsonl").write_text('{"problem_idx": 0, "reward": NaN}\n'),
            "results.jsonl:1: it holds NaN",
        ),
        (
            lambda folder: (folder / "results.jsonl").write_text(json.dumps(nemo_row(0, reward="high")) + "\n"),
            "reward: 'high' is no finite number",
        ),
        (lambda folder: next(folder.glob("eval-*")).write_text('{"run_id"'), "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_file(nemo, spoil, said):
    path = nemo([nemo_row(number) for number in range(3)])
    spoil(nemo.folder)
    with pytest.raises(RunDirError) as caught:
        open_run(path).cells()
    assert said in str(caught.value)
    assert str(nemo.folder) in str(caught.value)


SPEC = {
    "created": "2026-01-01T00:00:00+00:00",
    "task": "sums",
    "dataset": {"samples": 4},
    "model": "openai/theirs",
    "config": {"epochs": 1},
    "run_id": "r",
}


def inspect_sample(number, value, **more):
    return {
        "id": number,
        "epoch": 1,
        "input": f"What is {number}?",
        "target": str(number),
        "scores": {"match": {"value": value, "answer": str(number), "explanation": "seen"}},
        "output": {
            "choices": [{"message": {"role": "assistant", "content": str(number)}}],
            "usage": {"total_tokens": 9},
            "time": 0.5,
        },
        **more,
    }


SAMPLES = [
    inspect_sample(1, "C"),
    inspect_sample(2, "I"),
    inspect_sample(3, float("nan")),
    inspect_sample(10, "C", error={"message": "boom", "traceback": ""}),
]


@pytest.fixture(params=["eval", "json"])
def inspect_log(request, tmp_path):
    path = tmp_path / f"log.{request.param}"
    log = {"version": 2, "status": "success", "eval": SPEC}
    if request.param == "json":
        path.write_text(json.dumps({**log, "samples": SAMPLES}))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(log))
        for sample in SAMPLES:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return path


def test_a_log_of_inspect_is_a_run(inspect_log):
    run = open_run(inspect_log)
    (cell,) = run.cells()
    assert (run.kind, cell.benchmark, cell.model) == ("inspect", "sums", "theirs")
    assert (cell.counts.scored, cell.counts.unscored, cell.counts.error) == (2, 1, 1)
    assert cell.headline_metric.value == 0.5
    units = list(run.units(cell))
    assert [unit.problem_id for unit in units] == ["1", "2", "3", "10"]
    detail = run.detail(cell, units[0])
    assert (detail.answer, detail.expected, units[0].latency_ms, units[0].tokens) == ("1", "1", 500.0, 9)


def test_a_broken_log_says_how_to_recover_it(tmp_path):
    (tmp_path / "log.eval").write_bytes(b"PK\x03\x04 half an archive")
    with pytest.raises(RunDirError, match=r"(?s)no whole log.*inspect log recover"):
        open_run(tmp_path / "log.eval")
