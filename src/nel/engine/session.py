"""`Session`: one run directory in use; runs cells in it and keeps manifest and checkpoint true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from nel.core.contract import decode_json
from nel.core.errors import NelError
from nel.core.log import LogWriter
from nel.core.rundir import RunDir, Stage
from nel.core.secrets import Redactor
from nel.engine.cell import CellPlan, CellResult, evaluate_cell
from nel.engine.checkpoint import CheckpointManager
from nel.engine.derive import CellInfo
from nel.engine.selection import Shard
from nel.engine.tally import Tally

KIND = "models"
DERIVED = ("report.*",)


@dataclass(frozen=True, slots=True)
class CellKey:
    """A cell: benchmark x model x variant."""

    benchmark: str
    model: str
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part.replace("/", "_") for part in (self.benchmark, self.model, self.variant) if part)


@dataclass(slots=True)
class Session:
    """Owns a run directory from its lock to its last stage; use as a context manager.

    Leaving it normally ends the run as completed, or as failed when a cell failed; leaving it by cancellation or Ctrl-C
    as interrupted.
    """

    run: RunDir
    redactor: Redactor
    writer: LogWriter = field(init=False)
    checkpoint: CheckpointManager = field(init=False)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        resume: bool,
        shard: Shard | None = None,
        command: Sequence[str] = (),
        secrets: Iterable[str] = (),
    ) -> Session:
        """Locks the directory and starts (or continues) a run in it; `RunDirError` says why it cannot be used."""
        run = RunDir.open(
            path,
            kind=KIND,
            resume=resume,
            command=command,
            shard={"index": shard.index, "total": shard.total} if shard else None,
            derived=DERIVED,
        )
        return cls(run, Redactor(secrets))

    def __post_init__(self) -> None:
        try:
            self.checkpoint = CheckpointManager(self.run.path)
            self.writer = LogWriter()
        except BaseException:
            self.run.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        try:
            self.writer.close()
        finally:
            if kind is None:
                failed = "failed" in self.checkpoint.states().values()
                self.run.finish(Stage.FAILED if failed else Stage.COMPLETED)
            elif issubclass(kind, KeyboardInterrupt | asyncio.CancelledError):
                self.run.finish(Stage.INTERRUPTED)
            else:
                self.run.finish(Stage.FAILED, error=str(error))
            self.run.close()

    def finished(self, key: CellKey, plan: CellPlan) -> dict[str, Any] | None:
        """The bundle of a cell that is completed under this very plan; None where there is something to do."""
        entry = self.run.manifest.cells.get(str(key))
        if entry is None or not plan.env.data_identity() or not self.checkpoint.completed(str(key), plan.digest):
            return None
        path = self.run.path / entry.dir / f"eval-{plan.name}.json"
        bundle = decode_json(path.read_bytes()) if path.exists() else None
        if bundle is not None and plan.settings.retry_errors == "all" and bundle["counts"]["error"]:
            return None
        return bundle

    def note_plan(self, key: str, digest: str, info: CellInfo) -> None:
        """Keeps in the manifest what a cell was planned as, from which its files can be derived again."""
        cells = self.run.manifest.cells
        entry = msgspec.structs.replace(cells[key], plan=digest, info=msgspec.to_builtins(info))
        self.run.update(cells={**cells, key: entry})

    async def evaluate(
        self, key: CellKey, plan: CellPlan, *, directory: str, on_progress: Callable[[Tally], None] | None = None
    ) -> CellResult:
        """Runs a cell and notes how it ended; an error is noted and raised."""
        name = str(key)
        path = self.run.cell_dir(name, directory, benchmark=key.benchmark, model=key.model, variant=key.variant)
        info = plan.info(self.run.manifest.run_id, self.run.manifest.nel_version)
        self.note_plan(name, plan.digest, info)
        try:
            result = await evaluate_cell(
                plan,
                path,
                writer=self.writer,
                info=info,
                redactor=self.redactor,
                on_progress=on_progress,
            )
        except (asyncio.CancelledError, KeyboardInterrupt):
            self.checkpoint.interrupt(name)
            raise
        except Exception as error:
            self.checkpoint.fail(
                name, error.message if isinstance(error, NelError) else f"{type(error).__name__}: {error}"
            )
            raise
        self.checkpoint.complete(
            name,
            bundle_path=str(result.bundle_path.relative_to(self.run.path)),
            plan=plan.digest,
            open_attempts=result.open_attempts,
        )
        return result
