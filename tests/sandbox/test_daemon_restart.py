"""The Docker daemon goes away in the middle and comes back. Runs alone and last: it stops the suite's own daemon."""

from __future__ import annotations

import asyncio
import subprocess

import pytest
from sandboxes import IMAGE, LIMITS, SCRIPTS, mine

from nel.sandbox.base import SandboxError, SandboxSpec
from nel.sandbox.docker_backend import DockerBackend
from nel.sandbox.manager import SandboxManager

pytestmark = [pytest.mark.daemon_restart, pytest.mark.parametrize("backend", ["docker"], indirect=True)]


def test_a_daemon_that_goes_away_is_an_error_and_the_next_sandbox_works(backend):
    spec = SandboxSpec(image=IMAGE, limits=LIMITS)

    async def act():
        manager = SandboxManager(DockerBackend(), concurrency=1)
        await manager.open()
        sandbox = await manager.acquire(spec)
        running = asyncio.create_task(sandbox.exec("sleep 60"))
        while not (await sandbox.exec("ps | grep -q '[s]leep 60'")).ok:
            pass
        subprocess.run([SCRIPTS / "docker-daemon", "stop"], check=True)
        try:
            with pytest.raises(SandboxError):
                await running
            with pytest.raises(SandboxError):
                await sandbox.exec("true")
            assert not await sandbox.is_running()
            await manager.release(sandbox)
            with pytest.raises(SandboxError):
                await manager.acquire(spec)
        finally:
            subprocess.run([SCRIPTS / "docker-daemon", "start"], check=True)
        async with manager.sandbox(spec) as again:
            found = await again.exec("echo works")
        await manager.close()
        left = mine(await manager.backend.leftovers())
        for item in left:
            await manager.backend.remove(item)
        return found.text, manager.problems

    text, problems = asyncio.run(asyncio.wait_for(act(), 120))
    assert text == "works\n"
    assert any("could not be removed" in problem for problem in problems)
