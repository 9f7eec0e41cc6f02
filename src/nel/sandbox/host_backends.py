"""`BwrapBackend` and `LocalBackend`: sandboxes without a daemon share nothing but the machine."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from typing import ClassVar

from nel.sandbox import cgroups, folder
from nel.sandbox.base import Leftover, Sandbox, SandboxBackend, SandboxError, SandboxSpec
from nel.sandbox.bwrap import PROGRAM, BwrapSandbox
from nel.sandbox.local import LocalSandbox
from nel.sandbox.owner import is_gone


class BwrapBackend(SandboxBackend):
    """Namespaces through bubblewrap."""

    name: ClassVar[str] = "bwrap"

    async def check(self) -> str:
        """See `SandboxBackend.check`."""
        async with BwrapSandbox(SandboxSpec()) as sandbox:
            await sandbox.exec(["true"])
        found = await asyncio.create_subprocess_exec(PROGRAM, "--version", stdout=asyncio.subprocess.PIPE)
        return (await found.communicate())[0].decode().strip()

    async def prepare(self, specs: Sequence[SandboxSpec]) -> Mapping[str, str]:  # noqa: ARG002 - nothing is fetched
        """See `SandboxBackend.prepare`: there are no images."""
        return {}

    def sandbox(self, spec: SandboxSpec) -> Sandbox:
        """See `SandboxBackend.sandbox`."""
        return BwrapSandbox(spec)

    async def close(self) -> None:
        """See `SandboxBackend.close`: nothing is shared."""

    async def leftovers(self) -> list[Leftover]:
        """See `SandboxBackend.leftovers`."""
        return await asyncio.to_thread(self._leftovers)

    def _leftovers(self) -> list[Leftover]:
        names = {("folder", name) for name in folder.names()} | {
            ("cgroup", name) for name in cgroups.names(folder.MARK)
        }
        found = []
        for kind, name in sorted(names):
            owner = name.removeprefix(folder.MARK).rpartition("-")[0]
            found.append(Leftover(backend=self.name, kind=kind, name=name, owner=owner, stale=is_gone(owner)))
        return found

    async def remove(self, leftover: Leftover) -> None:
        """See `SandboxBackend.remove`."""
        remove = cgroups.remove if leftover.kind == "cgroup" else folder.remove
        await asyncio.to_thread(remove, leftover.name)


class LocalBackend(SandboxBackend):
    """No isolation: for trusted code."""

    name: ClassVar[str] = "local"

    async def check(self) -> str:
        """See `SandboxBackend.check`."""
        if shutil.which("sh") is None:
            raise SandboxError("there is no shell", permanent=True)
        return "this machine, without isolation"

    async def prepare(self, specs: Sequence[SandboxSpec]) -> Mapping[str, str]:  # noqa: ARG002 - nothing is fetched
        """See `SandboxBackend.prepare`: there are no images."""
        return {}

    def sandbox(self, spec: SandboxSpec) -> Sandbox:
        """See `SandboxBackend.sandbox`."""
        return LocalSandbox(spec)

    async def close(self) -> None:
        """See `SandboxBackend.close`: nothing is shared."""

    async def leftovers(self) -> list[Leftover]:
        """See `SandboxBackend.leftovers`: none is known."""
        return []

    async def remove(self, leftover: Leftover) -> None:
        """See `SandboxBackend.remove`."""
        raise SandboxError(f"{leftover.name} is none of this backend's")
