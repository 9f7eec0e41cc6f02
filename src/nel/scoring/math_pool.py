"""A few processes that do what may never end: each job has a hard time limit, after which its process is killed.

Any thread may ask. A process is started when it is first needed, stays warm, and is replaced after a kill. It ends by
itself when its standard input closes, and the kernel ends it when it computes for longer than its job allows, so none
survives its parent.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from typing import Any

_START_LIMIT = 60.0  # seconds for a process to import what it needs, on a busy machine
_LENGTH = struct.Struct(">I")


class JobTimeoutError(Exception):
    """The job's time was over; its process was killed."""


class JobFailedError(Exception):
    """The process ended during the job (out of memory, most often), or the job raised."""


class WorkerPool:
    """Runs the jobs of one module in `size` processes; belongs to the process that made it, not to a fork of it.

    Args:
        module: run as `python -m module`; it calls `serve` (`nel.scoring.math_worker` shows how).
        size: processes at most; a caller waits for a free one.
    """

    def __init__(self, module: str, *, size: int = 2) -> None:
        self._module = module
        self._free: list[_Worker | None] = [None] * size
        self._available = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._owner = os.getpid()
        atexit.register(self.close)

    def run(self, job: str, *arguments: Any, timeout: float) -> Any:
        """What the job returns; the clock starts when a process is free and ready.

        Raises:
            JobTimeoutError: after `timeout` seconds.
            JobFailedError: the process broke, or the job raised.
        """
        with self._available:
            with self._lock:
                worker = self._free.pop()
            try:
                if worker is None or not worker.is_alive():
                    worker = _Worker(self._module)
                return worker.run([job, timeout, *arguments], timeout)
            except BaseException:
                if worker is not None and not worker.is_idle:
                    worker.kill()
                    worker = None
                raise
            finally:
                with self._lock:
                    self._free.append(worker)  # the warm one is taken first

    def close(self) -> None:
        """End the processes; the pool can be used again."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            workers, self._free = self._free, [None] * len(self._free)
        for worker in workers:
            if worker is not None:
                worker.kill()


class _Worker:
    """One process and the two pipes to it."""

    def __init__(self, module: str) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        self.is_idle = False
        self._receive(_START_LIMIT)
        self.is_idle = True

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def run(self, request: list[Any], timeout: float) -> Any:
        self.is_idle = False
        data = json.dumps(request).encode()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(_LENGTH.pack(len(data)) + data)
            self._process.stdin.flush()
        except OSError as error:
            raise JobFailedError(f"the process is gone: {error}") from None
        reply = self._receive(timeout)
        self.is_idle = True
        if "error" in reply:
            raise JobFailedError(reply["error"])
        return reply["result"]

    def _receive(self, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        return json.loads(self._read(length, deadline))

    def _read(self, size: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()  # unlike select, it takes any descriptor number
        poll.register(descriptor, select.POLLIN)
        data = b""
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise JobTimeoutError
            piece = os.read(descriptor, size - len(data))
            if not piece:
                raise JobFailedError(f"the process ended with code {self._process.wait()}")
            data += piece
        return data

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def serve(jobs: dict[str, Any], *, memory: int) -> None:
    """The loop of a worker process: jobs from standard input, results to standard output, until the input closes.

    Args:
        jobs: name to function.
        memory: bytes of address space at most.
    """
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)  # a library's print would break the protocol
    _send(sink, {"result": "ready"})
    while header := source.read(_LENGTH.size):
        job, timeout, *arguments = json.loads(source.read(_LENGTH.unpack(header)[0]))
        _limit_cpu(timeout)
        try:
            reply = {"result": jobs[job](*arguments)}
        except (Exception, RecursionError) as error:
            reply = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        _send(sink, reply)


def _send(sink: Any, reply: Any) -> None:
    data = json.dumps(reply).encode()
    sink.write(_LENGTH.pack(len(data)) + data)
    sink.flush()


def _limit_cpu(seconds: float) -> None:
    """The kernel ends this process some seconds after its job should have: its parent may be gone."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(usage.ru_utime + usage.ru_stime + seconds) + 3, hard))
