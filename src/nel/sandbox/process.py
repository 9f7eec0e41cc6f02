"""A command on this machine, followed to its end: bounded output, a time limit, nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from nel.sandbox.base import KEPT_OUTPUT, ExecResult, SandboxError

TIMED_OUT = 124
_CHUNK = 1 << 16
_DRAIN = 0.5
"""Seconds in which output that is on its way is still read when the command has ended. What it left in the background
may hold its pipes open for ever."""


class Sink(Protocol):
    """Takes what a stream says."""

    def add(self, data: bytes) -> None:
        """Takes what comes next."""
        ...

    def value(self) -> bytes:
        """What is told of it."""
        ...

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        ...


class ToFile:
    """Writes a stream to a file, at most `max_bytes` of it."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._file = file
        self._left = max_bytes
        self.truncated = False

    def add(self, data: bytes) -> None:
        """Takes what comes next."""
        self.truncated = self.truncated or len(data) > self._left
        self._file.write(data[: self._left])
        self._left -= min(self._left, len(data))

    def value(self) -> bytes:
        """Nothing: it is in the file."""
        return b""


class Output:
    """What a stream said: all of it up to `keep` bytes, then its first and its last half of that."""

    def __init__(self, keep: int) -> None:
        self._half = keep // 2
        self._keep = keep
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Takes what comes next."""
        self.total += len(data)
        room = self._keep - len(self._head)
        if room and not self._tail:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._keep:
            del self._tail[: len(self._tail) - self._half]

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self.total > self._keep

    def value(self) -> bytes:
        """What is kept."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        last = bytes((self._head + self._tail)[-self._half :]) if self._half else b""
        left_out = self.total - 2 * self._half
        return bytes(self._head[: self._half]) + b"\n[... %d bytes left out ...]\n" % left_out + last


async def follow(
    command: Sequence[str],
    *,
    end: Callable[[int], Awaitable[None]],
    time_limit: float | None = None,
    stdin: bytes | BinaryIO = b"",
    stdout: Sink | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
    on_start: Callable[[int], None] | None = None,
    keep: int = KEPT_OUTPUT,
) -> ExecResult:
    """Runs `command` in a session of its own and returns how it ended.

    `stdout` takes its output instead of the result; `on_start` is told the id of its process.

    When its time is up, and when the caller is cancelled, `end` is awaited with the id of its process: it must end that
    process and all that came of it. `SandboxError` where the command cannot be started.
    """
    outputs: tuple[Sink, Sink] = stdout or Output(keep), Output(keep)
    pipes = [os.pipe(), os.pipe()]
    try:
        with _readable(stdin) as source:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=source,
                stdout=pipes[0][1],
                stderr=pipes[1][1],
                env=None if env is None else dict(env),
                cwd=cwd,
                pass_fds=pass_fds,
                start_new_session=True,
            )
    except OSError as error:
        for reading, writing in pipes:
            os.close(reading)
            os.close(writing)
        raise SandboxError(f"{command[0]} cannot be run: {error.strerror or error}") from error
    for _, writing in pipes:
        os.close(writing)
    if on_start is not None:
        on_start(process.pid)
    timed_out = False
    readers = [_Reader(reading, output) for (reading, _), output in zip(pipes, outputs, strict=True)]
    try:
        try:
            async with asyncio.timeout(time_limit):
                await process.wait()
        except TimeoutError:
            timed_out = True
            await end(process.pid)
            await process.wait()
        await asyncio.wait([reader.ended for reader in readers], timeout=_DRAIN)
    except BaseException:
        await asyncio.shield(_end_quietly(process, end))
        raise
    finally:
        for reader in readers:
            reader.close()
    code = process.returncode or 0
    return ExecResult(
        return_code=TIMED_OUT if timed_out else 128 - code if code < 0 else code,
        stdout=outputs[0].value(),
        stderr=outputs[1].value(),
        timed_out=timed_out,
        truncated=any(output.truncated for output in outputs),
    )


@contextlib.contextmanager
def _readable(stdin: bytes | BinaryIO) -> Iterator[BinaryIO | int]:
    """What a process can be given as its standard input."""
    if not isinstance(stdin, bytes):
        yield stdin
    elif not stdin:
        yield asyncio.subprocess.DEVNULL
    else:
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            yield file


async def _end_quietly(process: asyncio.subprocess.Process, end: Callable[[int], Awaitable[None]]) -> None:
    await end(process.pid)
    await process.wait()


async def end_session(pid: int) -> None:
    """Ends, at once, the process `pid` and the others of the session that it leads."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class _Reader:
    """Reads a pipe into an output until its end; `ended` is then done."""

    def __init__(self, descriptor: int, output: Sink) -> None:
        self._descriptor = descriptor
        self._output = output
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        if data:
            self._output.add(data)
            return
        self._loop.remove_reader(self._descriptor)
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Stops reading."""
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self.ended.cancel()
