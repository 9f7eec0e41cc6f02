"""Jobs end in time, whatever they do, from whichever thread; no process is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nel.scoring.math_pool import JobFailedError, JobTimeoutError, WorkerPool

FAKES = Path(__file__).parents[1] / "fakes"


@pytest.fixture
def pool():
    made = WorkerPool("endless_worker", size=2)
    yield made
    made.close()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes() if Path("/proc/self/stat").exists() else True


def wait_until_gone(pid, seconds):
    deadline = time.monotonic() + seconds
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        threading.Event().wait(0.05)


def test_a_job_that_never_ends_is_killed_at_its_limit_from_any_thread(pool):
    def ask(_):
        begin = time.monotonic()
        with pytest.raises(JobTimeoutError):
            pool.run("endless", timeout=0.2)
        return time.monotonic() - begin

    with ThreadPoolExecutor(4) as threads:
        waits = list(threads.map(ask, range(4)))
    assert max(waits) < 30
    assert pool.run("echo", "still here", timeout=10) == "still here"


def test_the_killed_process_is_gone_and_another_takes_its_place(pool):
    first = pool.run("pid", timeout=10)
    with pytest.raises(JobTimeoutError):
        pool.run("endless", timeout=0.1)
    assert not is_running(first)
    assert pool.run("pid", timeout=10) != first


def test_a_process_stays_warm_from_job_to_job(pool):
    assert pool.run("pid", timeout=10) == pool.run("pid", timeout=10)


@pytest.mark.parametrize("job", ["leave", "eat", "no such job"])
def test_a_broken_job_is_told_and_breaks_no_other(pool, job):
    with pytest.raises(JobFailedError):
        pool.run(job, timeout=10)
    assert pool.run("echo", [1, "\ud800"], timeout=10) == [1, "\ud800"]


def test_closing_ends_the_processes(pool):
    pid = pool.run("pid", timeout=10)
    pool.close()
    assert not is_running(pid)


def test_no_alarm_is_set(pool):
    before = signal.getsignal(signal.SIGALRM)
    pool.run("echo", 1, timeout=10)
    assert signal.getsignal(signal.SIGALRM) == before


PARENT = """
import sys
from nel.scoring.math_pool import WorkerPool
pool = WorkerPool("endless_worker", size=1)
print(pool.run("pid", timeout=10), flush=True)
if sys.argv[1] == "busy":
    pool.run("endless", timeout=1)
elif sys.argv[1] == "idle":
    sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["busy", "idle", "ends"])
def test_a_process_does_not_outlive_a_parent_that_is_killed_or_ends(state):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(FAKES), *filter(None, sys.path)])},
    )
    worker = int(parent.stdout.readline())
    if state != "ends":
        parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    wait_until_gone(worker, 20)


def test_computer_algebra_is_imported_in_the_processes_alone():
    code = (
        "import sys, nel.scoring\nfrom nel.scoring import math_equal, multichoice_regex\n"
        "assert math_equal('1/2', '0.5') and math_equal(r'\\sin 2x', r'2\\sin x\\cos x', timeout=30)\n"
        "heavy = {'sympy', 'math_verify', 'numpy', 'scipy', 'jsonschema', 'sacrebleu'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
