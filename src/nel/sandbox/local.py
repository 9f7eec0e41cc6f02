"""`LocalSandbox`: a temporary folder and processes of one's own. No isolation at all: for trusted code."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, ClassVar

from nel.sandbox.base import KEPT_OUTPUT, ExecResult, OutsideEndpoint, SandboxError, SandboxSpec
from nel.sandbox.process import Sink, end_session, follow
from nel.sandbox.tarred import TarredSandbox

_TRANSFER = 600.0


class LocalSandbox(TarredSandbox):
    """Commands run as the caller, in a folder that stands for the work directory; nothing else is kept apart."""

    backend: ClassVar[str] = "local"

    def __init__(self, spec: SandboxSpec) -> None:
        super().__init__(spec)
        for asked, what in (
            (spec.image or spec.environment_dir, "images"),
            (spec.user, "users"),
            (spec.volumes, "volumes"),
            (spec.readonly_root, "a read-only root"),
        ):
            if asked:
                raise SandboxError(f"the sandbox `local` has no {what}", permanent=True)
        self._folder: Path | None = None
        self._sessions: set[int] = set()
        self._env: dict[str, str] = {}

    async def start(self, outside_endpoints: Sequence[OutsideEndpoint] = ()) -> None:
        """See `Sandbox.start`."""
        self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="nel-local-"))
        self._env = {endpoint.env_var: endpoint.url for endpoint in outside_endpoints}
        for local, remote in self.spec.files.items():
            await self.upload(Path(local), remote)

    async def stop(self) -> None:
        """See `Sandbox.stop`."""
        for pid in self._sessions:
            await end_session(pid)
        self._sessions.clear()
        folder, self._folder = self._folder, None
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        time_limit: float = 180.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes = b"",
        keep: int = KEPT_OUTPUT,
    ) -> ExecResult:
        """See `Sandbox.exec`. A process that leaves its session is not ended with the command."""
        if user is not None:
            raise SandboxError("the sandbox `local` has no users", permanent=True)
        inner = [shutil.which("bash") or "sh", "-c", command] if isinstance(command, str) else list(command)
        return await self._run(inner, time_limit=time_limit, cwd=cwd or "", env=env or {}, stdin=stdin, keep=keep)

    async def pipe(
        self, command: Sequence[str], *, stdin: bytes | BinaryIO = b"", stdout: Sink | None = None
    ) -> ExecResult:
        """See `TarredSandbox.pipe`."""
        return await self._run(list(command), time_limit=_TRANSFER, cwd="", env={}, stdin=stdin, stdout=stdout)

    async def _run(
        self,
        inner: Sequence[str],
        *,
        time_limit: float,
        cwd: str,
        env: Mapping[str, str],
        stdin: bytes | BinaryIO = b"",
        stdout: Sink | None = None,
        keep: int = KEPT_OUTPUT,
    ) -> ExecResult:
        if self._folder is None:
            raise SandboxError("the sandbox is not running")
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self._folder), **self.spec.env, **self._env, **env}
        return await follow(
            inner,
            end=end_session,
            time_limit=time_limit,
            stdin=stdin,
            stdout=stdout,
            env=env,
            cwd=self._folder / cwd,
            on_start=self._sessions.add,
            keep=keep,
        )

    def absolute(self, remote: str) -> PurePosixPath:
        """A path below the work directory, as it is on this machine."""
        inside = super().absolute(remote)
        if self._folder is None:
            raise SandboxError("the sandbox is not running")
        if not inside.is_relative_to(self.spec.workdir) or ".." in inside.parts:
            raise SandboxError(f"{remote!r} lies outside the work directory, all that `local` has", permanent=True)
        return PurePosixPath(self._folder) / inside.relative_to(self.spec.workdir)

    async def reset(self) -> None:
        """See `Sandbox.reset`: there is no root that could be read-only."""
        folder = self._folder
        if folder is None:
            raise SandboxError("the sandbox is not running")
        for pid in self._sessions:
            await end_session(pid)
        self._sessions.clear()
        await asyncio.to_thread(shutil.rmtree, folder)
        folder.mkdir(mode=0o700)

    async def is_running(self) -> bool:
        """See `Sandbox.is_running`."""
        return self._folder is not None

    def resolve_outside_endpoint(self, url: str) -> str:
        """See `Sandbox.resolve_outside_endpoint`."""
        return url
