"""`Sandboxes`: the sandboxes of a run, one manager for each way that its configuration names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from nel.config.benchmarks import Benchmark
from nel.config.sandboxes import (
    AutoSandbox,
    BwrapSandbox,
    ContainerSandbox,
    CustomSandbox,
    HostSandbox,
    LocalSandbox,
    NoSandbox,
    Sandbox,
    memory_bytes,
)
from nel.config.scoring import SandboxMetric
from nel.core.errors import UsageError
from nel.core.loading import load_object
from nel.environments.base import EvalEnvironment
from nel.sandbox.backends import BUILT_IN, best_backend, get_backend
from nel.sandbox.base import SandboxBackend, SandboxSpec
from nel.sandbox.manager import SandboxManager
from nel.scoring.command import COMMAND_SPEC

PYTHON_IMAGE = "python:3.12-slim"
"""Where Python programs are checked in a container, unless the config names an image."""
_AUTO = AutoSandbox(type="auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSandbox:
    """What a cell's sandboxes are."""

    spec: SandboxSpec
    manager: SandboxManager
    version: str
    """What they run on, for the records."""


class Sandboxes:
    """The managers of a configuration; close it in the loop that used it."""

    def __init__(self) -> None:
        self._managers: dict[str, SandboxManager] = {}
        self._opened: dict[str, asyncio.Task[None]] = {}

    async def of(self, entry: Benchmark, env: EvalEnvironment) -> CellSandbox | None:
        """What an entry's answers are graded in; None where the benchmark needs nothing. Nothing is started yet.

        A benchmark that needs a sandbox gets the best one of this machine where its entry does not name one.
        `UsageError` where the entry says that there is none, `SandboxError` where it does not work here.
        """
        runs_commands = any(isinstance(metric, SandboxMetric) for metric in entry.scoring.metrics)
        needed = env.verify_sandbox or (COMMAND_SPEC if runs_commands else None)
        if needed is None:
            return None
        said = entry.sandbox
        if isinstance(said, NoSandbox):
            if "sandbox" in entry.model_fields_set:
                raise UsageError(
                    f"{env.name} needs a sandbox for what it runs, but its entry has `sandbox: {{type: none}}`",
                    hint="Name one, such as `sandbox: {type: bwrap}`, or leave the key out for the best one.",
                )
            said = _AUTO
        key = said.model_dump_json()
        if key not in self._managers:
            self._managers[key] = SandboxManager(
                await _backend(said, needed), concurrency=getattr(said, "concurrency", _AUTO.concurrency)
            )
        manager = self._managers[key]
        version = await manager.backend.check()
        return CellSandbox(spec=_spec(said, needed, manager.backend), manager=manager, version=version)

    async def start(self, cell: CellSandbox) -> None:
        """Removes what ended runs left and fetches the image; once for each manager and image."""
        name = f"{id(cell.manager)} {cell.spec.image}"
        if name not in self._opened:
            self._opened[name] = asyncio.create_task(_open(cell))
        await asyncio.shield(self._opened[name])

    async def close(self) -> list[str]:
        """Stops every sandbox; what could not be removed, each with the reason."""
        await asyncio.gather(*(manager.close() for manager in self._managers.values()))
        return [problem for manager in self._managers.values() for problem in manager.problems]


async def _open(cell: CellSandbox) -> None:
    await cell.manager.open()
    await cell.manager.prepare([cell.spec])


async def _backend(said: Sandbox, needed: SandboxSpec) -> SandboxBackend:
    if isinstance(said, AutoSandbox):
        return await best_backend(needs_image=needed.image is not None)
    if isinstance(said, CustomSandbox):
        if ":" not in said.class_path and not said.config:
            return get_backend(said.class_path)
        backend: SandboxBackend = load_object(said.class_path, what="sandbox backend")(**said.config)
        return backend
    assert said.type in BUILT_IN
    return get_backend(said.type)


def _spec(said: Sandbox, needed: SandboxSpec, backend: SandboxBackend) -> SandboxSpec:
    """What the benchmark needs, within what the config allows."""
    if isinstance(said, CustomSandbox):
        return needed
    spec = replace(needed, env={**needed.env, **getattr(said, "container_env", {})})
    if isinstance(said, HostSandbox | ContainerSandbox):
        limits = spec.limits
        memory = min(limits.memory, memory_bytes(said.memory)) if "memory" in said.model_fields_set else limits.memory
        cpus = said.cpus if "cpus" in said.model_fields_set else limits.cpus
        spec = replace(spec, limits=replace(limits, memory=memory, cpus=cpus))
    if isinstance(said, LocalSandbox):
        return replace(spec, readonly_root=False)
    if isinstance(said, BwrapSandbox):
        return replace(spec, image=said.root or spec.image)
    if backend.name in {"docker", "podman"}:
        image = said.image if isinstance(said, ContainerSandbox) else None
        return replace(spec, image=image or spec.image or PYTHON_IMAGE)
    return spec
