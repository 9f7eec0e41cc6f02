"""The commands around a run directory: status, logs, stop, resume, report, merge, rescore."""

import json
import shutil
import subprocess
import sys
import threading

import pytest
from openai_server import FakeOpenAI
from sums_benchmark import SOURCE, right

from nel.cli.keys import ANY_ENDPOINT, BY_DOMAIN
from nel.cli.main import main


@pytest.fixture
def server():
    with FakeOpenAI(right) as running:
        yield running


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    for name in (*ANY_ENDPOINT, *BY_DOMAIN):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "sums.py").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def run(server, work, capsys):
    """A completed run in `out`."""
    assert main(quick(server, "-o", "out")) == 0
    capsys.readouterr()
    return work / "out"


def quick(server, *more):
    return ["eval", "run", "--bench", "sums.py", "--model-url", f"{server.url}/v1", *more]


def document(capsys, *arguments):
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def words_of_lines(capsys):
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def mark_running(run):
    """The state in which a killed process leaves its directory."""
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"stage": "running"}))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    owner = json.loads((run / "nel.pid").read_text())
    (run / "nel.pid").write_text(json.dumps(owner | {"pid": ended.pid}))


def test_status_counts_attempts_by_outcome(run, capsys):
    code, state = document(capsys, "eval", "status", "out")
    assert (code, state["stage"], state["running"]) == (0, "completed", False)
    (cell,) = state["cells"]
    assert (cell["cell"], cell["planned"], cell["scored"], cell["error"]) == ("sums", 6, 6, 0)
    assert main(["eval", "status", "out"]) == 0
    assert any(
        line.split() == ["sums", "completed", "6", "6", "6", "0", "0"] for line in capsys.readouterr().out.splitlines()
    )


def test_status_tells_a_killed_run_from_one_that_goes_on(run, capsys):
    mark_running(run)
    assert main(["eval", "status", "out"]) == 0
    assert "was killed; `nel eval resume out` continues it" in capsys.readouterr().out


def test_a_command_without_a_directory_takes_the_newest_run(server, capsys):
    assert main(quick(server)) == 0
    assert main(quick(server, "--max-problems", "2")) == 0
    capsys.readouterr()
    _, state = document(capsys, "eval", "status")
    assert state["cells"][0]["planned"] == 2


def test_a_command_without_a_directory_says_what_to_name_where_there_is_no_run(capsys):
    assert main(["eval", "report"]) == 64
    assert "-o" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "stop", "logs", "resume", "report", "merge", "rescore"])
def test_what_is_no_run_is_refused(work, capsys, command):
    (work / "other").mkdir()
    (work / "other/file").touch()
    assert main(["eval", command, "other"]) == 64
    assert "other" in capsys.readouterr().err


def test_stop_fails_when_there_is_nothing_to_stop(run, capsys):
    assert main(["eval", "stop", "out"]) == 1
    assert "Nothing to stop" in capsys.readouterr().err


def test_a_run_in_the_background_can_be_followed_and_stopped(server, work, capsys):
    second = threading.Event()
    server.rule = lambda body, number: second.set() if number == 1 else None
    server.delay = 0.5
    assert main(quick(server, "-o", "out", "--background", "--max-concurrent", "1")) == 0
    assert "nel eval status out" in capsys.readouterr().out
    assert second.wait(30)
    assert document(capsys, "eval", "status", "out")[1]["running"]
    assert main(["eval", "stop", "out"]) == 0
    _, state = document(capsys, "eval", "status", "out")
    assert (state["running"], state["stage"]) == (False, "interrupted")
    assert main(["eval", "logs", "out", "--follow"]) == 0
    assert "sums" in capsys.readouterr().out


def test_resume_needs_nothing_but_the_directory(server, run, work, capsys):
    server.requests.clear()
    moved = work / "moved"
    shutil.move(run, moved)
    assert main(["eval", "resume", "moved"]) == 0
    assert server.requests == []
    assert main(["eval", "resume", "moved", "-O", "benchmarks[0].repeats=2"]) == 0
    assert len(server.requests) == 6
    assert not (work / "out").exists()


