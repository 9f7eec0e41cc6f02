"""`ResponseCache`: replies kept in a directory, and found again by all that was asked.

A file holds a line that describes the request by its parts (so that a miss can be explained) and then the raw reply.
The line carries the reply's size and digest: a file that was torn by a crash is no hit.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from nel.core.contract import canonical_json
from nel.core.digest import digest_value
from nel.inference.failure import UNREADABLE

_DELIVERY: Final = frozenset({"n", "stream", "stream_options"})
_SHOWN: Final = 80


class _Head(msgspec.Struct, tag_field="schema", tag="nel.cached_reply/1"):
    parts: dict[str, str]
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What was asked, as a digest and by its parts."""

    digest: str
    parts: dict[str, str]
    """Part to its JSON text, or to its digest where that is long."""

    @classmethod
    def of(cls, endpoint: Mapping[str, Any], body: Mapping[str, Any], repeat: int) -> CacheKey:
        """The key of one answer: where it was asked, every field of the body but those of its delivery, the repeat."""
        fields = {f"body.{name}": value for name, value in body.items() if name not in _DELIVERY}
        whole = {**{f"endpoint.{name}": value for name, value in endpoint.items()}, **fields, "repeat": repeat}
        return cls(hashlib.sha256(canonical_json(whole)).hexdigest(), {k: _shown(v) for k, v in whole.items()})


class ResponseCache:
    """Successful replies in a directory that any number of runs may share."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)

    async def get(self, key: CacheKey) -> bytes | None:
        """The raw reply that is kept for `key`; None where there is none or it is torn."""
        return await asyncio.to_thread(self._get, key)

    async def put(self, key: CacheKey, reply: bytes) -> None:
        """Keep `reply` for `key`, all or nothing."""
        await asyncio.to_thread(self._put, key, reply)

    def explain_miss(self, key: CacheKey) -> str:
        """Why `key` is not found: what differs from the kept request that is nearest to it, part by part."""
        if self._get(key) is not None:
            return "it is kept: a hit"
        nearest: dict[str, str] | None = None
        fewest = 0
        for parts in self._kept():
            differing = sum(key.parts.get(name) != parts.get(name) for name in key.parts.keys() | parts.keys())
            if nearest is None or differing < fewest:
                nearest, fewest = parts, differing
        if nearest is None:
            return f"nothing is kept in {self.directory}"
        if fewest == 0:
            return "the reply that was kept is torn"
        return "; ".join(
            f"{name}: asked {key.parts.get(name, 'nothing')}, kept {nearest.get(name, 'nothing')}"
            for name in sorted(key.parts.keys() | nearest.keys())
            if key.parts.get(name) != nearest.get(name)
        )

    def _path(self, key: CacheKey) -> Path:
        return self.directory / key.digest[:2] / f"{key.digest}.reply"

    def _get(self, key: CacheKey) -> bytes | None:
        try:
            line, _, reply = self._path(key).read_bytes().partition(b"\n")
            head = msgspec.json.decode(line, type=_Head)
        except (OSError, *UNREADABLE):
            return None
        whole = len(reply) == head.size and hashlib.sha256(reply).hexdigest() == head.sha256
        return reply if whole else None

    def _put(self, key: CacheKey, reply: bytes) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        head = _Head(key.parts, len(reply), hashlib.sha256(reply).hexdigest())
        # Not made durable: after a power cut a reply is asked for again.
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            try:
                file.write(msgspec.json.encode(head) + b"\n" + reply)
                file.flush()
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise

    def _kept(self) -> Iterator[dict[str, str]]:
        for path in self.directory.glob("??/*.reply"):
            try:
                with path.open("rb") as file:
                    yield msgspec.json.decode(file.readline(), type=_Head).parts
            except (OSError, *UNREADABLE):
                continue


def _shown(value: Any) -> str:
    text = canonical_json(value).decode()
    return text if len(text) <= _SHOWN else digest_value(value)
