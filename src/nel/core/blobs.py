"""`BlobStore`: large payloads of a run, stored once each under the digest of their content."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from nel.core import disk
from nel.core.errors import RecordError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class BlobStore:
    """A directory of zstd-compressed, content-addressed payloads; it is created with the first one."""

    def __init__(self, directory: Path | str) -> None:
        self._directory = Path(directory)

    def put(self, data: bytes) -> str:
        """Stores `data` durably and returns `sha256:<hex>` of it; raises OSError. Blocks on the disk."""
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        path = self._path(digest)
        if not path.exists():
            disk.make_directory(path.parent)
            disk.write_atomic(path, zstd.compress(data))
        return digest

    def get(self, digest: str) -> bytes:
        """The payload of `digest`; `RecordError` if it is missing or damaged."""
        path = self._path(digest)
        try:
            data = zstd.decompress(path.read_bytes())
        except OSError as error:
            raise RecordError(f"{path}: cannot read the payload: {error.strerror or error}") from error
        except zstd.ZstdError as error:
            raise RecordError(f"{path}: the payload is damaged: {error}") from error
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise RecordError(f"{path}: the payload is not what its name says")
        return data

    def _path(self, digest: str) -> Path:
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise RecordError(f"{digest!r} is no digest of a stored payload (sha256:<64 hex digits>)")
        name = match[1]
        return self._directory / name[:2] / f"{name}.zst"
