"""Disks that fail: the n-th system call of a kind, a full disk, a read-only one."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest


class Faults:
    """While entered, the `fail_at`-th call (1-based) of `os.<names>` raises; with `persistent` every later one, too."""

    def __init__(self, names: Sequence[str], fail_at: int, error: int, *, persistent: bool) -> None:
        self.calls = 0
        self._names = names
        self._fail_at = fail_at
        self._error = error
        self._persistent = persistent
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> None:
        for name in self._names:
            self._patch.setattr(os, name, self._wrap(getattr(os, name)))

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    @property
    def happened(self) -> bool:
        return self.calls >= self._fail_at

    def _wrap(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **kwargs: object) -> object:
            self.calls += 1
            if self.calls == self._fail_at or (self._persistent and self.happened):
                raise OSError(self._error, os.strerror(self._error))
            return call(*args, **kwargs)

        return counted


def every_failure(*names: str, error: int = errno.EIO, persistent: bool = False) -> Iterator[Faults]:
    """One `Faults` for the first call, one for the second, ... until a scenario makes no more calls."""
    for fail_at in range(1, 200):
        faults = Faults(names, fail_at, error, persistent=persistent)
        yield faults
        if not faults.happened:
            assert fail_at > 1, f"the scenario never calls {names}"
            return
    pytest.fail("the scenario makes too many calls to try each")


@contextlib.contextmanager
def mounted_tmpfs(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A small tmpfs at `folder`; the value remounts it with other options. Skips where mounting is not allowed."""
    folder.mkdir()

    def mount(options: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False, capture_output=True, timeout=10
        )

    try:
        result = mount(f"size={size}")
    except FileNotFoundError:
        pytest.skip("needs the mount command")
    if result.returncode:
        pytest.skip(f"needs the right to mount a tmpfs: {result.stderr.decode().strip()}")
    try:
        yield lambda options: mount(f"remount,{options}").check_returncode()
    finally:
        subprocess.run(["umount", "-l", folder], check=True, timeout=10)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Makes a directory read-only: by its mode, or for root, who ignores modes, by a read-only bind mount."""
    if os.geteuid():
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    for command in (["mount", "--bind", folder, folder], ["mount", "-o", "remount,bind,ro", folder]):
        result = subprocess.run(command, check=False, capture_output=True, timeout=10)
        if result.returncode:
            subprocess.run(["umount", "-l", folder], check=False, capture_output=True, timeout=10)
            pytest.skip(f"needs the right to bind-mount: {result.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True, timeout=10)
