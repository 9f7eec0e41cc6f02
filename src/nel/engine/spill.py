"""Long texts of an attempt (a 50 MB reply, an image in a message) stand once in `blobs/`, not in its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nel.core.blobs import BlobStore
from nel.observability.records import AttemptRecord

_LONG_LINE = 1 << 20
_LONG_TEXT = 1 << 16


class Spill:
    """Moves long texts of attempts into the blob store of a cell, and back."""

    def __init__(self, cell: Path) -> None:
        self._store = BlobStore(cell / "blobs")

    def is_long(self, line: bytes) -> bool:
        """Whether the line of an attempt is too long to stand in the log."""
        return len(line) > _LONG_LINE

    def store(self, attempt: AttemptRecord) -> AttemptRecord:
        """The attempt with each long text replaced by an empty one and its digest noted in `blobs`."""
        value = attempt.to_dict()
        places: dict[str, str] = {}
        self._empty(value, "", places)
        value["blobs"] = places
        return AttemptRecord.from_dict(value)

    def restore(self, attempt: AttemptRecord) -> AttemptRecord:
        """The attempt with its long texts back in their places."""
        if not attempt.blobs:
            return attempt
        value = attempt.to_dict()
        for place, digest in value.pop("blobs").items():
            *path, last = place.split("/")
            holder: Any = value
            for step in path:
                holder = holder[int(step) if isinstance(holder, list) else _unescaped(step)]
            holder[int(last) if isinstance(holder, list) else _unescaped(last)] = self._store.get(digest).decode()
        return AttemptRecord.from_dict(value)

    def _empty(self, value: Any, place: str, places: dict[str, str]) -> None:
        items = enumerate(value) if isinstance(value, list) else value.items()
        for name, child in list(items):
            at = f"{place}/{_escaped(str(name))}" if place else _escaped(str(name))
            if isinstance(child, dict | list):
                self._empty(child, at, places)
            elif isinstance(child, str) and len(child) > _LONG_TEXT:
                places[at] = self._store.put(child.encode())
                value[name] = ""


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")
