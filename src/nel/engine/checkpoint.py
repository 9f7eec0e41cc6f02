"""`CheckpointManager`: which cells of a run are completed, failed or interrupted, in `checkpoint.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nel.core.contract import decode_json, encode_json
from nel.core.disk import write_atomic
from nel.core.errors import RunDirError

_FILE = "checkpoint.json"
_SCHEMA = "nel.checkpoint/1"


class CheckpointManager:
    """The state of each cell by its key; every change is on disk before the call returns.

    A cell is completed under the digest of its plan: with another plan it is not. Two entries of one benchmark have
    two keys.
    """

    def __init__(self, run: Path) -> None:
        self._path = run / _FILE
        self._completed: dict[str, dict[str, Any]] = {}
        self._failed: dict[str, dict[str, Any]] = {}
        self._interrupted: dict[str, dict[str, Any]] = {}
        if self._path.exists():
            self._load()

    def _load(self) -> None:
        stored = decode_json(self._path.read_bytes())
        if not isinstance(stored, dict) or stored.get("schema") != _SCHEMA:
            raise RunDirError(f"{self._path}: not a {_SCHEMA}", hint="Use the version of nel that wrote the run.")
        self._completed = stored["completed_benchmarks"]
        self._failed = stored["failed_benchmarks"]
        self._interrupted = stored["interrupted_benchmarks"]

    def completed(self, cell: str, plan: str) -> bool:
        """Whether the cell was completed under this very plan, with nothing left that a resume would attempt."""
        entry = self._completed.get(cell)
        return entry is not None and entry["plan"] == plan and not entry["open"]

    def open_attempts(self, cell: str) -> int | None:
        """Attempts of a completed cell that a resume would make again; None when it is not completed."""
        entry = self._completed.get(cell)
        return None if entry is None else int(entry["open"])

    def states(self) -> dict[str, str]:
        """`completed`, `failed` or `interrupted` for each cell that has ended."""
        return {
            **dict.fromkeys(self._completed, "completed"),
            **dict.fromkeys(self._failed, "failed"),
            **dict.fromkeys(self._interrupted, "interrupted"),
        }

    def error(self, cell: str) -> str | None:
        """Why a cell failed."""
        entry = self._failed.get(cell)
        return None if entry is None else str(entry["error"])

    def complete(self, cell: str, *, bundle_path: str, plan: str, open_attempts: int) -> None:
        """The cell has its bundle; `open_attempts` is the number of attempts that a resume would make again."""
        self._forget(cell)
        self._completed[cell] = {"bundle_path": bundle_path, "plan": plan, "open": open_attempts}
        self._save()

    def fail(self, cell: str, error: str) -> None:
        """The cell ended without a bundle that counts."""
        self._forget(cell)
        self._failed[cell] = {"error": error}
        self._save()

    def interrupt(self, cell: str) -> None:
        """The cell was stopped before its end."""
        self._forget(cell)
        self._interrupted[cell] = {}
        self._save()

    def forget_failures(self) -> None:
        """Everything that failed is about to be tried again."""
        self._failed.clear()
        self._save()

    def _forget(self, cell: str) -> None:
        for states in (self._completed, self._failed, self._interrupted):
            states.pop(cell, None)

    def _save(self) -> None:
        value = {
            "schema": _SCHEMA,
            "completed_benchmarks": dict(sorted(self._completed.items())),
            "failed_benchmarks": dict(sorted(self._failed.items())),
            "interrupted_benchmarks": dict(sorted(self._interrupted.items())),
        }
        write_atomic(self._path, msgspec.json.format(encode_json(value), indent=2) + b"\n")
