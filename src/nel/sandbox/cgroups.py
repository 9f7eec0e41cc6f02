"""A cgroup of one's own, of either version: limits that hold for everything a command starts."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nel.sandbox.base import Limits, SandboxError

ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("memory", "pids", "cpu")
_PERIOD = 100_000
"""Microseconds over which `cpus` is an average; the kernel's default."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The folders, one for each controller (version 1) or a single one (version 2)."""

    folders: tuple[Path, ...]

    @classmethod
    def make(cls, name: str, limits: Limits) -> Cgroup:
        """Makes it with its limits; `SandboxError` where this machine does not let us."""
        group = cls(tuple(parent / name for parent in _parents()))
        try:
            for folder in group.folders:
                folder.mkdir()
            for file, value in group._limits(limits):
                file.write_text(value)
        except OSError as error:
            group.remove()
            raise SandboxError(f"no cgroup can be made: {error}") from error
        return group

    def _limits(self, limits: Limits) -> Iterator[tuple[Path, str]]:
        quota = max(1000, round(limits.cpus * _PERIOD))
        if len(self.folders) == 1:
            (folder,) = self.folders
            yield folder / "memory.max", str(limits.memory)
            if (folder / "memory.swap.max").exists():
                yield folder / "memory.swap.max", "0"
            yield folder / "pids.max", str(limits.pids)
            yield folder / "cpu.max", f"{quota} {_PERIOD}"
            return
        memory, pids, cpu = self.folders
        yield memory / "memory.limit_in_bytes", str(limits.memory)
        if (memory / "memory.memsw.limit_in_bytes").exists():
            yield memory / "memory.memsw.limit_in_bytes", str(limits.memory)
        yield pids / "pids.max", str(limits.pids)
        yield cpu / "cpu.cfs_quota_us", str(quota)

    def entrances(self) -> list[str]:
        """The files that a process writes its id to in order to be in it."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def processes(self) -> set[int]:
        """Who is in it."""
        found: set[int] = set()
        for folder in self.folders:
            with contextlib.suppress(OSError):
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
        return found

    def memory_kills(self) -> int:
        """How many processes were ended because memory was full."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                fields = dict(line.split() for line in (self.folders[0] / name).read_text().splitlines())
                return int(fields.get("oom_kill", 0))
        return 0

    def end(self) -> None:
        """Ends every process in it."""
        for _ in range(200):
            processes = self.processes() - {os.getpid()}
            if not processes:
                return
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)
        raise SandboxError(f"processes of {self.folders[0].name} do not end: {sorted(self.processes())}")

    def remove(self) -> None:
        """Ends every process in it and removes it."""
        self.end()
        for folder in self.folders:
            _remove(folder)


def names(mark: str) -> list[str]:
    """The cgroups on this machine whose names begin with `mark`."""
    try:
        return sorted({path.name for parent in _parents() for path in parent.glob(f"{mark}*")})
    except SandboxError:
        return []


def remove(name: str) -> None:
    """Removes a cgroup whose owner has ended."""
    Cgroup(tuple(parent / name for parent in _parents())).remove()


def _remove(folder: Path) -> None:
    for _ in range(200):  # the kernel lets go of ended processes a moment later
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise SandboxError(f"the cgroup {folder} cannot be removed: {error.strerror}") from error
            time.sleep(0.01)
        else:
            return
    raise SandboxError(f"the cgroup {folder} cannot be removed: it is in use")


def _parents() -> list[Path]:
    """Where cgroups are made; `SandboxError` where there is no controller that we need."""
    if (ROOT / "cgroup.controllers").exists():
        missing = set(_CONTROLLERS) - set((ROOT / "cgroup.subtree_control").read_text().split())
        for controller in sorted(missing):
            with contextlib.suppress(OSError):
                (ROOT / "cgroup.subtree_control").write_text(f"+{controller}")
        missing = set(_CONTROLLERS) - set((ROOT / "cgroup.subtree_control").read_text().split())
        if missing:
            raise SandboxError(f"cgroups of this machine do not control {', '.join(sorted(missing))}")
        return [ROOT]
    parents = [ROOT / controller for controller in _CONTROLLERS]
    absent = [parent.name for parent in parents if not (parent / "cgroup.procs").exists()]
    if absent:
        raise SandboxError(f"this machine has no cgroups for {', '.join(absent)}")
    return parents
