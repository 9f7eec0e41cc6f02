"""`RunDir`: a directory that belongs to one run, with its lock, its manifest and the names of its cells.

with RunDir.open("results", kind="models", resume=False) as run:
    cell = run.cell_dir("gsm8k|m|default", "gsm8k", benchmark="gsm8k", model="m", variant="default")
    ...
    run.finish(Stage.COMPLETED, counts={"scored": 1319})
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Self

import msgspec

from nel.core import disk
from nel.core.blobs import BlobStore
from nel.core.contract import Record, decode_json
from nel.core.digest import digest_value
from nel.core.disk import write_atomic
from nel.core.errors import RecordError, RunDirError
from nel.core.lock import DirLock, lock_directory
from nel.core.secrets import redact_command

__all__ = ["BlobStore", "CellEntry", "Manifest", "RunDir", "Stage", "is_run_dir", "write_atomic"]

MANIFEST_NAME = "manifest.json"
PREVIOUS_NAME = "previous"

_EXECUTOR_FILES = {"nel.pid", "nel_eval.log"}
"""Written by whoever starts a run, before the run opens its directory."""

_RESERVED_CELLS = re.compile(r"previous|merged|shard_\d+")


class Stage(StrEnum):
    """How far a run has come; one that was killed stays `RUNNING`."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class CellEntry(msgspec.Struct, kw_only=True):
    """Where a cell (benchmark x model x variant) lies in the run directory."""

    dir: str
    """One folder name, relative to the run directory."""
    benchmark: str
    model: str
    variant: str
    plan: str = ""
    """Digest of the cell's plan."""
    info: dict[str, Any] = {}
    """What the loop keeps to derive the cell's files from its logs again."""


class Manifest(Record, tag="nel.manifest/1", kw_only=True):
    """What a run is and how far it has come."""

    run_id: str
    kind: str
    """`models`, `agents` or `worlds`."""
    stage: Stage = Stage.RUNNING
    nel_version: str = ""
    python: str = ""
    platform: str = ""
    lock_digest: str = ""
    """Digest of the names and versions of all installed distributions."""
    command: list[str] = []
    """Of the last start, its credentials redacted."""
    started: float = 0.0
    """Unix seconds of the first start; a resume keeps it."""
    finished: float | None = None
    counts: dict[str, int] = {}
    cells: dict[str, CellEntry] = {}
    """By cell key."""
    shard: dict[str, Any] | None = None
    warnings: list[str] = []
    error: str | None = None


