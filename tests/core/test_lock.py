import errno
import fcntl
import os
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from nel.core import disk
from nel.core.errors import RunDirError
from nel.core.lock import (
    HEARTBEAT_NAME,
    LOCK_NAME,
    HeartbeatLock,
    KernelLock,
    Owner,
    Pace,
    lock_directory,
    process_start,
)

QUICK = Pace(interval=0.01, stale_after=0.2, settle=0.05)


@pytest.fixture(params=["kernel lock", "heartbeat"])
def kind(request, monkeypatch):
    """Each promise holds for both kinds of lock."""
    if request.param == "heartbeat":
        without_kernel_locks(monkeypatch)
    return request.param


def without_kernel_locks(monkeypatch, error=errno.ENOLCK):
    def flock(descriptor, operation):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", flock)


def beat_of(folder, **fields):
    """A heartbeat file that another process has left."""
    owner = msgspec.structs.replace(Owner.here(), token="theirs", **fields)
    (folder / HEARTBEAT_NAME).write_bytes(msgspec.json.encode(owner))


def age(folder, seconds):
    then = time.time() - seconds
    os.utime(folder / HEARTBEAT_NAME, (then, then))


def ended_process():
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def test_a_held_lock_is_refused_with_its_owner_and_free_after_release(tmp_path, kind):
    lock = lock_directory(tmp_path, QUICK)
    assert isinstance(lock, KernelLock if kind == "kernel lock" else HeartbeatLock)
    with pytest.raises(RunDirError, match=rf"in use by process {os.getpid()} on \S+ since 20\d\d-") as refused:
        lock_directory(tmp_path, QUICK)
    assert str(tmp_path) in refused.value.message
    lock.check()
    lock.release()
    lock.release()
    lock_directory(tmp_path, QUICK).release()


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_heartbeat_stands_in_only_where_the_file_system_has_no_locks(tmp_path, monkeypatch, error):
    without_kernel_locks(monkeypatch, error)
    lock = lock_directory(tmp_path, QUICK)
    assert isinstance(lock, HeartbeatLock)
    lock.release()
    assert not (tmp_path / HEARTBEAT_NAME).exists()


