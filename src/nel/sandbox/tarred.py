"""`TarredSandbox`: trees go in and out through the sandbox's own `tar`, so that no path of its is followed out here."""

from __future__ import annotations

import asyncio
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from nel.sandbox.archive import pack, unpack
from nel.sandbox.base import ExecResult, Sandbox, SandboxError
from nel.sandbox.process import Sink, ToFile

_TRANSFER = 600.0
"""Seconds for one transfer."""
_SPOOL = 8 << 20
"""Bytes of an archive that stay in memory."""
_HEADERS = 1 << 28
"""What an archive of many small files may be larger than they are."""


class TarredSandbox(Sandbox):
    """A sandbox whose root has a `tar`."""

    @abstractmethod
    async def pipe(
        self, command: Sequence[str], *, stdin: bytes | BinaryIO = b"", stdout: Sink | None = None
    ) -> ExecResult:
        """Runs a command inside at `/`, with files or sinks of ours at its ends, for at most ten minutes."""

    async def upload(self, local: Path, remote: str) -> None:
        """See `Sandbox.upload`."""
        if not local.exists():
            raise SandboxError(f"{local}: no such file or folder, so it cannot be copied in", permanent=True)
        target = self.absolute(remote)
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as archive:
            await asyncio.to_thread(pack, local, archive, target.name)  # type: ignore[arg-type]
            archive.rollover()
            archive.seek(0)
            script = 'mkdir -p "$1" && exec tar -x -f - -C "$1"'
            done = await self.pipe(["sh", "-c", script, "sh", str(target.parent)], stdin=archive)  # type: ignore[arg-type]
        if not done.ok:
            raise SandboxError(
                f"{local} could not be copied to {remote}: {done.error_text.strip() or done.return_code}"
            )

    async def download(self, remote: str, local: Path, *, max_bytes: int = 1 << 30) -> None:
        """See `Sandbox.download`."""
        source = self.absolute(remote)
        with tempfile.TemporaryFile() as archive:
            sink = ToFile(archive, max_bytes + _HEADERS)
            command = ["tar", "-c", "-f", "-", "-C", str(source.parent), "--", source.name]
            done = await self.pipe(command, stdout=sink)
            if sink.truncated:
                raise SandboxError(f"{remote}: more than {max_bytes:,} bytes", permanent=True)
            if not done.ok:
                raise SandboxError(f"{remote} could not be copied out: {done.error_text.strip() or done.return_code}")
            archive.seek(0)
            await asyncio.to_thread(unpack, archive, local, max_bytes=max_bytes)

    def absolute(self, remote: str) -> PurePosixPath:
        """A path inside, which may be relative to the work directory."""
        path = PurePosixPath(self.spec.workdir) / remote
        if path.name in {"", ".", ".."} or "\0" in remote:
            raise SandboxError(f"{remote!r} names no file or folder inside", permanent=True)
        return path
