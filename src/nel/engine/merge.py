"""`merge_results`: the shards of a run as one run, equal to the one that was not sharded."""

from __future__ import annotations

import heapq
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nel.core.contract import encode_json
from nel.core.digest import digest_value
from nel.core.errors import RecordError, RunDirError
from nel.core.log import replace_log, scan_log
from nel.core.rundir import CellEntry, Manifest, RunDir
from nel.engine.checkpoint import CheckpointManager
from nel.engine.derive import CellInfo, derive, pairs_from_logs
from nel.engine.identity import Identities
from nel.engine.ledger import RESULTS, TRAJECTORIES
from nel.engine.session import Session
from nel.observability.records import AttemptRecord, ScoreRecord


@dataclass(frozen=True, slots=True)
class _Part:
    """One shard's share of a cell."""

    path: Path
    entry: CellEntry
    info: CellInfo
    open_attempts: int


def merge_results(directory: Path | str) -> Path:
    """Merges `shard_0` ... `shard_N` of `directory` into `directory/merged`, and returns that run directory.

    `RunDirError` names shards that are missing, not completed, or of another plan. A `merged` that is there already is
    set aside inside the new one.
    """
    base = Path(directory)
    shards = _shards(base)
    cells = {key: _parts(shards, key) for key in sorted({key for _, manifest in shards for key in manifest.cells})}
    merged = base / "merged"
    with Session.open(merged, resume=False) as session:
        for key, parts in cells.items():
            _merge_cell(session, key, parts)
        config = shards[0][0] / "config.yaml"
        if config.exists():
            shutil.copyfile(config, merged / "config.yaml")
    return merged


def _shards(base: Path) -> list[tuple[Path, Manifest]]:
    found = {}
    for path in base.glob("shard_*"):
        manifest = RunDir.read(path)
        if manifest.shard is None:
            raise RunDirError(f"{path} is no shard: its manifest names none")
        found[manifest.shard["index"]] = (path, manifest)
    if not found:
        raise RunDirError(f"{base} has no shard_N directories", hint="Name the directory that holds the shards.")
    totals = {manifest.shard["total"] for _, manifest in found.values() if manifest.shard}
    if len(totals) > 1:
        raise RunDirError(f"{base}: the shards were made for different totals: {sorted(totals)}")
    total = totals.pop()
    if missing := [str(index) for index in range(total) if index not in found]:
        raise RunDirError(
            f"{base}: {len(missing)} of {total} shards are missing: {', '.join(missing)}",
            hint="Run them, then merge again.",
        )
    for path, manifest in found.values():
        if manifest.stage != "completed":
            raise RunDirError(f"{path} is {manifest.stage}, not completed", hint=f"Continue it: nel eval resume {path}")
    return [found[index] for index in range(total)]


def _parts(shards: list[tuple[Path, Manifest]], key: str) -> list[_Part]:
    parts = []
    for path, manifest in shards:
        entry = manifest.cells.get(key)
        if entry is None:
            raise RunDirError(f"{path} has no cell {key}, which other shards have")
        info = msgspec.convert(entry.info, CellInfo)
        completed = CheckpointManager(path).open_attempts(key)
        if completed is None:
            raise RunDirError(f"{path}: the cell {key} is not completed", hint=f"Continue it: nel eval resume {path}")
        parts.append(_Part(path / entry.dir, entry, info, completed))
        if _whole(info) != _whole(parts[0].info):
            raise RunDirError(
                f"{path}: the cell {key} was run with another plan than in {shards[0][0]}",
                hint="Run the shards again with one configuration and the same data.",
            )
    return parts


def _whole(info: CellInfo) -> dict[str, Any]:
    """The plan without what is a shard's own."""
    return {**info.choice, "shard": None}


def _merge_cell(session: Session, key: str, parts: list[_Part]) -> None:
    first = parts[0]
    info = msgspec.structs.replace(
        first.info,
        config={name: value for name, value in first.info.config.items() if name != "shard"},
        planned=sum(part.info.planned for part in parts),
        run_id=session.run.manifest.run_id,
        choice=_whole(first.info),
    )
    cell = session.run.cell_dir(
        key,
        first.entry.dir,
        benchmark=first.entry.benchmark,
        model=first.entry.model,
        variant=first.entry.variant,
    )
    cell.mkdir(exist_ok=True)
    session.note_plan(key, digest_value(info.choice), info)
    before = _occurrences_before(parts)
    identities = Identities(info.identity["solver"], info.identity["scoring"])

    def merged() -> Iterator[_Lines]:
        streams = [_lines(part, counts, identities) for part, counts in zip(parts, before, strict=True)]
        return heapq.merge(*streams, key=attrgetter("problem"))

    replace_log(cell / TRAJECTORIES, (lines.attempt for lines in merged()))
    replace_log(cell / RESULTS, (lines.score for lines in merged()))
    for part in parts:
        for folder in ("blobs", "code"):
            if (part.path / folder).exists():
                shutil.copytree(part.path / folder, cell / folder, dirs_exist_ok=True)
    derive(cell, info, pairs_from_logs(cell))
    session.checkpoint.complete(
        key,
        bundle_path=str((cell / f"eval-{info.name}.json").relative_to(session.run.path)),
        plan=digest_value(info.choice),
        open_attempts=sum(part.open_attempts for part in parts),
    )


class _Content(msgspec.Struct, tag_field="schema", tag="nel.attempt/1"):
    content: str
    repeat: int = 0


Counts = Counter[str]


class _Lines(NamedTuple):
    """The two lines of one attempt."""

    problem: tuple[int, int]
    attempt: bytes
    score: bytes


def _occurrences_before(parts: list[_Part]) -> list[Counts]:
    """For each shard, how many problems of equal content the shards before it hold."""
    total: Counts = Counter()
    before = []
    for part in parts:
        before.append(total.copy())
        total.update(line.content for _, _, line in scan_log(part.path / TRAJECTORIES, _Content) if line.repeat == 0)
    return before


def _lines(part: _Part, before: Counts, identities: Identities) -> Iterator[_Lines]:
    """The lines of each attempt of a shard, with the keys that they have in the whole."""
    attempts = scan_log(part.path / TRAJECTORIES, AttemptRecord)
    scores = scan_log(part.path / RESULTS, ScoreRecord)
    for (_, _, attempt), (_, _, score) in zip(attempts, scores, strict=True):
        if attempt.attempt != score.attempt:
            raise RecordError(f"{part.path}: trajectories.jsonl and results.jsonl do not hold the same attempts")
        earlier = before[attempt.content]
        if earlier and attempt.content:
            attempt.occurrence += earlier
            key = identities.attempt(bytes.fromhex(attempt.content), attempt.occurrence, attempt.repeat)
            attempt.attempt = score.attempt = key.hex()
            score.score = identities.score(key, score.expected_answer).hex()
        yield _Lines((attempt.problem_idx, attempt.repeat), encode_json(attempt), encode_json(score))
