"""Run directories that are read-only, full, failing, or left by a process that was killed half-way."""

import signal
import subprocess
import sys

import pytest
from core_faults import every_failure, mounted_tmpfs, read_only

from nel.core.disk import TEMPORARY_PREFIX, write_atomic
from nel.core.errors import RunDirError
from nel.core.lock import HEARTBEAT_NAME, LOCK_NAME, HeartbeatLock, Pace
from nel.core.rundir import RunDir, Stage


def start(path, *, resume=False):
    return RunDir.open(path, kind="models", resume=resume, derived=["report.md"])


def finished_run(path):
    with start(path) as run:
        for name in ("one", "two"):
            (run.cell_dir(name, name, benchmark="b", model="m", variant="v") / "log").write_text(name)
        (path / "report.md").touch()
        run.finish(Stage.COMPLETED)
    return run.manifest.run_id


def contents(path):
    """What a run holds, its lock and manifest left out."""
    return {
        str(file.relative_to(path)): file.read_text()
        for file in path.rglob("*")
        if file.is_file() and not file.name.startswith(".") and file.name != "manifest.json"
    }


def test_a_read_only_directory_is_refused_with_the_reason_but_can_be_read(tmp_path):
    run_id = finished_run(tmp_path / "run")
    with read_only(tmp_path / "run"):
        assert RunDir.read(tmp_path / "run").run_id == run_id
        for resume in (False, True):
            with pytest.raises(RunDirError, match=r"(Read-only file system|Permission denied).*cannot be used"):
                start(tmp_path / "run", resume=resume)
    with start(tmp_path / "run", resume=True) as run:
        assert run.manifest.run_id == run_id


def test_a_directory_that_cannot_be_created_is_refused_with_the_reason(tmp_path):
    (tmp_path / "parent").mkdir()
    with read_only(tmp_path / "parent"), pytest.raises(RunDirError, match=r"Read-only file system|Permission denied"):
        start(tmp_path / "parent" / "run")


def test_a_full_disk_leaves_the_manifest_as_it_was_and_the_lock_free(tmp_path):
    with mounted_tmpfs(tmp_path / "small", "64k") as remount:
        folder = tmp_path / "small" / "run"
        with start(folder) as run:
            before = run.manifest
            with pytest.raises(RunDirError, match="No space left on device"):
                run.update(warnings=["x" * 100_000])
            assert run.manifest == RunDir.read(folder) == before
            assert [entry.name for entry in folder.iterdir() if entry.name.startswith(TEMPORARY_PREFIX)] == []
        with start(folder, resume=True) as run:
            assert run.manifest.run_id == before.run_id
        remount("size=1m")
        with start(folder, resume=True) as run:
            run.update(warnings=["x" * 100_000])


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    ("calls", "resume"),
    [
        (("rename", "replace"), False),
        (("rename", "replace"), True),
        (("fsync",), False),
        (("fsync",), True),
        (("write", "pwrite"), False),
        (("write", "pwrite"), True),
        (("open",), False),
        (("open",), True),
        (("mkdir",), False),
        (("unlink",), True),
    ],
)
def test_whichever_call_fails_on_opening_the_earlier_run_is_whole_and_the_next_try_works(
    tmp_path, calls, resume, persistent
):
    for number, faults in enumerate(every_failure(*calls, persistent=persistent)):
        path = tmp_path / str(number)
        run_id = finished_run(path)
        before = contents(path)
        failed = False
        try:
            with faults:
                start(path, resume=resume).close()
        except RunDirError:
            failed = True
        assert failed == faults.happened
        with start(path, resume=True) as run:  # "no, continue the earlier one"
            if run.manifest.run_id == run_id:
                assert contents(path) == {name: text for name, text in before.items() if name != "report.md"}
            else:
                assert contents(path / "previous" / run_id) == before


def test_a_run_that_was_taken_over_writes_no_more(tmp_path, monkeypatch):
    quick = Pace(interval=0.01, stale_after=60, settle=0)
    monkeypatch.setattr("nel.core.rundir.lock_directory", lambda folder: HeartbeatLock(folder, quick))
    (tmp_path / LOCK_NAME).touch()
    with start(tmp_path) as run:
        write_atomic(tmp_path / HEARTBEAT_NAME, b"of another process")
        run._lock._thread.join(10)
        before = (tmp_path / "manifest.json").read_bytes()
        with pytest.raises(RunDirError, match="taken over"):
            run.finish(Stage.COMPLETED)
        assert (tmp_path / "manifest.json").read_bytes() == before


KILLED = """
import os, signal, sys
from nel.core.rundir import RunDir

def deadly(real, count):
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return call

for count, path in enumerate(sys.argv[1:], start=1):
    child = os.fork()
    if child == 0:
        calls = 0
        for name in ("rename", "replace", "mkdir", "write", "fsync"):
            setattr(os, name, deadly(getattr(os, name), count))
        RunDir.open(path, kind="models", resume=False)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_killed_at_any_step_of_setting_a_run_aside_nothing_is_lost(tmp_path):
    paths = [tmp_path / str(count) for count in range(1, 25)]
    earlier = [(finished_run(path), contents(path)) for path in paths]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *paths], check=True, capture_output=True, text=True, timeout=60
    )
    outcomes = [int(word) for word in done.stdout.split()]
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {-signal.SIGKILL, 0}, "each step was tried, and the last one is the end"
    for path, (run_id, before) in zip(paths, earlier, strict=True):
        resumed = path if RunDir.read(path).run_id == run_id else path / "previous" / run_id
        with start(path, resume=True) as run:
            assert (run.manifest.run_id == run_id) == (resumed == path)
        derived = {"report.md"} if resumed == path else set()
        assert contents(resumed) == {name: text for name, text in before.items() if name not in derived}
        assert not list(path.glob(f"{TEMPORARY_PREFIX}*"))