class RunDir:
    """An open, locked run directory. Usable from any thread; its writes block on the disk."""

    def __init__(self, path: Path, lock: DirLock, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._lock = lock
        self._guard = threading.RLock()

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        kind: str,
        resume: bool,
        command: Sequence[str] = (),
        shard: dict[str, Any] | None = None,
        derived: Iterable[str] = (),
    ) -> RunDir:
        """Locks `path` (created if need be) for a run of `kind` and writes its manifest with stage running.

        With `resume` an earlier run is continued: its id and content stay, files that match the globs `derived`
        (relative to `path`) are removed. Without, an earlier run is set aside under `previous/<its run id>/`.
        Raises `RunDirError` if the directory is in use, not writable, foreign, newer, of another kind or shard.
        """
        folder = Path(path)
        with _explained(folder):
            if folder.is_dir():
                _load(folder)  # refuses before a lock file is left in somebody else's directory
            disk.make_directory(folder)
            lock = lock_directory(folder)
        try:
            with _explained(folder):
                manifest = _begin(folder, kind, resume, command, shard)
                run = cls(folder, lock, manifest)
                run.update()
                _remove_leftovers(folder, manifest, derived)
        except BaseException:
            lock.release()
            raise
        return run

    @classmethod
    def read(cls, path: Path | str) -> Manifest:
        """The manifest of a run that may be running or read-only; `RunDirError` if `path` is not a run directory."""
        folder = Path(path)
        with _explained(folder):
            manifest = _load(folder) if folder.is_dir() else None
        if manifest is None:
            raise RunDirError(f"{folder} is not a run directory: it has no {MANIFEST_NAME}.")
        return manifest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cell_dir(self, key: str, name: str, *, benchmark: str, model: str, variant: str) -> Path:
        """The folder of cell `key`, created if need be: `name` made safe, or `name-2`, ... if that is taken.

        A cell once named keeps its folder, whatever `name` says later.
        """
        with self._guard, _explained(self.path):
            entry = self.manifest.cells.get(key)
            if entry is None:
                entry = CellEntry(dir=self._free_name(name), benchmark=benchmark, model=model, variant=variant)
                self.update(cells={**self.manifest.cells, key: entry})
            folder = self.path / entry.dir
            disk.make_directory(folder)
            return folder

    def update(self, **fields: Any) -> None:
        """Sets fields of the manifest, on disk and in `manifest`, or neither."""
        with self._guard, _explained(self.path):
            self._lock.check()
            manifest = msgspec.structs.replace(self.manifest, **fields)
            text = msgspec.json.format(manifest.to_json(), indent=2) + b"\n"
            disk.write_atomic(self.path / MANIFEST_NAME, text)
            self.manifest = manifest

    def finish(self, stage: Stage, **fields: Any) -> None:
        """`update` that ends the run: stage and finishing time."""
        self.update(stage=stage, finished=time.time(), **fields)

    def close(self) -> None:
        """Frees the lock; a second call does nothing."""
        self._lock.release()

    def _free_name(self, wanted: str) -> str:
        safe = re.sub(r"[^\w.-]+", "-", wanted).strip(".-").encode()[:100].decode(errors="ignore") or "cell"
        taken = {entry.name.casefold() for entry in self.path.iterdir()}
        taken |= {entry.dir.casefold() for entry in self.manifest.cells.values()}
        number, name = 1, safe
        while name.casefold() in taken or _RESERVED_CELLS.fullmatch(name.casefold()):
            number += 1
            name = f"{safe}-{number}"
        return name


def is_run_dir(path: Path | str) -> bool:
    """Whether `path` holds a run of NEL, of whatever kind and version."""
    try:
        value = decode_json((Path(path) / MANIFEST_NAME).read_bytes())
    except (OSError, RecordError):
        return False
    return isinstance(value, dict) and str(value.get("schema")).startswith(f"{Manifest.schema()[0]}/")


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunDirError(
            f"{error.filename or folder}: {error.strerror or error}; {folder} cannot be used as a run directory.",
            hint="Choose a directory that can be read and written and has room.",
        ) from error


def _load(folder: Path) -> Manifest | None:
    """The manifest, None where a run may begin; `RunDirError` for anything else that lies there."""
    file = folder / MANIFEST_NAME
    try:
        value = decode_json(file.read_bytes())
        if not isinstance(value, dict):
            raise RecordError("it holds no JSON object.")
        manifest = Manifest.from_dict(value)
    except FileNotFoundError:
        foreign = sorted(entry.name for entry in folder.iterdir() if not _may_stay(entry))
        if foreign:
            raise RunDirError(
                f"{folder} is not empty and not a run directory: it holds {', '.join(foreign[:3])}"
                f"{' ...' if len(foreign) > 3 else ''} and no {MANIFEST_NAME}.",
                hint="Choose an empty or a new directory.",
            ) from None
        return None
    except RecordError as error:
        raise RunDirError(f"{file}: {error.message}", hint=error.hint) from None
    for name in (manifest.run_id, *(cell.dir for cell in manifest.cells.values())):
        if PurePosixPath(name).name != name or name == "..":
            raise RunDirError(f"{file}: {name!r} is not the name of one folder.")
    return manifest


def _may_stay(entry: Path) -> bool:
    return entry.name.startswith(".") or entry.name in {PREVIOUS_NAME, *_EXECUTOR_FILES}


