"""The lock of a run directory: one process at a time, and a killed one leaves it free.

A kernel file lock (`flock`) where the file system has them. Where it has none, a heartbeat file stands for the lock:
its owner touches it, and an owner that is dead or silent is replaced. Both name their owner for the others' message.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import threading
import time
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import override

import msgspec

from nel.core import disk
from nel.core.errors import RunDirError

LOCK_NAME = ".nel.lock"
HEARTBEAT_NAME = ".nel.heartbeat"

_NO_KERNEL_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class Owner(msgspec.Struct, kw_only=True):
    """Who holds a lock."""

    pid: int
    host: str
    since: float
    """Unix seconds."""
    started: str | None
    """`process_start` of the owner, which tells it from a later process with the same id."""
    place: str
    """Where `pid` means something: machine, boot and process name space."""
    token: str

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        pid = os.getpid()
        return cls(
            pid=pid,
            host=socket.gethostname(),
            since=time.time(),
            started=process_start(pid),
            place=_place(),
            token=os.urandom(8).hex(),
        )


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing of heartbeats, in seconds."""

    interval: float = 10.0
    """Between two beats."""
    stale_after: float = 60.0
    """Age of the last beat from which an owner on another machine counts as dead."""
    settle: float = 1.0
    """How long a take-over waits to see whether another process took over at the same moment."""


DEFAULT_PACE = Pace()


class DirLock(ABC):
    """A lock that is held until `release` or the end of the process; a forked child does not hold it."""

    def __init__(self) -> None:
        _held.add(self)

    @abstractmethod
    def check(self) -> None:
        """Raises `RunDirError` if the lock was lost."""

    @abstractmethod
    def release(self) -> None:
        """Frees the lock; a second call does nothing."""

    @abstractmethod
    def disown(self) -> None:
        """Forgets the lock in a forked child without freeing the parent's."""


_held: weakref.WeakSet[DirLock] = weakref.WeakSet()


def _disown_all() -> None:
    for lock in list(_held):
        lock.disown()


os.register_at_fork(after_in_child=_disown_all)


def lock_directory(folder: Path, pace: Pace = DEFAULT_PACE) -> DirLock:
    """The lock of `folder`; `RunDirError` names the process that holds it. OSError where `folder` is not writable."""
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return KernelLock(descriptor)
    except BlockingIOError:
        owner = _decode_owner(os.pread(descriptor, 4096, 0))
        os.close(descriptor)
        raise _in_use(folder, owner) from None
    except OSError as error:
        os.close(descriptor)
        if error.errno in _NO_KERNEL_LOCKS:
            return HeartbeatLock(folder, pace)
        raise


class KernelLock(DirLock):
    """A lock that the kernel frees with the process."""

    def __init__(self, descriptor: int) -> None:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(Owner.here()), 0)
        self._descriptor: int | None = descriptor
        super().__init__()

    @override
    def check(self) -> None:
        """Never raises: the kernel takes no lock away."""

    @override
    def release(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            self.disown()

    @override
    def disown(self) -> None:
        # Closing the last descriptor frees the lock; in a forked child the parent's is still open.
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class HeartbeatLock(DirLock):
    """A file that its owner touches every `pace.interval` seconds, for file systems without kernel locks."""

    def __init__(self, folder: Path, pace: Pace) -> None:
        self._folder = folder
        self._path = folder / HEARTBEAT_NAME
        self._owner = Owner.here()
        self._take(pace)
        self._lost = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(
            target=self._beat, args=(pace.interval,), name="nel-heartbeat", daemon=True
        )
        self._thread.start()
        super().__init__()

    @override
    def check(self) -> None:
        """Raises `RunDirError` once another process has taken over."""
        if self._lost:
            raise RunDirError(
                f"{self._folder} was taken over by another process while this one was silent.",
                hint="Let that process finish, then continue with --resume.",
            )

    @override
    def release(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            if self._holds():
                with contextlib.suppress(OSError):
                    self._path.unlink()
            self.disown()

    @override
    def disown(self) -> None:
        self._thread = None

    def _take(self, pace: Pace) -> None:
        content = msgspec.json.encode(self._owner)
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            holder = self._read()
            if not _is_stale(holder, self._age(), pace):
                raise _in_use(self._folder, holder) from None
            disk.write_atomic(self._path, content)
            time.sleep(pace.settle)  # of two that take over together, the one that wrote last wins
            if not self._holds():
                raise _in_use(self._folder, self._read()) from None
        else:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)

    def _beat(self, interval: float) -> None:
        while not self._stop.wait(interval):
            if not self._holds():
                self._lost = True
                return
            with contextlib.suppress(OSError):
                os.utime(self._path)

    def _holds(self) -> bool:
        holder = self._read()
        return holder is not None and holder.token == self._owner.token

    def _read(self) -> Owner | None:
        try:
            return _decode_owner(self._path.read_bytes())
        except OSError:
            return None

    def _age(self) -> float:
        """Seconds since the last beat by the clock of the file system, which all machines share."""
        probe = self._folder / LOCK_NAME
        os.utime(probe)
        return probe.stat().st_mtime - self._path.stat().st_mtime


def process_start(pid: int) -> str | None:
    """When process `pid` started, as a text to compare; None if there is no such process, or only its zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else fields[19]
    import psutil

    try:
        return repr(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _place() -> str:
    place = socket.gethostname()
    with contextlib.suppress(OSError):
        place += f" {Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    return place


def _is_stale(owner: Owner | None, age: float, pace: Pace) -> bool:
    if owner is not None and owner.place == _place():
        return process_start(owner.pid) != owner.started
    return age > pace.stale_after


def _decode_owner(data: bytes) -> Owner | None:
    try:
        return msgspec.json.decode(data, type=Owner)
    except msgspec.DecodeError:
        return None


def _in_use(folder: Path, owner: Owner | None) -> RunDirError:
    who = "another process"
    if owner is not None:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner.since))
        who = f"process {owner.pid} on {owner.host} since {since}"
    return RunDirError(
        f"{folder} is in use by {who}.",
        hint="Wait until it ends, stop it with `nel eval stop`, or choose another directory.",
    )
