"""`RecordLog`: append-only JSONL whose acknowledged lines survive `kill -9`, a full disk and a power cut.

One `LogWriter` serves all logs of a run with one thread. `append` only queues a line; the thread writes and fsyncs
what has gathered, log by log in the order in which they were opened, and then wakes whoever waits. A record is
*acknowledged* once a `drain` or `sync` that began after its `append` has returned.

    with LogWriter() as writer:
        attempts, scores = writer.open(cell / "trajectories.jsonl"), writer.open(cell / "results.jsonl")
        attempts.append(attempt.to_json())
        scores.append(score.to_json())  # never durable before its attempt
        await writer.drain()
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nel.core import disk
from nel.core.errors import LogWriteError
from nel.core.scan import scan_log

__all__ = ["LogWriteError", "LogWriter", "RecordLog", "replace_log", "scan_log"]

if TYPE_CHECKING:
    import asyncio  # loaded by whoever waits: reading a log needs no event loop

_MAX_PENDING_BYTES = 64 << 20
_TAIL_CHUNK = 1 << 16


class LogWriter:
    """The one writer of a run: opens its logs and commits what is appended to them.

    `interval` (seconds) bounds both how long a record waits for its commit and how often a log is fsynced unasked;
    `max_pending` is the number of unacknowledged records from which `ready` waits. Methods may be called from any
    thread. A writer belongs to the process that made it: in a forked child every call raises `LogWriteError`.
    """

    def __init__(self, *, interval: float = 0.05, max_pending: int = 4096) -> None:
        self._max_pending = max_pending
        self._queue = _Queue()
        self._thread = threading.Thread(target=_serve, args=(self._queue, interval), name="nel-log-writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, path: Path | str) -> RecordLog:
        """The log at `path`, created if need be; a torn last line is cut, and `torn_bytes` says how much that was.

        The folder must exist. Lines that are already there count as appended: the next commit makes them durable too.
        """
        file = Path(path)
        try:
            descriptor, end, torn = _open_lines(file)
        except OSError as error:
            raise LogWriteError(f"{file}: cannot open the log: {error.strerror or error}") from error
        log = RecordLog(self._queue, file, descriptor, end, torn)
        with self._queue.lock:
            try:
                self._queue.check()
            except LogWriteError:
                os.close(descriptor)
                raise
            self._queue.logs.append(log)
            self._queue.note(0)
        return log

    async def ready(self) -> None:
        """Returns at once while less than `max_pending` records and 64 MiB are unacknowledged, else waits for room."""
        queue = self._queue
        while True:
            with queue.lock:
                queue.check()
                if queue.appended - queue.durable < self._max_pending and queue.pending_bytes < _MAX_PENDING_BYTES:
                    return
                waiter = queue.waiter(queue.durable + 1)
            await waiter

    async def drain(self) -> None:
        """Returns when all records appended so far are durable; raises `LogWriteError` if they cannot be."""
        queue = self._queue
        with queue.lock:
            queue.check()
            if queue.durable >= queue.appended:
                return
            waiter = queue.waiter(queue.appended)
            queue.hurry.set()
        await waiter

    def sync(self) -> None:
        """`drain` for callers without an event loop: blocks until all records appended so far are durable."""
        with self._queue.lock:
            self._queue.sync()

    def close(self) -> None:
        """Makes everything durable, ends the thread and closes the files; a second call does nothing.

        Raises `LogWriteError` if records could not be written; thread and files are gone then, too.
        """
        queue = self._queue
        with queue.lock:
            if queue.closing:
                return
            queue.closing = True
            queue.wake.set()
            queue.hurry.set()
        self._thread.join()
        with queue.lock:
            logs, queue.logs = queue.logs, []
            for log in logs:
                os.close(log.descriptor)
            try:
                queue.check()
            finally:
                queue.failure = queue.failure or LogWriteError("the log writer is closed")


class RecordLog:
    """One append-only file of JSON lines; made by `LogWriter.open`."""

    def __init__(self, queue: _Queue, path: Path, descriptor: int, end: int, torn_bytes: int) -> None:
        self.path = path
        self.torn_bytes = torn_bytes
        """Length of the torn last line that was cut on opening."""
        self.descriptor = descriptor
        self._queue = queue
        self._end = self._durable_end = end
        self._pending: list[bytes] = []
        self._fresh = True
        self._closed = False

    def append(self, line: bytes) -> int:
        """Queues one JSON text (without newline) and returns the offset at which it will stand in the file.

        Never waits for the disk. Raises `LogWriteError` once a write has failed or the log is closed.
        """
        if not line or b"\n" in line:
            raise ValueError("a log line is one JSON text without a newline")
        size = len(line)
        queue = self._queue
        with queue.lock:
            if queue.failure or self._closed:
                queue.check()
                raise LogWriteError(f"{self.path}: the log is closed")
            offset = self._end
            self._end = offset + size + 1
            self._pending.append(line)
            queue.note(size)
        return offset

    def close(self) -> None:
        """Makes this log's records durable and closes its file, for instance before the file is replaced."""
        queue = self._queue
        with queue.lock:
            if self._closed:
                return
            self._closed = True
            try:
                queue.sync()
            finally:
                if self in queue.logs:
                    queue.logs.remove(self)
                    os.close(self.descriptor)

    def take(self) -> list[bytes] | None:
        """The lines that wait for a commit (called with the queue's lock held); None if there is nothing to do."""
        if not self._pending and not self._fresh:
            return None
        lines, self._pending = self._pending, []
        return lines

    def commit(self, lines: list[bytes]) -> None:
        """Makes `lines`, and what a killed process left unsynced, durable."""
        data = b"".join([part for line in lines for part in (line, b"\n")])
        disk.write_all(self.descriptor, data)
        os.fsync(self.descriptor)
        if self._fresh:
            disk.sync_directory(self.path.parent)
            self._fresh = False
        self._durable_end += len(data)

    def roll_back(self) -> None:
        """Cuts what was not acknowledged, as far as the disk still allows it."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, self._durable_end)
            os.fsync(self.descriptor)


type _Waiter = tuple[int, asyncio.AbstractEventLoop, asyncio.Future[None]]


class _Queue:
    """What a writer, its thread and its logs share; fields are read and written with `lock` held."""

    def __init__(self) -> None:
        self.logs: list[RecordLog] = []
        self.waiters: list[_Waiter] = []
        self.appended = 0
        """Records appended and logs opened so far: what `durable` counts up to."""
        self.durable = 0
        self.pending_bytes = 0
        self.failure: LogWriteError | None = None
        self.closing = False
        self.lock = threading.Lock()
        self.committed = threading.Condition(self.lock)
        self.wake = threading.Event()
        """Something waits for a commit, which may come when the interval is over."""
        self.hurry = threading.Event()
        """Somebody waits for the commit."""
        _queues.add(self)

    def check(self) -> None:
        if self.failure:
            raise LogWriteError(self.failure.message, hint=self.failure.hint) from self.failure.__cause__

    def note(self, size: int) -> None:
        self.appended += 1
        self.pending_bytes += size
        if not self.wake.is_set():
            self.wake.set()

    def sync(self) -> None:
        self.check()
        target = self.appended
        if self.durable < target:
            self.hurry.set()
            self.committed.wait_for(lambda: self.failure or self.durable >= target)
            self.check()

    def waiter(self, target: int) -> asyncio.Future[None]:
        from asyncio import get_running_loop

        loop = get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.waiters.append((target, loop, waiter))
        return waiter

    def take(self) -> tuple[list[tuple[RecordLog, list[bytes]]], int]:
        """What the next commit writes, in the order of the logs, and the count that is durable after it."""
        self.wake.clear()
        self.hurry.clear()
        self.pending_bytes = 0
        return [(log, lines) for log in self.logs if (lines := log.take()) is not None], self.appended

    def settle(self, durable: int, failure: LogWriteError | None) -> list[_Waiter]:
        """Notes a commit's outcome; the waiters that it serves."""
        if failure:
            self.failure = failure
            done, self.waiters = self.waiters, []
        else:
            self.durable = durable
            done = [waiter for waiter in self.waiters if waiter[0] <= durable]
            self.waiters = [waiter for waiter in self.waiters if waiter[0] > durable]
        self.committed.notify_all()
        return done

    def disown(self) -> None:
        """In a forked child, which has no thread: nothing can be written, and nobody waits for it."""
        self.lock = threading.Lock()  # a thread of the parent may hold the old one
        self.committed = threading.Condition(self.lock)
        self.waiters = []
        self.failure = LogWriteError("this log belongs to the process that this one was forked from")


