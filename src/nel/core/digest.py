"""Content digests: what a value, a file or a directory tree *is*, wherever it lies."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nel.core.contract import canonical_json

_CHUNK = 1 << 20


def digest_value(value: Any) -> str:
    """`sha256:<hex>` of a JSON value's canonical form; key order and whitespace do not matter."""
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def digest_parts(parts: Iterable[bytes]) -> bytes:
    """16 bytes that identify a sequence of byte strings; each is framed by its length, so no two sequences collide
    by shifting a boundary."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()[:16]


def digest_file(path: Path | str) -> str:
    """`sha256:<hex>` of a file's bytes."""
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return f"sha256:{state.hexdigest()}"


def digest_tree(root: Path | str) -> str:
    """`sha256:<hex>` of a directory: relative paths, kinds, execute bits and contents, in sorted order.

    A symbolic link counts as its target's text and is never followed. Owner, times and other mode bits do not count.
    Raises OSError for a folder that is missing or cannot be read.
    """
    state = hashlib.sha256()
    base = Path(root)
    for path in sorted(_walk(base), key=lambda item: item.relative_to(base).as_posix()):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            kind, content = b"l", os.fsencode(os.readlink(path))
        elif stat.S_ISDIR(mode):
            kind, content = b"d", b""
        elif stat.S_ISREG(mode):
            kind, content = (b"x" if mode & stat.S_IXUSR else b"f"), digest_file(path).encode()
        else:
            continue
        for part in (kind, os.fsencode(path.relative_to(base).as_posix()), content):
            state.update(len(part).to_bytes(8, "big"))
            state.update(part)
    return f"sha256:{state.hexdigest()}"


def _raise(error: OSError) -> None:
    raise error


def _walk(base: Path) -> Iterable[Path]:
    for folder, folders, files in os.walk(base, followlinks=False, onerror=_raise):
        for name in (*folders, *files):
            yield Path(folder, name)
