"""`ProcessModelDeployment`: a model server as a local process, from its first log line to its last worker's end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from nel.core.errors import ServiceError
from nel.core.secrets import Redactor, is_secret_name, redact_text
from nel.orchestration import guard

if TYPE_CHECKING:
    import aiohttp

HOST: Final = "127.0.0.1"
_TAIL_LINES, _TAIL_BYTES = 20, 1 << 16
_FIRST_DELAY, _LAST_DELAY = 0.05, 1.0
_HEALTH_TIMEOUT = 5.0
_GUARD_MARGIN = 2 * guard.PATIENCE
"""Seconds beyond the grace after which a guard that has not ended is killed itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployConfig:
    """What a deployment as a process needs."""

    name: str
    """The service, as messages name it."""
    command: list[str]
    port: int
    """Where the command listens, on this machine."""
    log_path: Path
    """Takes all output of the commands, from the first byte; an older log is continued."""
    health_path: str = "/health"
    startup_timeout: float = 600.0
    """Seconds from `start` until the health path must answer, setup commands included."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to NEL's own environment."""
    setup_commands: list[str] = field(default_factory=list)
    """Shell commands, run one after the other before the server; the first that fails ends it."""
    pre_cmd: str | None = None
    """Shell command that runs in the server's own shell, so that what it exports or activates holds."""
    stop_grace: float = 15.0
    """Seconds between SIGTERM and SIGKILL."""


class ProcessModelDeployment:
    """A server that NEL starts, waits for and ends, together with all that it started."""

    def __init__(self, config: DeployConfig) -> None:
        self._config = config
        self._process: asyncio.subprocess.Process | None = None
        self._log_start = 0
        self._deadline = 0.0
        secrets = [value for key, value in config.env.items() if is_secret_name(key)]
        self._redactor = Redactor(secrets)

    async def start(self) -> str:
        """Runs the setup commands and starts the server; its base URL. `ServiceError` says why that failed."""
        config = self._config
        if not _is_free(config.port):
            raise ServiceError(
                f"service {config.name}: port {config.port} is in use by another program.",
                hint="Stop that program, or set `port` to another number; 0 takes a free one.",
            )
        self._deadline = asyncio.get_running_loop().time() + config.startup_timeout
        config.log_path.parent.mkdir(parents=True, exist_ok=True)
        with config.log_path.open("ab") as log:
            self._log_start = log.tell()
            for index, command in enumerate(config.setup_commands):
                await self._set_up(index, command, log)
            self._process = await self._spawn(_in_shell(config.pre_cmd, config.command), log)
        return f"http://{HOST}:{config.port}"

    async def health_wait(self) -> None:
        """Returns once the health path answers; otherwise the server is stopped and `ServiceError` shows its log."""
        import aiohttp

        process = self._process
        if process is None:
            raise ServiceError(f"service {self._config.name}: the server was not started.")
        exited = asyncio.ensure_future(process.wait())
        loop, delay = asyncio.get_running_loop(), _FIRST_DELAY
        timeout = aiohttp.ClientTimeout(total=_HEALTH_TIMEOUT)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as session:
                while not exited.done():
                    found = await probe(session, f"http://{HOST}:{self._config.port}", self._config.health_path)
                    if found is None and not exited.done():
                        return
                    left = self._deadline - loop.time()
                    if left <= 0:
                        raise await self._failed(f"was not ready after {self._config.startup_timeout:g} s ({found})")
                    await asyncio.wait({exited}, timeout=min(delay, left))
                    delay = min(delay * 1.5, _LAST_DELAY)
            raise await self._failed(f"{_ended(exited.result())} before it was ready")
        finally:
            exited.cancel()

    async def stop(self) -> None:
        """Ends the server and everything that it started; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            await _end(process, self._config.stop_grace)

    async def _set_up(self, index: int, command: str, log: BinaryIO) -> None:
        process = self._process = await self._spawn(_in_shell(command, ["true"]), log)
        try:
            async with asyncio.timeout_at(self._deadline):
                status = await process.wait()
        except TimeoutError:
            found = f"setup_commands[{index}] did not end within {self._config.startup_timeout:g} s"
            raise await self._failed(found) from None
        if status:
            raise await self._failed(f"setup_commands[{index}] {_ended(status)}")

    async def _spawn(self, command: list[str], log: BinaryIO) -> asyncio.subprocess.Process:
        config = self._config
        shown = self._redact(shlex.join(command))
        log.write(f"[nel {time.strftime('%Y-%m-%d %H:%M:%S')}] {shown}\n".encode())
        log.flush()
        options = ["--parent", str(os.getpid()), "--grace", f"{config.stop_grace}"]
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", guard.__file__, *options, "--", *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **config.env},
            start_new_session=True,
        )

    async def _failed(self, found: str) -> ServiceError:
        tail = await asyncio.to_thread(self._tail)
        await self.stop()
        return ServiceError(
            f"service {self._config.name}: the server {found}.\n{tail}",
            hint=f"Its whole log: {self._config.log_path}",
        )

    def _tail(self) -> str:
        with self._config.log_path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, end - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(f"  | {line}" for line in self._redact("\n".join(lines[-_TAIL_LINES:])).splitlines())

    def _redact(self, text: str) -> str:
        return redact_text(self._redactor.text(text))


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe_socket:
        probe_socket.bind((HOST, 0))
        return int(probe_socket.getsockname()[1])


async def probe(session: aiohttp.ClientSession, base: str, path: str) -> str | None:
    """None if the path answers below 400, else what was found instead."""
    from urllib.parse import urljoin

    import aiohttp

    try:
        async with session.get(urljoin(base, path)) as reply:
            return None if reply.status < 400 else f"{path} answers {reply.status}"
    except TimeoutError:
        return f"{path} does not answer in time"
    except aiohttp.ClientError as error:
        return f"{path} does not answer: {error}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe_socket:
        probe_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe_socket.bind((HOST, port))
        except OSError:
            return False
    return True


def _in_shell(first: str | None, command: list[str]) -> list[str]:
    if first is None:
        return command
    shell = shutil.which("bash") or "/bin/sh"
    return [shell, "-c", 'eval "$1" || exit; shift; exec "$@"', "nel", first, *command]


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with exit code {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


async def _end(process: asyncio.subprocess.Process, grace: float) -> None:
    if process.returncode is None:
        # Not `process.terminate`: it may take the exit status away from the loop that waits for it.
        guard.send(signal.SIGTERM, [process.pid])
        try:
            await asyncio.wait_for(process.wait(), grace + _GUARD_MARGIN)
        except TimeoutError:
            guard.send(signal.SIGKILL, [process.pid])
            await process.wait()
    if process.returncode is not None and process.returncode < 0:
        # The guard itself may have been killed, and so have left something behind.
        await asyncio.to_thread(guard.kill_session, process.pid)
