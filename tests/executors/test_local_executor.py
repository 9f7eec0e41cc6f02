"""A local run can be left alone, looked after, stopped and continued, by real processes against a real server."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI

from nel.core.errors import RunDirError, UsageError
from nel.core.rundir import RunDir
from nel.executors import detect_executor, get_executor
from nel.executors.local import LocalExecutor

NEL = [sys.executable, "-m", "nel"]
KEY = "sk-background-0123456789abcdef"


class Job:
    """A configuration with twenty words to echo, and the commands on its run directory."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.server = server
        self.run_dir = folder / "run"
        (folder / "words.jsonl").write_text("".join(json.dumps({"q": f"w{n}", "a": f"w{n}"}) + "\n" for n in range(20)))
        (folder / "words.py").write_text(
            "from nel import benchmark, scorer\nfrom nel.scoring import exact_match\n\n"
            "@benchmark(name='words', dataset='words.jsonl', prompt='{q}', target_field='a')\n"
            "@scorer\ndef words(sample):\n    return exact_match(sample)\n"
        )
        self.config = folder / "suite.yaml"
        self.config.write_text(
            f"services:\n  m: {{type: api, url: '{server.url}/v1/chat/completions', model: fake}}\n"
            f"benchmarks:\n  - {{name: '{folder}/words.py', max_concurrent: 2, solver: {{type: simple, service: m}}}}\n"
            f"output: {{dir: '{self.run_dir}'}}\n"
        )
        self.reached = threading.Event()

    def nel(self, *arguments, code=0, **options):
        done = subprocess.run([*NEL, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start_and_hang_after(self, requests, *arguments):
        """Start in the background; every request after so many waits for ever."""

        def rule(_body, number):
            if number < requests:
                return None
            self.reached.set()
            return Fault.hang()

        self.server.rule = rule
        said = self.nel("eval", "run", self.config, "--background", *arguments)
        assert self.reached.wait(30)
        return said

    @property
    def pid(self):
        return json.loads((self.run_dir / "nel.pid").read_text())["pid"]


@pytest.fixture
def job(tmp_path):
    with FakeOpenAI() as server:
        made = Job(tmp_path, server)
        yield made
        LocalExecutor(stop_grace=1.0).stop(made.run_dir)


def test_a_run_in_the_background_is_watched_stopped_and_continued(job):
    said = job.start_and_hang_after(6)
    assert f"process {job.pid}" in said
    state = json.loads(job.nel("eval", "status", job.run_dir, "--json"))
    assert (state["running"], state["stage"]) == (True, "running")
    assert state["cells"][0]["planned"] == 20
    assert "Stopped" in job.nel("eval", "stop", job.run_dir)
    assert RunDir.read(job.run_dir).stage == "interrupted"
    state = json.loads(job.nel("eval", "status", job.run_dir, "--json"))
    assert state["running"] is False
    job.server.rule, before = None, job.server.count
    job.nel("eval", "resume", job.run_dir)
    assert job.server.count - before == 20 - state["cells"][0]["scored"]
    assert RunDir.read(job.run_dir).stage == "completed"


def test_stopping_what_does_not_run_says_so_and_fails(job):
    job.nel("eval", "run", job.config)
    assert "Nothing to stop" in job.nel("eval", "stop", job.run_dir, code=1)


def test_logs_follow_until_the_run_ends(job):
    job.start_and_hang_after(6)
    follower = subprocess.Popen([*NEL, "eval", "logs", "-f", job.run_dir], stdout=subprocess.PIPE, text=True)
    assert "words: 20 attempts" in follower.stdout.readline()
    job.nel("eval", "stop", job.run_dir)
    rest, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert "stopped" in rest


def test_a_run_that_was_killed_is_told_from_one_that_is_going_on(job):
    job.start_and_hang_after(6)
    os.kill(job.pid, signal.SIGKILL)
    while LocalExecutor().status(job.run_dir).running:
        pass
    state = LocalExecutor().status(job.run_dir)
    assert state.details["stale"] == "its process has ended"
    assert "was killed" in job.nel("eval", "status", job.run_dir)


def test_a_process_with_the_same_id_but_another_start_is_not_ours(job):
    job.nel("eval", "run", job.config)
    owner = json.loads((job.run_dir / "nel.pid").read_text())
    (job.run_dir / "nel.pid").write_text(json.dumps({**owner, "pid": os.getpid()}))
    assert LocalExecutor().status(job.run_dir).running is False
    assert LocalExecutor().stop(job.run_dir) is False


def test_a_run_of_another_machine_is_not_called_stopped_or_running_here(job):
    job.nel("eval", "run", job.config)
    owner = json.loads((job.run_dir / "nel.pid").read_text())
    (job.run_dir / "nel.pid").write_text(json.dumps({**owner, "host": "elsewhere"}))
    assert "elsewhere" in LocalExecutor().status(job.run_dir).details["stale"]


def test_a_background_run_that_fails_early_says_why(job):
    job.config.write_text(job.config.read_text().replace("words.py", "absent.py"))
    said = job.nel("eval", "run", job.config, "--background")
    assert "Running in the background" in said
    while LocalExecutor().status(job.run_dir).running:
        pass
    assert "absent.py" in "\n".join(LocalExecutor().logs(job.run_dir))


def test_a_directory_in_use_is_refused_with_the_end_of_the_log(job):
    job.start_and_hang_after(2)
    said = job.nel("eval", "run", job.config, "--background", code=1)
    assert str(job.pid) in said


def test_a_key_given_as_a_flag_reaches_the_server_and_is_in_no_argument_or_file(job):
    job.server.api_key = KEY
    job.start_and_hang_after(3, "-O", f"services.m.api_key={KEY}")
    assert job.server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in Path(f"/proc/{job.pid}/cmdline").read_bytes()
    for path in job.run_dir.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_a_run_in_the_foreground_has_no_log_and_says_where_it_went(job):
    job.nel("eval", "run", job.config)
    with pytest.raises(RunDirError, match="wrote to its terminal"):
        list(LocalExecutor().logs(job.run_dir))


def test_an_executor_is_found_by_type_and_by_its_metadata_file(job, tmp_path):
    assert get_executor("local").name == "local"
    assert detect_executor(tmp_path) is None
    (tmp_path / "nel.pid").write_text("{}")
    assert detect_executor(tmp_path).name == "local"
    with pytest.raises(UsageError, match=r"(?s)no executor 'lokal'.*Did you mean 'local'"):
        get_executor("lokal")


def test_a_new_executor_is_a_class_a_metadata_file_and_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "toy_executor.py").write_text(
        "class Toy:\n"
        "    name = 'toy'\n"
        "    def run(self, config, **options): return config\n"
        "    @staticmethod\n"
        "    def detect(output_dir): return (output_dir / 'toy.json').exists()\n"
    )
    info = tmp_path / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nel.executors]\ntoy = toy_executor:Toy\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert get_executor("toy").run("config") == "config"
    (tmp_path / "toy.json").touch()
    assert detect_executor(tmp_path).name == "toy"
