"""The runs that the viewer shows: found below the directories it was given, known by short names."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nel.core.errors import RunDirError
from nel.core.rundir import is_run_dir
from nel.reporting.run_view import open_run
from nel.reporting.viewer.index import RunIndex

_DEPTH = 4
_SKIPPED = {"previous", "blobs", "node_modules"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One run."""

    ident: str
    path: Path
    place: str
    """Where it lies, as it is shown."""
    index: RunIndex


class Library:
    """The runs below `roots`, looked for each time they are listed."""

    def __init__(self, roots: Sequence[Path], cache: Path) -> None:
        self._roots = [root.resolve() for root in roots]
        self._cache = cache
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        for root in self._roots:
            if next(_runs_below(root), None) is None:
                open_run(root)  # says what the directory is instead

    def entries(self) -> list[Entry]:
        """Every run there is now, the newest first."""
        found = {path: root for root in self._roots for path in _runs_below(root)}
        with self._lock:
            fresh = {}
            for path, root in found.items():
                ident = hashlib.sha256(str(path).encode()).hexdigest()[:12]
                place = str(path.relative_to(root.parent))
                fresh[ident] = self._entries.get(ident) or Entry(ident, path, place, RunIndex(path, self._cache))
            self._entries = fresh
        return sorted(fresh.values(), key=lambda entry: _changed(entry.path), reverse=True)

    def get(self, ident: str) -> Entry:
        """The run with that name; `RunDirError` where there is none any more."""
        if ident not in self._entries:
            self.entries()
        entry = self._entries.get(ident)
        if entry is None or not is_run_dir(entry.path):
            raise RunDirError("There is no such run here.", hint="It may have been moved or deleted; see the list.")
        return entry


def _changed(path: Path) -> float:
    try:
        return (path / "manifest.json").stat().st_mtime
    except OSError:
        return 0.0


def _runs_below(root: Path, depth: int = _DEPTH) -> Iterator[Path]:
    if is_run_dir(root):
        yield root
        return
    if depth == 0:
        return
    try:
        with os.scandir(root) as found:
            folders = sorted(
                entry.name
                for entry in found
                if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED and not entry.name.startswith(".")
            )
    except OSError:
        return
    for name in folders:
        yield from _runs_below(root / name, depth - 1)
