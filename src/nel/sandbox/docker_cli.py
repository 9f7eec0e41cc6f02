"""The client of Docker, or of podman, which takes the same commands."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from nel.sandbox.base import KEPT_OUTPUT, ExecResult, SandboxError
from nel.sandbox.process import Sink, end_session, follow

_PATIENCE = 120.0
"""Seconds within which the daemon must have answered anything but a build, a pull or an `exec`."""


class DockerCli:
    """Runs commands of one client program."""

    def __init__(self, program: str = "docker") -> None:
        self.program = program

    async def run(
        self,
        *arguments: str,
        time_limit: float = _PATIENCE,
        stdin: bytes | BinaryIO = b"",
        stdout: Sink | None = None,
        env: Mapping[str, str] | None = None,
        keep: int = KEPT_OUTPUT,
    ) -> ExecResult:
        """How a command ended, whatever it said; `env` adds to the client's own environment."""
        if shutil.which(self.program) is None:
            raise SandboxError(f"{self.program} is not installed", permanent=True)
        return await follow(
            [self.program, *arguments],
            end=end_session,
            time_limit=time_limit,
            stdin=stdin,
            stdout=stdout,
            env={**os.environ, **(env or {})},
            keep=keep,
        )

    async def ask(self, *arguments: str, time_limit: float = _PATIENCE, env: Mapping[str, str] | None = None) -> str:
        """What a command printed; `SandboxError` says why it failed."""
        done = await self.run(*arguments, time_limit=time_limit, env=env)
        if not done.ok:
            raise SandboxError(f"{self.program} {arguments[0]}: {_reason(done, time_limit)}")
        return done.text.strip()

    async def inspect(self, *arguments: str) -> list[dict[str, Any]]:
        """What `inspect` tells of things that are there; empty where they are not."""
        done = await self.run(*arguments, "--format", "{{json .}}", keep=1 << 24)
        return [json.loads(line) for line in done.text.splitlines() if line.startswith("{")] if done.ok else []


def _reason(done: ExecResult, time_limit: float) -> str:
    if done.timed_out:
        return f"no answer within {time_limit:g} s"
    said = done.error_text.strip() or done.text.strip() or f"exit code {done.return_code}"
    return said.splitlines()[-1]


def options(flag: str, values: Sequence[str]) -> list[str]:
    """`flag` before each of the values."""
    return [part for value in values for part in (flag, value)]