def test_resume_goes_on_after_a_kill(server, run, capsys):
    mark_running(run)
    results = (run / "sums/results.jsonl").read_text().splitlines(keepends=True)
    attempts = (run / "sums/trajectories.jsonl").read_text().splitlines(keepends=True)
    (run / "sums/results.jsonl").write_text("".join(results[:4]))
    (run / "sums/trajectories.jsonl").write_text("".join(attempts[:5]))
    (run / "checkpoint.json").unlink()
    before = server.count
    assert main(["eval", "resume", "out"]) == 0
    assert server.count - before == 1
    assert len((run / "sums/results.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize(("form", "begins"), [("console", "Run "), ("markdown", "# "), ("json", "{")])
def test_report_prints_each_form(run, capsys, form, begins):
    assert main(["eval", "report", "out", "--format", form]) == 0
    assert capsys.readouterr().out.startswith(begins)


def test_report_writes_a_file(run, work, capsys):
    assert main(["eval", "report", "out", "-f", "json", "-o", "here.json"]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads((work / "here.json").read_text())["benchmarks"]["sums"]["stage"] == "completed"


def test_a_form_that_is_not_there_is_refused_with_those_that_are(run, capsys):
    assert main(["eval", "report", "out", "-f", "markdwon"]) == 64
    assert "markdown" in capsys.readouterr().err


def test_report_of_a_killed_run_shows_what_there_is(run, capsys):
    mark_running(run)
    assert main(["eval", "report", "out"]) == 0
    assert "has not finished" in capsys.readouterr().out


def test_shards_merge_into_one_run(server, work, capsys, monkeypatch):
    monkeypatch.setenv("NEL_TOTAL_SHARDS", "2")
    for index in ("0", "1"):
        monkeypatch.setenv("NEL_SHARD_IDX", index)
        assert main(quick(server, "-o", "out")) == 0
    monkeypatch.delenv("NEL_TOTAL_SHARDS")
    monkeypatch.delenv("NEL_SHARD_IDX")
    capsys.readouterr()
    code, result = document(capsys, "eval", "merge", "out")
    assert (code, result["run_dir"]) == (0, "out/merged")
    assert result["report"]["benchmarks"]["sums"]["samples"] == 6
    assert (work / "out/merged/report.md").is_file()


def test_a_shard_is_resumed_as_the_shard_that_it_is(server, work, monkeypatch):
    monkeypatch.setenv("NEL_TOTAL_SHARDS", "2")
    monkeypatch.setenv("NEL_SHARD_IDX", "1")
    assert main(quick(server, "-o", "out")) == 0
    monkeypatch.delenv("NEL_TOTAL_SHARDS")
    monkeypatch.delenv("NEL_SHARD_IDX")
    assert main(["eval", "resume", "out/shard_1"]) == 0
    assert server.count == 3
    assert sorted(path.name for path in (work / "out").iterdir()) == ["shard_1"]


def test_a_missing_shard_is_named(server, capsys, monkeypatch):
    monkeypatch.setenv("NEL_TOTAL_SHARDS", "3")
    monkeypatch.setenv("NEL_SHARD_IDX", "0")
    assert main(quick(server, "-o", "out")) == 0
    assert main(["eval", "merge", "out"]) == 64
    assert "1, 2" in capsys.readouterr().err


def test_rescore_grades_again_without_a_request(server, run, work, capsys):
    before = server.count
    (work / "sums.py").write_text(SOURCE.replace("== sample.target", "!= sample.target"))
    code, result = document(capsys, "eval", "rescore", "out")
    assert code == 0
    assert server.count == before
    (cell,) = result["cells"]
    assert (cell["cell"], cell["metric"], cell["before"], cell["after"]) == ("sums", "pass@1", 1.0, 0.0)
    assert cell["changes"]["lower"] == 6
    assert cell["why"]
    assert main(["eval", "rescore", "out"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("sums")]
    assert line.split()[:4] == ["sums", "pass@1", "0.000", "0.000"]
