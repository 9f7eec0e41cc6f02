"""`SandboxManager`: hands sandboxes out, a bounded number at once, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Self

from nel.sandbox.base import Leftover, OutsideEndpoint, Sandbox, SandboxBackend, SandboxError, SandboxSpec


class SandboxManager:
    """Owns the sandboxes of a run. An async context manager: `open` and `close`.

    At most `concurrency` are handed out at once. For specs that come again, up to `warm` are started ahead; each of
    those is used once. `close` ends everything, and what a killed run left is removed by the next `open`.
    """

    def __init__(self, backend: SandboxBackend, *, concurrency: int = 4, warm: int = 0) -> None:
        self.backend = backend
        self.version = ""
        """What the backend runs on, known from `open` on."""
        self.problems: list[str] = []
        """What could not be removed, with the reason."""
        self._slots = asyncio.Semaphore(concurrency)
        self._warm_limit = warm
        self._seen: Counter[SandboxSpec] = Counter()
        self._warm: OrderedDict[SandboxSpec, list[asyncio.Task[Sandbox]]] = OrderedDict()
        self._idle: dict[SandboxSpec, list[Sandbox]] = {}
        self._live: set[Sandbox] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._closing = False

    async def open(self) -> None:
        """Checks that the backend works and removes what ended runs left; `SandboxError` says what is missing."""
        self.version = await self.backend.check()
        await reap(self.backend)

    async def prepare(self, specs: Sequence[SandboxSpec]) -> Mapping[str, str]:
        """Fetches and builds images ahead; from an image to its digest."""
        return await self.backend.prepare(specs)

    async def acquire(self, spec: SandboxSpec, outside_endpoints: Sequence[OutsideEndpoint] = ()) -> Sandbox:
        """A started sandbox, once there is room; it must be given to `release`."""
        await self._slots.acquire()
        try:
            sandbox = None if outside_endpoints else await self._take_warm(spec)
            if sandbox is None:
                sandbox = self.backend.sandbox(spec)
                await sandbox.start(outside_endpoints)
            self._live.add(sandbox)
            if not outside_endpoints:
                self._start_ahead(spec)
        except BaseException:
            self._slots.release()
            raise
        return sandbox

    async def release(self, sandbox: Sandbox) -> None:
        """Stops it. That it cannot be removed is noted in `problems` and fails nothing."""
        if sandbox not in self._live:
            return
        self._live.discard(sandbox)
        try:
            await asyncio.shield(self._stop(sandbox))
        finally:
            self._slots.release()

    @contextlib.asynccontextmanager
    async def sandbox(
        self, spec: SandboxSpec, outside_endpoints: Sequence[OutsideEndpoint] = ()
    ) -> AsyncIterator[Sandbox]:
        """A sandbox that nobody used before, for as long as the block lasts."""
        sandbox = await self.acquire(spec, outside_endpoints)
        try:
            yield sandbox
        finally:
            await self.release(sandbox)

    @contextlib.asynccontextmanager
    async def reused(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """A sandbox that others may have used for the same spec, emptied after each; the spec has a read-only root.

        For checks that are many and small, where what runs has nothing to hide from the next. One that cannot be
        emptied is stopped.
        """
        async with self._slots:
            idle = self._idle.setdefault(spec, [])
            sandbox = idle.pop() if idle else None
            if sandbox is None:
                sandbox = self.backend.sandbox(spec)
                await sandbox.start()
            self._live.add(sandbox)
            try:
                yield sandbox
                await sandbox.reset()
            except BaseException:
                self._live.discard(sandbox)
                await asyncio.shield(self._stop(sandbox))
                raise
            self._live.discard(sandbox)
            idle.append(sandbox)

    async def close(self) -> None:
        """Stops every sandbox and removes what they shared; also when it is cancelled."""
        self._closing = True
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        warm = [task for tasks in self._warm.values() for task in tasks]
        self._warm.clear()
        for task in warm:
            task.cancel()
        ready = [found for found in await asyncio.gather(*warm, return_exceptions=True) if isinstance(found, Sandbox)]
        idle = [sandbox for sandboxes in self._idle.values() for sandbox in sandboxes]
        self._idle.clear()
        live, self._live = list(self._live), set()
        await asyncio.gather(*map(self._stop, {*ready, *idle, *live}), *self._ending)
        try:
            await self.backend.close()
        except SandboxError as error:
            self.problems.append(error.message)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _stop(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.stop()
        except Exception as error:
            self.problems.append(f"a sandbox of {sandbox.backend} could not be removed: {error}")

    async def _take_warm(self, spec: SandboxSpec) -> Sandbox | None:
        while tasks := self._warm.get(spec):
            task = tasks.pop(0)
            try:
                sandbox = await asyncio.shield(task)
            except SandboxError:
                continue
            except asyncio.CancelledError:
                tasks.insert(0, task)
                raise
            if await sandbox.is_running():
                return sandbox
            await self._stop(sandbox)
        return None

    def _start_ahead(self, spec: SandboxSpec) -> None:
        self._seen[spec] += 1
        if self._closing or self._warm_limit == 0 or self._seen[spec] < 2:
            return
        tasks = self._warm.setdefault(spec, [])
        self._warm.move_to_end(spec)
        tasks.append(asyncio.create_task(self._started(spec)))
        while sum(map(len, self._warm.values())) > self._warm_limit:
            oldest = next(iter(self._warm))
            if not self._warm[oldest]:
                del self._warm[oldest]
                continue
            self._discard(self._warm[oldest].pop(0))

    async def _started(self, spec: SandboxSpec) -> Sandbox:
        sandbox = self.backend.sandbox(spec)
        await sandbox.start()
        return sandbox

    def _discard(self, task: asyncio.Task[Sandbox]) -> None:
        """Ends one that was started ahead for a spec that does not come any more."""

        async def end() -> None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, SandboxError):
                await self._stop(await task)

        ending = asyncio.create_task(end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


async def reap(backend: SandboxBackend) -> list[Leftover]:
    """Removes what ended runs left of a backend's sandboxes, and returns what that was."""
    removed = []
    # Networks last: a container that is attached keeps one.
    for leftover in sorted(await backend.leftovers(), key=lambda item: item.kind == "network"):
        if leftover.stale:
            with contextlib.suppress(SandboxError):  # another run may have been quicker
                await backend.remove(leftover)
                removed.append(leftover)
    return removed
