"""The manager: a bound that holds, sandboxes started ahead and used once, nothing left on any path."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from sandboxes import IMAGE, LIMITS, mine, on_isolated

from nel.sandbox.backends import get_backend
from nel.sandbox.base import Leftover, Sandbox, SandboxBackend, SandboxError, SandboxSpec
from nel.sandbox.manager import SandboxManager, reap


class Recorded(SandboxBackend):
    """The local backend, with a book of what was started and stopped."""

    name = "recorded"

    def __init__(self, refuse=0):
        self.inner = get_backend("local")
        self.started = 0
        self.stopped = 0
        self.peak = 0
        self.refuse = refuse
        self.stale: list[Leftover] = []

    async def check(self):
        return "recorded"

    async def prepare(self, specs):
        return {}

    def sandbox(self, spec):
        sandbox, book = self.inner.sandbox(spec), self
        start, stop = sandbox.start, sandbox.stop

        async def counted_start(endpoints=()):
            book.started += 1
            if book.refuse:
                book.refuse -= 1
                book.started -= 1
                raise SandboxError("no room")
            await start(endpoints)
            book.peak = max(book.peak, book.started - book.stopped)

        async def counted_stop():
            book.stopped += 1
            await stop()

        sandbox.start, sandbox.stop = counted_start, counted_stop
        return sandbox

    async def close(self):
        pass

    async def leftovers(self):
        return list(self.stale)

    async def remove(self, leftover):
        self.stale.remove(leftover)


SPEC = SandboxSpec(limits=LIMITS)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def test_two_hundred_ask_and_never_more_than_eight_are_there():
    async def act():
        backend = Recorded()
        async with SandboxManager(backend, concurrency=8) as manager:

            async def use():
                async with manager.sandbox(SPEC) as sandbox:
                    await sandbox.exec(["true"])

            await asyncio.gather(*(use() for _ in range(200)))
        return backend

    backend = run(act())
    assert (backend.started, backend.stopped) == (200, 200)
    assert backend.peak == 8


def test_sandboxes_of_a_spec_that_comes_again_are_started_ahead_and_used_once():
    async def act():
        backend = Recorded()
        async with SandboxManager(backend, concurrency=2, warm=2) as manager:
            seen: list[Sandbox] = []
            for _ in range(5):
                sandbox = await manager.acquire(SPEC)
                seen.append(sandbox)
                await manager.release(sandbox)
        return backend, seen

    backend, seen = run(act())
    assert len(set(map(id, seen))) == 5
    assert backend.started == backend.stopped
    assert backend.peak <= 1 + 2


def test_what_was_started_ahead_for_another_spec_makes_room():
    async def act():
        backend = Recorded()
        async with SandboxManager(backend, concurrency=1, warm=1) as manager:
            for name in "aabbccab":
                async with manager.sandbox(SandboxSpec(env={"NAME": name})) as sandbox:
                    assert (await sandbox.exec("echo $NAME")).text.strip() == name
        return backend

    backend = run(act())
    assert backend.started == backend.stopped
    assert backend.peak <= 3


def test_a_start_that_fails_or_is_cancelled_gives_its_place_back():
    async def act():
        backend = Recorded(refuse=1)
        async with SandboxManager(backend, concurrency=1) as manager:
            with pytest.raises(SandboxError, match="no room"):
                await manager.acquire(SPEC)
            task = asyncio.create_task(manager.acquire(SPEC))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with manager.sandbox(SPEC) as sandbox:
                return (await sandbox.exec("echo room")).text

    assert run(act()) == "room\n"


def test_an_error_in_the_block_releases_the_sandbox():
    async def act():
        backend = Recorded()
        async with SandboxManager(backend, concurrency=1) as manager:
            with pytest.raises(ValueError, match="mine"):
                async with manager.sandbox(SPEC):
                    raise ValueError("mine")
            assert (backend.started, backend.stopped) == (1, 1)

    run(act())


@on_isolated
def test_a_reused_sandbox_shows_nothing_of_the_one_before(backend):
    image = IMAGE if backend in {"docker", "podman"} else None
    spec = SandboxSpec(image=image, limits=LIMITS, readonly_root=True)

    async def act():
        seen = []
        async with SandboxManager(get_backend(backend), concurrency=1) as manager:
            for _ in range(3):
                async with manager.reused(spec) as sandbox:
                    seen.append(sandbox)
                    before = await sandbox.exec("ls -A . /tmp; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
                    await sandbox.exec("mkdir -p d; echo x > d/f; echo y > /tmp/g; setsid sleep 88.5 >/dev/null 2>&1 &")
                    assert b"sleep 88.5" not in before.stdout
                    assert b"d" not in before.stdout.split()
                    assert b"g" not in before.stdout.split()
        return seen, mine(await manager.backend.leftovers())

    seen, left = run(act())
    assert len(set(map(id, seen))) == 1
    assert left == []


def test_what_ended_runs_left_is_removed_at_the_next_start():
    backend = Recorded()
    ended = Leftover(backend="recorded", kind="container", name="a", owner="x", stale=True)
    others = Leftover(backend="recorded", kind="container", name="b", owner="y", stale=False)
    backend.stale = [ended, others]

    async def act():
        async with SandboxManager(backend):
            return list(backend.stale)

    assert run(act()) == [others]


@on_isolated
def test_what_a_killed_run_leaves_is_found_and_removed(backend, tmp_path):
    image = IMAGE if backend in {"docker", "podman"} else None
    os.mkfifo(tmp_path / "ready")
    program = f"""
        import asyncio
        from nel.sandbox.backends import get_backend
        from nel.sandbox.base import Limits, SandboxSpec

        async def main():
            backend = get_backend({backend!r})
            network = "none" if {backend!r} == "bwrap" else "internal"
            sandbox = backend.sandbox(SandboxSpec(image={image!r}, network=network, limits=Limits(memory=1 << 28)))
            await sandbox.start()
            task = asyncio.create_task(sandbox.exec("sleep 600"))
            await sandbox.exec("true")
            open({str(tmp_path / "ready")!r}, "w").write("ready")
            await task

        asyncio.run(main())
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    assert (tmp_path / "ready").read_text() == "ready"
    process.send_signal(signal.SIGKILL)
    process.wait()

    async def act():
        made = get_backend(backend)
        owner = f"_{process.pid}_"
        left = [item for item in await made.leftovers() if owner in item.owner]
        assert left
        assert all(item.stale for item in left)
        removed = await reap(made)
        assert {item.name for item in left} <= {item.name for item in removed}
        return [item for item in await made.leftovers() if owner in item.owner]

    assert run(act()) == []