def test_another_error_of_the_lock_call_is_an_error(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        lock_directory(tmp_path, QUICK)


def test_refused_attempts_leave_no_descriptor_and_no_thread(tmp_path, kind):
    with_lock = lock_directory(tmp_path, QUICK)
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(5):
        with pytest.raises(RunDirError):
            lock_directory(tmp_path, QUICK)
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == (descriptors, threads)
    with_lock.release()


HOLDER = """
import os, sys, time
from pathlib import Path
if sys.argv[2] == "heartbeat":
    import errno, fcntl
    def flock(*_): raise OSError(errno.ENOLCK, "no locks")
    fcntl.flock = flock
from nel.core.lock import Pace, lock_directory
lock = lock_directory(Path(sys.argv[1]), Pace(interval=0.01, stale_after=0.2, settle=0.05))
print("held", flush=True)
sys.stdin.read()
"""


def hold(folder, kind):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_is_named_and_its_lock_is_free_once_it_was_killed(tmp_path, kind):
    with hold(tmp_path, kind) as process:
        with pytest.raises(RunDirError, match=f"in use by process {process.pid} "):
            lock_directory(tmp_path, QUICK)
        process.kill()
    lock_directory(tmp_path, QUICK).release()


def test_a_program_started_by_the_owner_does_not_inherit_the_lock(tmp_path):
    lock = lock_directory(tmp_path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        lock_directory(tmp_path).release()
        child.stdin.close()


FORKING = """
import os, sys
from pathlib import Path
from nel.core.lock import lock_directory
lock = lock_directory(Path(sys.argv[1]))
child = os.fork()
if child == 0:
    lock.release()  # must not free the parent's lock
    print("forked", flush=True)
    sys.stdin.read()  # outlives its parent
    os._exit(0)
sys.stdin.buffer.raw.read(1)
os._exit(0)
"""


def test_a_forked_child_neither_frees_nor_keeps_the_lock_of_its_parent(tmp_path):
    command = [sys.executable, "-c", FORKING, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as parent:
        assert parent.stdout.readline() == b"forked\n"
        with pytest.raises(RunDirError, match=f"in use by process {parent.pid} "):
            lock_directory(tmp_path)
        parent.kill()
        parent.wait()
        lock_directory(tmp_path).release()  # the child still lives
        parent.stdin.close()


def test_a_stale_heartbeat_of_a_dead_process_is_taken_over_at_once(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    beat_of(tmp_path, pid=ended_process())
    lock_directory(tmp_path, QUICK).release()


def test_a_process_that_got_the_id_of_a_dead_owner_is_not_the_owner(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    beat_of(tmp_path, pid=os.getpid(), started="1")
    lock_directory(tmp_path, QUICK).release()


def test_a_living_owner_on_this_machine_keeps_its_lock_however_silent(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    beat_of(tmp_path)
    age(tmp_path, 10_000)
    with pytest.raises(RunDirError, match="in use"):
        lock_directory(tmp_path, QUICK)


def test_an_owner_elsewhere_is_judged_by_the_age_of_its_beat(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    beat_of(tmp_path, host="other", place="other", pid=ended_process())
    with pytest.raises(RunDirError, match="on other since"):
        lock_directory(tmp_path, QUICK)
    age(tmp_path, 1)
    lock_directory(tmp_path, QUICK).release()


def test_an_unreadable_heartbeat_is_judged_by_its_age(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    (tmp_path / HEARTBEAT_NAME).write_bytes(b"")  # its owner was killed while it wrote
    with pytest.raises(RunDirError, match="in use by another process"):
        lock_directory(tmp_path, QUICK)
    age(tmp_path, 1)
    lock_directory(tmp_path, QUICK).release()


def test_the_heart_beats_while_the_lock_is_held(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    beaten = threading.Event()
    lock = lock_directory(tmp_path, QUICK)
    real = os.utime
    monkeypatch.setattr(os, "utime", lambda path, *args: (real(path, *args), beaten.set()))
    age(tmp_path, 1000)
    beaten.clear()
    assert beaten.wait(10)
    assert time.time() - (tmp_path / HEARTBEAT_NAME).stat().st_mtime < 100
    lock.release()


def test_an_owner_learns_that_it_was_replaced_and_leaves_the_new_owner_alone(tmp_path, monkeypatch):
    without_kernel_locks(monkeypatch)
    lock = lock_directory(tmp_path, QUICK)
    beat_of(tmp_path)
    lock._thread.join(10)
    with pytest.raises(RunDirError, match="taken over"):
        lock.check()
    lock.release()
    assert b"theirs" in (tmp_path / HEARTBEAT_NAME).read_bytes()


def test_of_several_that_take_over_together_one_wins(tmp_path, monkeypatch):
    """All have judged the old owner dead before one of them writes, and all have written when the settling ends."""
    without_kernel_locks(monkeypatch)
    beat_of(tmp_path, pid=ended_process())
    judged, settled = threading.Barrier(3), threading.Barrier(3)
    waits, won, refused = [], [], []
    write = disk.write_atomic
    monkeypatch.setattr(disk, "write_atomic", lambda *args: (judged.wait(10), write(*args)))
    monkeypatch.setattr(time, "sleep", lambda seconds: (waits.append(seconds), settled.wait(10)))

    def take():
        try:
            won.append(lock_directory(tmp_path, Pace(interval=60, stale_after=60, settle=0.3)))
        except RunDirError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(refused)) == (1, 2)
    assert waits == [0.3] * 3
    won[0].release()


def test_a_full_disk_while_locking_leaves_the_lock_free(tmp_path, monkeypatch):
    def pwrite(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", pwrite)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space"):
        lock_directory(tmp_path)
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    lock_directory(tmp_path).release()


def test_the_lock_file_stays_and_names_nobody_once_it_is_free(tmp_path):
    lock_directory(tmp_path).release()
    assert (tmp_path / LOCK_NAME).read_bytes() == b""


def test_a_process_is_told_by_its_start_and_a_dead_or_zombie_one_has_none():
    assert process_start(os.getpid()) == process_start(os.getpid())
    assert process_start(os.getpid()) is not None
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(process.pid) is None  # a zombie
    process.wait()
    assert process_start(process.pid) is None
