"""`rescore_cell`: measures the stored answers of a completed cell again, without asking a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from nel.core.contract import encode_json
from nel.core.digest import digest_value
from nel.core.errors import RunDirError
from nel.core.log import scan_log
from nel.core.pool import Pool, RetryPolicy
from nel.core.rundir import CellEntry
from nel.engine.cell import config_hash, keep_files
from nel.engine.checkpoint import CheckpointManager
from nel.engine.compact import compact
from nel.engine.derive import CellInfo, derive, pairs_from_logs
from nel.engine.identity import Identities
from nel.engine.ledger import RESULTS, SUPERSEDED, TRAJECTORIES, Known, Ledger, Line
from nel.engine.measure import Gold, measure
from nel.engine.session import Session
from nel.engine.spill import Spill
from nel.environments.base import EvalEnvironment
from nel.observability.records import AttemptRecord, ScoreRecord


class _Place(msgspec.Struct, tag_field="schema", tag="nel.score/1"):
    attempt: str


@dataclass(slots=True)
class Changes:
    """How many answers have another reward than before, and which way."""

    higher: int = 0
    lower: int = 0
    newly_scored: int = 0
    no_longer_scored: int = 0
    measured: int = 0
    """Answers that were measured; the scores of all others were there already."""

    def note(self, before: float | None, after: float | None) -> None:
        """Count one answer; None is no reward."""
        if before is None or after is None:
            self.newly_scored += after is not None
            self.no_longer_scored += before is not None
        else:
            self.higher += after > before
            self.lower += after < before


class RescoredCell(NamedTuple):
    """What a rescoring made of a cell."""

    info: CellInfo
    changes: Changes


async def rescore_cell(session: Session, key: str, env: EvalEnvironment, *, max_concurrent: int = 32) -> RescoredCell:
    """Measures every answered attempt of a cell by the scorers of `env`, and derives its files again.

    Expected answers and metadata come from the run itself, so neither data set nor endpoint is needed. A measurement
    that the run already holds (the same scorers, or an earlier rescoring) is not made again; lines that are replaced
    move to `superseded.jsonl`. A kill in the middle loses nothing: rescoring again goes on.
    """
    entry = session.run.manifest.cells[key]
    require_completed(session.run.path, session.checkpoint, key)
    cell = session.run.path / entry.dir
    info = msgspec.convert(entry.info, CellInfo)
    scoring = env.scoring_identity()
    info = msgspec.structs.replace(
        info,
        identity={**info.identity, "scoring": scoring},
        run_id=session.run.manifest.run_id,
    )
    keep_files(cell, env)
    rescoring = _Rescoring(session, cell, env, Identities(info.identity["solver"], scoring), info)
    await rescoring.run(max_concurrent)
    choice = {**info.choice, "basis": rescoring.identities.basis}
    config = {**info.config, "config_hash": config_hash(choice)}
    config |= {"scorers": scoring} if "scorers" in config else {}
    info = msgspec.structs.replace(info, choice=choice, config=config)
    _finish(session, key, entry, info, cell)
    return RescoredCell(info, rescoring.changes)


def require_completed(run: Path, checkpoint: CheckpointManager, key: str) -> None:
    """`RunDirError` where a cell is not completed, and so cannot be rescored."""
    if checkpoint.open_attempts(key) is None:
        raise RunDirError(
            f"{run}: the cell {key} is not completed, so it cannot be rescored",
            hint=f"Continue the run first: nel eval resume {run}",
        )


def _finish(session: Session, key: str, entry: CellEntry, info: CellInfo, cell: Path) -> None:
    plan = digest_value(info.choice)
    session.note_plan(key, plan, info)
    bundle = derive(cell, info, pairs_from_logs(cell))
    session.checkpoint.complete(
        key,
        bundle_path=f"{entry.dir}/eval-{info.name}.json",
        plan=plan,
        open_attempts=max(score.unscored + score.error for score in bundle["benchmark"]["scores"].values()),
    )


class _Rescoring:
    def __init__(
        self, session: Session, cell: Path, env: EvalEnvironment, identities: Identities, info: CellInfo
    ) -> None:
        self.identities = identities
        self.changes = Changes()
        self._session = session
        self._cell = cell
        self._env = env
        self._repeats = info.repeats
        self._spill = Spill(cell)
        self._known = Known.scan(cell, permanent_errors=True)
        self._places = [(offset, length) for offset, length, _ in scan_log(cell / TRAJECTORIES, _Attempted)]
        self._scores = {
            bytes.fromhex(line.attempt): (offset, length) for offset, length, line in scan_log(cell / RESULTS, _Place)
        }
        self._ledger = Ledger(len(self._places))
        self._labels = np.zeros(len(self._places), np.int64)

    async def run(self, max_concurrent: int) -> None:
        self._results = self._session.writer.open(self._cell / RESULTS)
        pool = Pool(max_concurrent, self._rescore, self._fail, RetryPolicy(max_retries=0))
        try:
            await pool.run(range(len(self._places)))
        finally:
            await self._session.writer.drain()
            self._results.close()
        compact(self._cell, self._ledger, self._labels[:: self._repeats], self._repeats)

    async def _rescore(self, unit: int, _tries: int) -> None:
        offset, length = self._places[unit]
        attempt = AttemptRecord.from_json(_read(self._cell / TRAJECTORIES, offset, length))
        self._ledger.attempt(unit, 0, offset, length)
        self._labels[unit] = attempt.problem_idx
        old = ScoreRecord.from_json(_read(self._cell / RESULTS, *self._scores[bytes.fromhex(attempt.attempt)]))
        key = self.identities.score(bytes.fromhex(attempt.attempt), old.expected_answer)
        line = self._known.scores.find(key)
        if line is not None and (line.good or attempt.model_error is not None):
            self._ledger.score(unit, line.file, line.offset, line.length)
            if (line.file, line.offset) != (0, self._scores[bytes.fromhex(attempt.attempt)][0]):
                self.changes.note(old.reward, ScoreRecord.from_json(self._line(line)).reward)
            return
        score = await measure(
            self._env,
            self._spill.restore(attempt),
            Gold(old.expected_answer, old.category, old.cluster),
            score=key.hex(),
            basis=self.identities.basis,
            run_id=self._session.run.manifest.run_id,
            earlier=ScoreRecord.from_json(self._line(line)) if line is not None else None,
        )
        self.changes.measured += 1
        self.changes.note(old.reward, score.reward)
        data = encode_json(self._session.redactor.value(score))
        self._ledger.score(unit, 0, self._results.append(data), len(data))
        await self._session.writer.ready()

    def _line(self, line: Line) -> bytes:
        return _read(self._cell / (SUPERSEDED if line.file else RESULTS), line.offset, line.length)

    async def _fail(self, _unit: int, error: Exception, _tries: int) -> None:
        raise error


class _Attempted(msgspec.Struct, tag_field="schema", tag="nel.attempt/1"):
    attempt: str


def _read(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
