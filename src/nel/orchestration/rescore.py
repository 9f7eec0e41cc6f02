"""`rescore`: every completed cell of a run measured again, by the scorers as they are now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from nel.core.contract import decode_json
from nel.core.errors import LoadError
from nel.core.rundir import CellEntry, RunDir
from nel.engine.derive import CellInfo
from nel.engine.rescore import rescore_cell
from nel.engine.selection import Shard
from nel.engine.session import Session
from nel.environments.base import EvalEnvironment
from nel.environments.registry import get_environment
from nel.orchestration.suite import write_reports
from nel.reporting.formats import SUFFIXES


@dataclass(frozen=True, slots=True)
class Rescored:
    """What rescoring changed of one cell."""

    cell: str
    metric: str
    before: float | None
    after: float | None
    changed: bool
    """Whether the scorers were others than before."""


def rescore(run_dir: Path) -> list[Rescored]:
    """Measures the stored answers of a run again and derives its files and reports; no model is asked.

    Neither endpoint nor data are needed; a benchmark file that is gone is taken from the copy that the run keeps.
    `RunDirError` where a cell is not completed.
    """
    manifest = RunDir.read(run_dir)
    formats = [name for name, suffix in SUFFIXES.items() if (run_dir / f"report{suffix}").exists()]
    shard = Shard(manifest.shard["index"], manifest.shard["total"]) if manifest.shard else None
    with Session.open(run_dir, resume=True, shard=shard) as session:
        changes = asyncio.run(_rescore(session))
    write_reports(run_dir, formats or ["markdown"])
    return changes


async def _rescore(session: Session) -> list[Rescored]:
    changes = []
    for key, entry in session.run.manifest.cells.items():
        cell = session.run.path / entry.dir
        env = _environment(entry, cell)
        before = _headline(cell, entry)
        info = await rescore_cell(session, key, env)
        await env.close()
        after = _headline(cell, entry)
        changes.append(
            Rescored(
                cell=entry.dir,
                metric=after[0],
                before=before[1],
                after=after[1],
                changed=info.identity["scoring"] != entry.info["identity"]["scoring"],
            )
        )
    return changes


def _environment(entry: CellEntry, cell: Path) -> EvalEnvironment:
    """The benchmark of a cell, without its data; its file as it is now, else the run's copy of it."""
    said: dict[str, Any] = entry.info["config"]["entry"]
    try:
        return get_environment(said["name"], params=said["params"])
    except LoadError:
        file, _, name = said["name"].partition(".py")
        kept = cell / "code" / f"{Path(file).name}.py"
        if not kept.exists():
            raise
        return get_environment(f"{kept}{name}", params=said["params"])


def _headline(cell: Path, entry: CellEntry) -> tuple[str, float | None]:
    info = msgspec.convert(entry.info, CellInfo)
    benchmark = decode_json((cell / f"eval-{info.name}.json").read_bytes())["benchmark"]
    return benchmark["primary"], benchmark["scores"][benchmark["primary"]]["value"]
