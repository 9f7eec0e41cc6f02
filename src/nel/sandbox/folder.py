"""The folder on this machine in which a sandbox without a daemon keeps what it is."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nel.core.errors import NelError
from nel.sandbox.base import SandboxError
from nel.sandbox.owner import label

MARK = "nel-sandbox-"


def base() -> Path:
    """Where the folders of all sandboxes of this user stand; `NEL_SANDBOX_DIR` sets another place."""
    return Path(os.environ.get("NEL_SANDBOX_DIR") or f"/var/tmp/nel-sandboxes-{os.getuid()}")  # noqa: S108 - made 0711, owner checked


@dataclass(frozen=True, slots=True)
class SandboxFolder:
    """One sandbox's folder; `root` is what it sees as its own."""

    name: str
    path: Path
    owner: int
    """The user id that what runs in it has."""
    mounted: bool
    """Whether it is a memory file system of its own, so that what can be written is bounded."""

    @classmethod
    def make(cls, *, owner: int, disk: int) -> SandboxFolder:
        """Makes one for `owner`; a bounded file system where the caller may mount one."""
        parent = base()
        try:
            parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            if parent.stat().st_uid != os.getuid():
                raise SandboxError(f"{parent} belongs to another user", hint="Set NEL_SANDBOX_DIR to another folder.")
            name = f"{MARK}{label()}-{secrets.token_hex(6)}"
            path = parent / name
            path.mkdir(mode=0o700)
        except OSError as error:
            raise SandboxError(f"no folder for a sandbox can be made in {parent}: {error.strerror}") from error
        mounted = os.getuid() == 0 and _mount(path, owner, disk)
        folder = cls(name, path, owner, mounted)
        try:
            for part in (folder.root, folder.tmp):
                part.mkdir(mode=0o755)
            if os.getuid() == 0:
                for part in (path, folder.root, folder.tmp):
                    os.chown(part, owner, owner)
        except OSError as error:
            folder.remove()
            raise SandboxError(f"{path} cannot be filled: {error.strerror}") from error
        return folder

    @property
    def root(self) -> Path:
        """What stands at `/`."""
        return self.path / "root"

    @property
    def tmp(self) -> Path:
        """What stands at `/tmp`."""
        return self.path / "tmp"

    def reach(self, host_path: Path) -> Path:
        """A place from which the sandbox's user can be shown a folder of this machine that only the caller may enter.

        Files keep their permissions. Where nothing can be mounted, it is the folder itself.
        """
        if not self.mounted:
            return host_path
        place = self.path / "volumes" / str(len(list((self.path / "volumes").glob("*"))))
        place.parent.mkdir(exist_ok=True)
        if host_path.is_dir():
            place.mkdir()
        else:
            place.touch()
        done = subprocess.run(["mount", "--bind", host_path, place], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"{host_path} cannot be shown in a sandbox: {done.stderr.strip()}")
        return place

    def remove(self) -> None:
        """Removes all of it; `NelError` where something is left."""
        if self.mounted:
            _unmount(self.path)
        if _mounts_below(self.path):  # removing what stands below them would remove the host's own
            raise NelError(f"{self.path} cannot be removed: something is still mounted there")
        with contextlib.suppress(FileNotFoundError):
            _make_writable(self.path)
            shutil.rmtree(self.path)
        if self.path.exists():
            raise NelError(f"{self.path} could not be removed")


def _mount(path: Path, owner: int, disk: int) -> bool:
    options = f"size={disk},mode=700,uid={owner},gid={owner},nosuid,nodev,nr_inodes=1m"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, MARK, path], capture_output=True, check=False)
    return done.returncode == 0


def _unmount(path: Path) -> None:
    subprocess.run(["umount", "--recursive", "--lazy", path], capture_output=True, check=False)


def _mounts_below(path: Path) -> bool:
    table = Path("/proc/self/mountinfo")
    if not table.exists():
        return path.is_mount()
    places = (line.split()[4].encode().decode("unicode_escape") for line in table.read_text().splitlines())
    return any(Path(place).is_relative_to(path) for place in places)


def _make_writable(path: Path) -> None:
    """Folders that were made read-only inside can be removed all the same."""
    if os.getuid() == 0:
        return
    for folder, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            Path(folder).chmod(0o700)


def names() -> list[str]:
    """The folders of all sandboxes of this user."""
    return sorted(path.name for path in base().glob(f"{MARK}*")) if base().is_dir() else []


def remove(name: str) -> None:
    """Removes the folder of a sandbox whose owner has ended."""
    path = base() / name
    SandboxFolder(name, path, path.stat().st_uid, path.is_mount()).remove()
