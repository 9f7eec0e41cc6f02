"""A run that is killed, wherever, ends after resuming in the files of one that was not."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest_engine import add
from openai_server import FakeOpenAI

from nel.core.rundir import RunDir
from nel.observability.volatile import mask

JOB = Path(__file__).with_name("sums_job.py")
COUNT = 40


def job(server, directory, mode="", **options):
    url = f"{server.url}/v1/chat/completions"
    return subprocess.Popen(
        [sys.executable, "-W", "error", JOB, url, directory, str(COUNT), mode], stderr=subprocess.PIPE, **options
    )


def finish(server, directory):
    process = job(server, directory)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()


def state(directory):
    """Every file of the cell, with volatile fields masked."""
    import msgspec

    cell = directory / "sums"
    lines = {
        log: [mask(msgspec.json.decode(line), log) for line in (cell / log).read_bytes().splitlines()]
        for log in ("trajectories.jsonl", "results.jsonl")
    }
    derived = {
        name: mask(msgspec.json.decode((cell / name).read_bytes()), name)
        for name in ("eval-sums.json", "runtime_stats.json", "failure_analysis.json")
    }
    return {**lines, **derived}


@pytest.fixture(scope="module")
def server():
    with FakeOpenAI(add) as fake:
        yield fake


@pytest.fixture(scope="module")
def uninterrupted(server, tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole") / "run"
    finish(server, directory)
    return state(directory)


@pytest.mark.parametrize("requests", [1, 23, 64])
def test_a_kill_after_any_number_of_requests_loses_nothing(server, uninterrupted, tmp_path, requests):
    reached, start = threading.Event(), server.count
    server.rule = lambda _body, _n: reached.set() if server.count - start >= requests else None
    process = job(server, tmp_path / "run")
    assert reached.wait(30)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    server.rule = None
    asked = server.count
    finish(server, tmp_path / "run")
    assert state(tmp_path / "run") == uninterrupted
    assert server.count - asked <= 2 * COUNT


@pytest.mark.parametrize("calls", [1, 79])
def test_a_kill_while_scoring_loses_nothing(server, uninterrupted, tmp_path, calls):
    process = job(server, tmp_path / "run", f"verify:{calls}")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    finish(server, tmp_path / "run")
    assert state(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize(
    "step", [*(f"file:replace:{n}" for n in (2, 4, 6, 7, 8, 9, 10, 11, 12)), *(f"file:fsync:{n}" for n in (1, 5, 13))]
)
def test_a_kill_at_any_file_operation_loses_nothing(server, uninterrupted, tmp_path, step):
    process = job(server, tmp_path / "run", step)
    process.communicate(timeout=60)
    assert process.returncode in {-signal.SIGKILL, 0}
    finish(server, tmp_path / "run")
    assert state(tmp_path / "run") == uninterrupted


def test_a_finished_attempt_is_not_asked_again_after_a_kill(server, tmp_path):
    """Killed at the last score: all answers that were durable are found again."""
    process = job(server, tmp_path / "run", "file:replace:9")
    process.communicate(timeout=60)
    held = len((tmp_path / "run" / "sums" / "trajectories.jsonl").read_bytes().splitlines())
    asked = server.count
    finish(server, tmp_path / "run")
    assert server.count - asked == 2 * COUNT - held


def test_ctrl_c_keeps_partial_results_and_says_interrupted(server, tmp_path):
    reached, start = threading.Event(), server.count
    server.rule = lambda _body, _n: reached.set() if server.count - start >= 30 else None
    process = job(server, tmp_path / "run")
    assert reached.wait(30)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    server.rule = None
    assert process.returncode != 0
    manifest = RunDir.read(tmp_path / "run")
    assert manifest.stage in {"interrupted", "completed"}, errors.decode()
    assert (tmp_path / "run" / "sums" / "eval-sums.json").exists()
