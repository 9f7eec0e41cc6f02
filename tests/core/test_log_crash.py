"""A real process that appends, tells what was acknowledged, and is killed without notice."""

import os
import random
import signal
import subprocess
import sys

import pytest

from nel.core.contract import Record
from nel.core.log import LogWriter, replace_log, scan_log
from nel.core.rundir import RunDir, Stage


class Note(Record, tag="nel.note/1"):
    number: int
    filler: str = ""


PROGRAM = """
import os, signal, sys
from nel.core.log import LogWriter
from nel.core.rundir import RunDir

folder, moment, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
calls = 0

def die(): os.kill(os.getpid(), signal.SIGKILL)

def deadly(real, name):
    # kills the process before, in the middle of, or after the count-th call
    def call(descriptor, *data):
        global calls
        calls += 1
        if calls != count:
            return real(descriptor, *data)
        if moment.startswith("before"):
            die()
        real(descriptor, *(bytes(part)[: len(part) // 2] if moment.startswith("inside") else part for part in data))
        die()
    return call

with RunDir.open(folder, kind="models", resume=True) as run:
    cell = run.cell_dir("key", "cell", benchmark="b", model="m", variant="v")
    with LogWriter(interval=0.002) as writer:
        attempts, scores = writer.open(cell / "attempts.jsonl"), writer.open(cell / "scores.jsonl")
        writer.sync()
        name = moment.rpartition(" ")[2]
        if hasattr(os, name):
            setattr(os, name, deadly(getattr(os, name), name))
        print("ready", flush=True)
        for number in range(int(sys.argv[4]), 1_000_000):
            line = b'{"schema":"nel.note/1","number":%d,"filler":"%s"}' % (number, b"x" * (number * 37 % 3000))
            attempts.append(line)
            scores.append(line)
            if number % 3 == 0:
                writer.sync()
                print(number, flush=True)
"""


def start(folder, moment="never", count=0, first=0):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, folder, moment, str(count), str(first)], stdout=subprocess.PIPE, text=True
    )


def check_what_was_left(folder, acknowledged):
    """Everything acknowledged is found, nothing is damaged, no score lacks its attempt, and the run can go on."""
    assert RunDir.read(folder).stage is Stage.RUNNING
    with RunDir.open(folder, kind="models", resume=True) as run, LogWriter() as writer:
        cell = run.cell_dir("key", "cell", benchmark="b", model="m", variant="v")
        logs = [writer.open(cell / name) for name in ("attempts.jsonl", "scores.jsonl")]
        problems = []
        attempts, scores = ([note.number for _, _, note in scan_log(log.path, Note, problems=problems)] for log in logs)
    assert problems == []
    assert attempts == list(range(len(attempts)))
    assert scores == attempts[: len(scores)]
    assert len(scores) > max(acknowledged, default=-1)
    return len(attempts), len(scores)


@pytest.mark.parametrize("moment", ["before write", "inside write", "after write", "before fsync", "after fsync"])
def test_killed_at_a_chosen_call_of_a_commit_loses_nothing_acknowledged(tmp_path, moment):
    for count in (1, 2, 7):
        folder = tmp_path / str(count)
        with start(folder, moment, count) as process:
            said = process.communicate(timeout=60)[0].split()
        assert process.returncode == -signal.SIGKILL
        check_what_was_left(folder, [int(word) for word in said[1:]])


def test_killed_at_random_again_and_again_a_run_goes_on_without_loss(tmp_path):
    randomness = random.Random(20)
    acknowledged, attempts, scores = [], 0, 0
    for _ in range(5):
        if attempts > scores:  # the resumed run would measure these again: here, take the attempts back
            path = tmp_path / "run/cell/attempts.jsonl"
            replace_log(path, path.read_bytes().splitlines()[:scores])
        with start(tmp_path / "run", first=scores) as process:
            assert process.stdout.readline() == "ready\n"
            acknowledged += [int(process.stdout.readline()) for _ in range(randomness.randrange(1, 80))]
            os.kill(process.pid, signal.SIGKILL)
            acknowledged += [int(word) for word in process.stdout.read().split()]
        attempts, scores = check_what_was_left(tmp_path / "run", acknowledged)
    assert scores > 50
