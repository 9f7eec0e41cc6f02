"""Trees as tar archives: packed for a sandbox, and unpacked from one that is not trusted."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from nel.sandbox.base import SandboxError

MAX_ENTRIES = 1_000_000
_CHUNK = 1 << 20


def pack(local: Path, archive: BinaryIO, name: str) -> None:
    """Writes a tar archive of a file or a tree, with `name` in place of its own; owners and times are left out.

    `SandboxError` for a link that leads out of the tree, and for what is neither file, folder nor link.
    """
    if local.is_symlink():  # what the caller names is what it leads to; links within are kept as links
        local = local.resolve()
    with tarfile.open(fileobj=archive, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in _tree(local):
            relative = path.relative_to(local)
            entry = tar.gettarinfo(path, arcname=str(PurePosixPath(name, *relative.parts)))
            if not (entry.isfile() or entry.isdir() or entry.issym() or entry.islnk()):
                raise SandboxError(f"{path} is neither a file, a folder nor a link, and is not copied", permanent=True)
            if entry.issym():
                _check_link(relative, entry.linkname, str(path))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            if entry.isfile():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)


def _tree(root: Path) -> Iterator[Path]:
    yield root
    if not root.is_dir():
        return
    for folder, folders, files in root.walk(follow_symlinks=False):
        folders.sort()
        for name in sorted([*files, *folders]):
            yield folder / name


def unpack(archive: BinaryIO, local: Path, *, max_bytes: int) -> None:
    """Unpacks an archive whose only top entry becomes `local`, which must not be there yet.

    Nothing is written outside `local`, whatever the archive says: absolute names, `..`, links that lead out, devices,
    two entries of one name, and more than `max_bytes` or `MAX_ENTRIES` raise `SandboxError`, and `local` is removed
    again. Links are made last, so that nothing is ever written through one. Owners, times and set-id bits are dropped.
    """
    if local.exists() or local.is_symlink():
        raise SandboxError(f"{local} is there already", permanent=True)
    try:
        _unpack(archive, local, max_bytes)
    except tarfile.TarError as error:
        _remove(local)
        raise SandboxError(f"what came out of the sandbox is no archive: {error}") from error
    except BaseException:
        _remove(local)
        raise


def _unpack(archive: BinaryIO, local: Path, max_bytes: int) -> None:
    left = max_bytes
    links: list[tuple[PurePosixPath, str]] = []
    top: str | None = None
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        for count, entry in enumerate(tar):
            if count >= MAX_ENTRIES:
                raise SandboxError(f"more than {MAX_ENTRIES:,} files came out of the sandbox", permanent=True)
            name = PurePosixPath(entry.name)
            parts = [part for part in name.parts if part != "."]
            if name.is_absolute() or ".." in parts or not parts:
                raise SandboxError(f"{entry.name!r} came out of the sandbox: the name leads out", permanent=True)
            top = top or parts[0]
            if parts[0] != top:
                raise SandboxError(f"{entry.name!r} came out of the sandbox, beside {top!r}", permanent=True)
            relative = PurePosixPath(*parts[1:])
            target = local.joinpath(*relative.parts)
            if entry.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif entry.isfile():
                left -= entry.size
                if left < 0:
                    raise SandboxError(f"more than {max_bytes:,} bytes came out of the sandbox", permanent=True)
                _write(tar, entry, target)
            elif entry.issym():
                _check_link(relative, entry.linkname, entry.name)
                links.append((relative, entry.linkname))
            elif entry.islnk():
                left -= _write_again(entry, local, top, target)
                if left < 0:
                    raise SandboxError(f"more than {max_bytes:,} bytes came out of the sandbox", permanent=True)
            else:
                raise SandboxError(f"{entry.name!r} came out of the sandbox: a device or a pipe", permanent=True)
    for relative, linkname in links:
        target = local.joinpath(*relative.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        _refuse_twice(target)
        target.symlink_to(linkname)
    root = os.path.realpath(local)
    for relative, linkname in links:  # a link through another one may lead out although neither does by itself
        if Path(root) not in [place := Path(os.path.realpath(local.joinpath(*relative.parts))), *place.parents]:
            raise SandboxError(f"{relative}: a link to {linkname!r}, which leads out of the tree", permanent=True)


def _write(tar: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(entry)
    assert source is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    _refuse_twice(target)
    with target.open("xb") as file:
        shutil.copyfileobj(source, file, _CHUNK)
        os.fchmod(file.fileno(), 0o755 if entry.mode & stat.S_IXUSR else 0o644)


def _write_again(entry: tarfile.TarInfo, local: Path, top: str, target: Path) -> int:
    """A hard link becomes a copy of the file that it names, which must be in the archive; its size."""
    parts = [part for part in PurePosixPath(entry.linkname).parts if part != "."]
    source = local.joinpath(*parts[1:])
    if not parts or parts[0] != top or ".." in parts or not source.is_file() or source.is_symlink():
        raise SandboxError(f"{entry.name!r} came out of the sandbox: a link to {entry.linkname!r}", permanent=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    _refuse_twice(target)
    shutil.copyfile(source, target)
    shutil.copymode(source, target)
    return source.stat().st_size


def _refuse_twice(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise SandboxError(f"{target.name!r} came out of the sandbox twice", permanent=True)


def _check_link(place: PurePosixPath | Path, leads_to: str, name: str) -> None:
    """Refuses a link that leads out of the tree in which it stands at `place`."""
    depth = len(place.parts) - 1
    out = PurePosixPath(leads_to).is_absolute() or depth < 0
    for part in PurePosixPath(leads_to).parts:
        depth += -1 if part == ".." else 1
        out = out or depth < 0
    if out:
        raise SandboxError(f"{name}: a link to {leads_to!r}, which leads out of the tree", permanent=True)


def _remove(local: Path) -> None:
    if local.is_dir() and not local.is_symlink():
        shutil.rmtree(local, ignore_errors=True)
    else:
        local.unlink(missing_ok=True)
