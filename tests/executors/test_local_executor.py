"""A local run can be left alone, looked after, stopped and continued, by real processes against a real server."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI

from nel.cli.main import main
from nel.config.load import load_config
from nel.core.errors import ConfigError, NelError, RunDirError, ServiceError, UsageError
from nel.core.rundir import RunDir
from nel.executors.local import LocalExecutor

NEL = [sys.executable, "-m", "nel"]
KEY = "sk-background-0123456789abcdef"
COUNT = 20


class Job:
    """A configuration with twenty words to echo, and the commands on its run directory."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.server = server
        self.run_dir = folder / "run"
        rows = [{"q": f"w{n}", "a": f"w{n}"} for n in range(COUNT)]
        (folder / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
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
        self.executor = LocalExecutor(stop_grace=20.0)
        self.reached = threading.Event()

    def nel(self, *arguments, code=0):
        """A command in a process of its own, as from a shell; what it printed."""
        done = subprocess.run([*NEL, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def nel_here(self, capsys, *arguments, code=0):
        """A command in this process, which is quicker."""
        assert main([*map(str, arguments)]) == code
        return "".join(capsys.readouterr())

    def start(self, *overrides, **options):
        loaded = load_config(self.config, overrides=overrides, use_defaults=False)
        return self.executor.run(loaded, background=True, **options)

    def hang_after(self, requests):
        """Every request after so many waits for ever."""

        def rule(_body, number):
            if number < requests:
                return None
            self.reached.set()
            return Fault.hang()

        self.server.rule = rule

    def start_and_hang_after(self, requests, *overrides, **options):
        self.hang_after(requests)
        outcome = self.start(*overrides, **options)
        assert self.reached.wait(30)
        return outcome

    def wait(self):
        """Until the process has ended; the lines of its log."""
        return list(self.executor.logs(self.run_dir, follow=True))

    @property
    def metadata(self):
        return json.loads((self.run_dir / "nel.pid").read_text())

    def pretend(self, **changes):
        """Change `nel.pid`, and leave the run as a killed process does."""
        (self.run_dir / "nel.pid").write_text(json.dumps({**self.metadata, **changes}))
        manifest = json.loads((self.run_dir / "manifest.json").read_text())
        (self.run_dir / "manifest.json").write_text(json.dumps({**manifest, "stage": "running"}))


@pytest.fixture
def job(tmp_path):
    with FakeOpenAI() as server:
        made = Job(tmp_path, server)
        pids = []
        watched = made.start

        def start(*overrides, **options):
            outcome = watched(*overrides, **options)
            pids.append(outcome.pid)
            return outcome

        made.start = start
        yield made
        for pid in pids:
            reap(pid)


def reap(pid):
    """End a process of the test's own and collect it, if that is still to do."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


@pytest.fixture
def finished(job):
    """A run that has completed in the foreground."""
    job.executor.run(load_config(job.config, use_defaults=False))
    return job


def test_a_run_in_the_background_is_watched_stopped_and_continued_by_commands(job):
    job.hang_after(6)
    said = job.nel("eval", "run", job.config, "--background")
    pid = job.metadata["pid"]
    assert f"process {pid}" in said
    assert all(f"nel eval {command}" in said for command in ("status", "logs", "stop"))
    assert job.reached.wait(30)
    state = json.loads(job.nel("eval", "status", job.run_dir, "--json"))
    assert (state["running"], state["stage"], state["process"]["pid"]) == (True, "running", pid)
    assert state["cells"][0]["planned"] == COUNT
    assert "Stopped" in job.nel("eval", "stop", job.run_dir)
    assert RunDir.read(job.run_dir).stage == "interrupted"
    state = json.loads(job.nel("eval", "status", job.run_dir, "--json"))
    assert state["running"] is False
    job.server.rule, before = None, job.server.count
    job.nel("eval", "resume", job.run_dir)
    assert job.server.count - before == COUNT - state["cells"][0]["scored"]
    assert RunDir.read(job.run_dir).stage == "completed"
    assert "Nothing to stop" in job.nel("eval", "stop", job.run_dir, code=1)


def test_a_stopped_process_ends_as_interrupted_with_130(job):
    pid = job.start_and_hang_after(6).pid
    stopper = threading.Thread(target=job.executor.stop, args=(job.run_dir,))
    stopper.start()
    _, status = os.waitpid(pid, 0)
    stopper.join()
    assert os.waitstatus_to_exitcode(status) == 130
    assert RunDir.read(job.run_dir).stage == "interrupted"
    assert job.executor.stop(job.run_dir) is False


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(job):
    job.start_and_hang_after(6)
    os.kill(job.metadata["pid"], signal.SIGSTOP)
    assert LocalExecutor(stop_grace=0.3).stop(job.run_dir) is True
    assert "stale" in job.executor.status(job.run_dir).details


def test_logs_follow_until_the_run_ends_and_end_with_its_scores(job):
    job.start_and_hang_after(6)
    follower = subprocess.Popen([*NEL, "eval", "logs", "-f", job.run_dir], stdout=subprocess.PIPE, text=True)
    assert f"words: {COUNT} attempts" in follower.stdout.readline()
    job.executor.stop(job.run_dir)
    rest, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert "interrupted" in rest
    assert list(job.executor.logs(job.run_dir, tail=1)) == [rest.splitlines()[-1]]
    assert list(job.executor.logs(job.run_dir, tail=0)) == []


def test_a_line_is_printed_once_it_is_whole(finished, tmp_path):
    finished.pretend(background=True)
    log = finished.run_dir / "nel_eval.log"
    log.write_text("first\nhalf ")
    lines = finished.executor.logs(finished.run_dir, follow=True)  # this process counts as the run's
    assert next(lines) == "first"
    with log.open("a") as file:
        file.write("and half\n")
    assert next(lines) == "half and half"


def test_a_run_that_was_killed_is_told_from_one_that_is_going_on(job, capsys):
    pid = job.start_and_hang_after(6).pid
    assert job.executor.status(job.run_dir).running
    reap(pid)
    state = job.executor.status(job.run_dir)
    assert (state.running, state.details["stale"]) == (False, "its process has ended")
    assert "was killed" in job.nel_here(capsys, "eval", "status", job.run_dir)
    assert job.executor.stop(job.run_dir) is False
    job.server.rule, before = None, job.server.count
    held = len((job.run_dir / "words" / "trajectories.jsonl").read_text().splitlines())
    job.start(resume=True)
    job.wait()
    assert job.server.count - before == COUNT - held
    assert RunDir.read(job.run_dir).stage == "completed"


def test_a_process_with_the_same_id_but_another_start_is_not_ours(finished):
    finished.pretend(started="1")
    assert "stale" in finished.executor.status(finished.run_dir).details
    assert finished.executor.stop(finished.run_dir) is False


def test_a_process_of_an_earlier_boot_has_ended(finished):
    host, _, namespace = finished.metadata["place"].split(" ")
    finished.pretend(place=f"{host} another-boot {namespace}")
    assert "stale" in finished.executor.status(finished.run_dir).details


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"host": "elsewhere", "place": "elsewhere boot pid:[1]"}, "on elsewhere"),
        ({"place": "{host} {boot} pid:[1]"}, "in another container"),
    ],
)
def test_nothing_is_claimed_of_a_process_that_cannot_be_seen(finished, changes, where, capsys):
    host, boot, _ = finished.metadata["place"].split(" ")
    finished.pretend(**{name: value.format(host=host, boot=boot) for name, value in changes.items()})
    state = finished.executor.status(finished.run_dir)
    assert state.running is False
    assert where in state.details["elsewhere"]
    with pytest.raises(RunDirError, match="cannot be stopped from here"):
        finished.executor.stop(finished.run_dir)
    said = finished.nel_here(capsys, "eval", "status", finished.run_dir)
    assert "is running or was killed" in said
    assert "continues it" not in said


def test_a_process_that_ended_its_run_and_lives_on_is_neither_running_nor_stopped(finished):
    assert finished.metadata["pid"] == os.getpid()
    assert finished.executor.status(finished.run_dir).running is False
    assert finished.executor.stop(finished.run_dir) is False


def test_what_goes_wrong_in_the_background_stands_in_the_log(job):
    absent = "  - {name: absent.py, solver: {type: simple, service: m}}\noutput"
    job.config.write_text(job.config.read_text().replace("output", absent))
    job.start()
    log = "\n".join(job.wait())
    assert "absent.py: No such file" in log
    assert f"Run {RunDir.read(job.run_dir).run_id}: failed" in log


def test_a_refused_start_says_why_and_leaves_the_run_and_its_log_alone(job, capsys):
    pid = job.start_and_hang_after(2).pid
    log = job.run_dir / "nel_eval.log"
    before = log.read_bytes()
    assert before
    said = job.nel_here(capsys, "eval", "run", job.config, "--background", code=1)
    assert f"in use by process {pid}" in said
    assert log.read_bytes() == before
    assert job.executor.status(job.run_dir).running


def test_what_a_config_cannot_have_yet_is_refused_before_a_process_starts(job):
    with pytest.raises(ConfigError, match="not available yet"):
        job.start("cluster={type: local, gpus: [0]}")
    assert not job.run_dir.exists()


def test_a_start_that_fails_leaves_nothing_behind(job, tmp_path):
    job.config.write_text(job.config.read_text().replace("words.py", "absent.py"))
    with pytest.raises(ServiceError, match=r"(?s)before it had begun.*exit code 64.*suite.yaml:4.*absent.py"):
        job.start()
    assert not job.run_dir.exists()


def test_the_log_of_an_earlier_run_is_set_aside_with_it_and_a_resumed_one_goes_on(job):
    job.start()
    first, earlier = job.wait(), RunDir.read(job.run_dir).run_id
    assert f"Run {earlier}: completed" in first
    job.start()
    second = job.wait()
    assert (job.run_dir / "previous" / earlier / "nel_eval.log").read_text().splitlines() == first
    assert f"Run {earlier}: completed" not in second
    job.start(resume=True)
    assert job.wait()[: len(second)] == second


def test_a_key_given_as_a_flag_reaches_the_server_and_is_in_no_argument_variable_or_file(job):
    job.server.api_key = KEY
    pid = job.start_and_hang_after(3, f"services.m.api_key={KEY}").pid
    assert job.server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    for what in ("cmdline", "environ"):
        assert KEY.encode() not in Path(f"/proc/{pid}/{what}").read_bytes()
    job.executor.stop(job.run_dir)
    for path in job.run_dir.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_a_module_of_the_working_directory_does_not_stand_in_for_python_s(job, tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit('the wrong pickle')")
    monkeypatch.chdir(tmp_path)
    job.start()
    job.wait()
    assert RunDir.read(job.run_dir).stage == "completed"


def test_verbose_holds_in_the_background(job, tmp_path):
    with (tmp_path / "words.py").open("a") as file:
        file.write("\nimport logging\nlogging.getLogger('nel.words').debug('loaded')\n")
    before = logging.getLogger("nel").level
    logging.getLogger("nel").setLevel(logging.DEBUG)  # as --verbose does
    try:
        job.start()
    finally:
        logging.getLogger("nel").setLevel(before)
    assert any("DEBUG nel.words: loaded" in line for line in job.wait())


def test_a_stop_right_after_the_start_is_an_interruption_too(job):
    """From the moment that `nel.pid` tells the process, it can be stopped in good order."""
    starting = threading.Thread(target=job.start)
    starting.start()
    while not (job.run_dir / "nel.pid").exists():
        time.sleep(0.001)
    assert job.executor.stop(job.run_dir)
    starting.join()
    assert RunDir.read(job.run_dir).stage == "interrupted"


def test_a_run_in_the_foreground_has_no_log_and_says_where_it_went(finished):
    with pytest.raises(RunDirError, match="wrote to its terminal"):
        list(finished.executor.logs(finished.run_dir))


def test_a_dry_run_gives_the_plan_and_writes_nothing(job):
    outcome = job.executor.run(load_config(job.config, use_defaults=False), dry_run=True)
    assert (outcome.plan.attempts, outcome.exit_code) == (COUNT, 0)
    assert not job.run_dir.exists()
    assert job.server.count == 0


def test_submit_is_refused(job):
    with pytest.raises(UsageError, match="scheduler"):
        job.executor.run(load_config(job.config, use_defaults=False), submit=True)


def test_a_shard_under_another_name_is_not_resumed_as_something_else(job, monkeypatch, capsys):
    monkeypatch.setenv("NEL_SHARD_IDX", "1")
    monkeypatch.setenv("NEL_TOTAL_SHARDS", "2")
    job.executor.run(load_config(job.config, use_defaults=False))
    monkeypatch.delenv("NEL_SHARD_IDX")
    monkeypatch.delenv("NEL_TOTAL_SHARDS")
    shard = job.run_dir / "shard_1"
    before = job.server.count
    monkeypatch.chdir(shard)
    job.nel_here(capsys, "eval", "resume", ".")
    shard.rename(job.run_dir / "kept")
    assert "shard_1" in job.nel_here(capsys, "eval", "resume", job.run_dir / "kept", code=64)
    assert job.server.count == before
    assert [path.name for path in job.run_dir.iterdir()] == ["kept"]
    assert "kept" in job.nel_here(capsys, "eval", "logs", job.run_dir, code=64)


def test_another_user_s_process_is_not_stopped_and_said_so(finished, monkeypatch):
    def refuse(_pid, _number):
        raise PermissionError

    finished.pretend()
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(NelError, match="another user"):
        finished.executor.stop(finished.run_dir)