_queues: weakref.WeakSet[_Queue] = weakref.WeakSet()


def _disown_all() -> None:
    for queue in list(_queues):
        queue.disown()


os.register_at_fork(after_in_child=_disown_all)


def _serve(queue: _Queue, interval: float) -> None:
    """The writer's thread: commits at most once per `interval` unless somebody waits."""
    due = time.monotonic()
    closing = False
    while not closing:
        queue.wake.wait()
        queue.hurry.wait(max(0.0, due - time.monotonic()))
        due = time.monotonic() + interval
        with queue.lock:
            closing = queue.closing
            batch, durable = queue.take()
        failure = _commit(batch)
        with queue.lock:
            done = queue.settle(durable, failure)
        _wake_loops(done, failure)
        closing = closing or failure is not None


def _commit(batch: list[tuple[RecordLog, list[bytes]]]) -> LogWriteError | None:
    for log, lines in batch:
        try:
            log.commit(lines)
        except Exception as error:
            log.roll_back()
            reason = error.strerror if isinstance(error, OSError) else repr(error)
            failure = LogWriteError(
                f"{log.path}: cannot write: {reason}",
                hint="Everything acknowledged so far is safe. Remove the cause, then continue the run with --resume.",
            )
            failure.__cause__ = error
            return failure
    return None


def _wake_loops(done: list[_Waiter], failure: LogWriteError | None) -> None:
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)
    for _, loop, waiter in done:
        by_loop[loop].append(waiter)
    for loop, waiters in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed while its task waited
            loop.call_soon_threadsafe(_resolve, waiters, failure)


def _resolve(waiters: list[asyncio.Future[None]], failure: LogWriteError | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if failure:
            waiter.set_exception(LogWriteError(failure.message, hint=failure.hint))
        else:
            waiter.set_result(None)


def _open_lines(path: Path) -> tuple[int, int, int]:
    """Opens a file of lines for appending; its descriptor, its length, and the length of the torn line cut from it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        size = end = os.fstat(descriptor).st_size
        while end:
            start = max(0, end - _TAIL_CHUNK)
            newline = os.pread(descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(descriptor, end)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, end, size - end


def replace_log(path: Path | str, lines: Iterable[bytes]) -> None:
    """Replaces the log at `path` by `lines` (JSON texts without newline) in one durable step.

    Lines are streamed. Whatever fails, the old log stays as it was and no temporary file stays behind. A `RecordLog` on
    the same path must be closed first. Raises `LogWriteError`, or what iterating `lines` raises.
    """
    try:
        disk.replace_file(path, (part for line in lines for part in (line, b"\n")))
    except OSError as error:
        raise LogWriteError(f"{path}: cannot replace the log: {error.strerror or error}") from error
