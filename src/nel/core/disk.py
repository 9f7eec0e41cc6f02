"""The few file operations that must survive a crash: whole writes, atomic replacement, durable names."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

TEMPORARY_PREFIX = ".nel-tmp-"
"""Names of half-written files; whoever owns a directory may remove what a killed process left behind."""

_SYNC_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}
_BUFFER = 1 << 20


def write_atomic(path: Path | str, data: bytes | str, *, mode: int | None = None) -> None:
    """Replaces `path` by `data` so that a crash leaves the old content or the new, durable, and nothing else.

    `mode` sets the permission bits whatever the umask (the file never exists with wider ones); None keeps those of the
    file that is replaced. Text is written as UTF-8. Raises OSError, with the old content in place.
    """
    replace_file(path, (data.encode() if isinstance(data, str) else data,), mode=mode)


def replace_file(path: Path | str, chunks: Iterable[bytes], *, mode: int | None = None) -> None:
    """`write_atomic` for content that comes in pieces; whatever fails, no temporary file stays behind."""
    target = Path(path).resolve()  # a link keeps pointing at the file that is replaced
    temporary = target.parent / f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    keep = mode if mode is not None else _mode_of(target)
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if keep is None else keep
    )
    try:
        try:
            if keep is not None:
                os.fchmod(descriptor, keep)
            _write_chunks(descriptor, chunks)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(target.parent)


def make_directory(path: Path) -> None:
    """Creates a directory and its missing parents, durably; one that exists is fine. Raises OSError."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync_directory(path.parent)


def write_all(descriptor: int, data: bytes | bytearray) -> None:
    """Writes all of `data`, however often the system takes only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(folder: Path | str) -> None:
    """Makes the names in `folder` durable; file systems that cannot are left alone."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _write_chunks(descriptor: int, chunks: Iterable[bytes]) -> None:
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        if len(buffer) >= _BUFFER:
            write_all(descriptor, buffer)
            buffer = bytearray()
    write_all(descriptor, buffer)