def _begin(folder: Path, kind: str, resume: bool, command: Sequence[str], shard: dict[str, Any] | None) -> Manifest:
    earlier = _load(folder)
    if earlier is not None and earlier.kind != kind:
        raise RunDirError(
            f"{folder} holds a run of kind {earlier.kind!r}, not {kind!r}.", hint="Choose another directory."
        )
    present: dict[str, Any] = {
        "stage": Stage.RUNNING,
        "nel_version": _nel_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "lock_digest": _environment_digest(),
        "command": redact_command(command),
    }
    if earlier is not None and resume:
        if earlier.shard != shard:
            raise RunDirError(
                f"{folder} holds shard {earlier.shard}, not {shard}.",
                hint="Resume with the same shard index and total, or choose another directory.",
            )
        _put_back(folder, earlier.run_id)
        warnings = [*earlier.warnings, *_changes(earlier, present)]
        return msgspec.structs.replace(earlier, **present, finished=None, error=None, warnings=warnings)
    if earlier is not None:
        _set_aside(folder, earlier.run_id)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    run_id = f"{stamp}-{os.urandom(4).hex()}"
    return Manifest(run_id=run_id, kind=kind, started=time.time(), shard=shard, **present)


def _changes(earlier: Manifest, present: dict[str, Any]) -> list[str]:
    return [
        f"resumed with another {what}: {present[field]} instead of {getattr(earlier, field)}"
        for field, what in (("nel_version", "version of nel"), ("python", "Python"), ("lock_digest", "set of packages"))
        if getattr(earlier, field) != present[field]
    ]


def _set_aside(folder: Path, run_id: str) -> None:
    """Moves a run to `previous/<run_id>/`, except that its manifest is copied: the caller replaces it in one step, and
    until then the directory still is the earlier run's.
    """
    target = folder / PREVIOUS_NAME / run_id
    disk.make_directory(target)
    _move([entry for entry in folder.iterdir() if not _may_stay(entry) and entry.name != MANIFEST_NAME], target)
    disk.write_atomic(target / MANIFEST_NAME, (folder / MANIFEST_NAME).read_bytes())


def _put_back(folder: Path, run_id: str) -> None:
    """Undoes a `_set_aside` that was killed half-way: its manifest is still in `folder`."""
    target = folder / PREVIOUS_NAME / run_id
    if not target.is_dir():
        return
    _move([entry for entry in target.iterdir() if not _may_stay(entry) and entry.name != MANIFEST_NAME], folder)
    for leftover in (target / MANIFEST_NAME, *target.glob(f"{disk.TEMPORARY_PREFIX}*")):
        leftover.unlink(missing_ok=True)
    target.rmdir()


def _move(entries: list[Path], target: Path) -> None:
    for entry in entries:
        place = target / entry.name
        if os.path.lexists(place):
            raise RunDirError(f"{entry} cannot be moved: {place} exists already.", hint="Move one of them by hand.")
        entry.rename(place)
    disk.sync_directory(target)
    for origin in {entry.parent for entry in entries}:
        disk.sync_directory(origin)


def _remove_leftovers(folder: Path, manifest: Manifest, derived: Iterable[str]) -> None:
    """Removes derived files, and what killed writers left half-written."""
    for pattern in derived:
        if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise ValueError(f"derived files are globs inside the run directory, not {pattern!r}")
        for path in folder.glob(pattern):
            if not path.is_dir():
                path.unlink()
    for place in (folder, *(folder / cell.dir for cell in manifest.cells.values())):
        for path in place.glob(f"{disk.TEMPORARY_PREFIX}*"):
            path.unlink(missing_ok=True)


def _nel_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("nel")
    except PackageNotFoundError:
        return "unknown"


def _environment_digest() -> str:
    """What is installed, told by the names of the metadata folders: reading them all would take 50 times as long."""
    found: set[str] = set()
    for place in filter(os.path.isdir, sys.path):
        found.update(entry.name for entry in os.scandir(place) if entry.name.endswith((".dist-info", ".egg-info")))
    return digest_value(sorted(found))
