"""`rescore`: every completed cell of a run measured again, by the scorers as they are now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

import msgspec

from nel.config.benchmarks import Benchmark
from nel.config.load import LoadedConfig, load_config
from nel.config.scoring import Metric
from nel.core.contract import decode_json
from nel.core.errors import LoadError, UsageError
from nel.core.rundir import CellEntry, Manifest, RunDir
from nel.engine.checkpoint import CheckpointManager
from nel.engine.derive import CellInfo
from nel.engine.rescore import Changes, require_completed, rescore_cell
from nel.engine.selection import Shard
from nel.engine.session import Session
from nel.environments.base import EvalEnvironment
from nel.environments.registry import get_environment
from nel.environments.sandboxed import SandboxedEnvironment
from nel.orchestration.cells import scored_environment, scoring_of
from nel.orchestration.rescoring import also_scored_by, differences, judged_by
from nel.orchestration.sandboxes import Sandboxes
from nel.orchestration.services import Services
from nel.orchestration.suite import write_reports
from nel.reporting.formats import SUFFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What rescoring changed of one cell."""

    cell: str
    metric: str
    before: float | None
    after: float | None
    changes: Changes
    """How many answers have another reward."""
    why: list[str]
    """What is different in how they are measured; empty where nothing is."""

    @property
    def changed(self) -> bool:
        """Whether the answers are measured otherwise than before."""
        return bool(self.why)


def rescore(
    run_dir: Path,
    *,
    config: Path | None = None,
    overrides: Sequence[str] = (),
    scorers: Sequence[str] = (),
    judge: str | None = None,
) -> list[Rescored]:
    """Measures the stored answers of a run again and derives its files and reports; the evaluated model is not asked.

    Neither its endpoint nor data are needed; a benchmark file or rubric that is gone is taken from what the run keeps.
    What is measured is the `scoring` of the run's own config, or of the entries of `config` with the same benchmark, id
    and params; only its judges are asked, and only for verdicts that the run does not hold yet. `RunDirError` where a
    cell is not completed.

    Args:
        run_dir: the run.
        config: another config, whose `scoring` counts.
        overrides: `key=value`, put into the config.
        scorers: built-in scorers by name, or `file.py:function`, that measure too; the first gives the reward.
        judge: the service that is asked instead of the judges of the config, or as a judge where it has none.
    """
    manifest = RunDir.read(run_dir)
    formats = [name for name, suffix in SUFFIXES.items() if (run_dir / f"report{suffix}").exists()]
    shard = Shard(manifest.shard["index"], manifest.shard["total"]) if manifest.shard else None
    wanted = _Wanted(config, overrides, scorers, judge)
    changes = asyncio.run(_rescore(run_dir, manifest, shard, wanted))
    write_reports(run_dir, formats or ["markdown"])
    return changes


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the caller wants to be measured otherwise."""

    config: Path | None
    overrides: Sequence[str]
    scorers: Sequence[str]
    judge: str | None

    def __bool__(self) -> bool:
        return bool(self.config or self.overrides or self.scorers or self.judge)


async def _rescore(run: Path, manifest: Manifest, shard: Shard | None, wanted: _Wanted) -> list[Rescored]:
    """All that can be refused is refused before the directory is touched."""
    checkpoint = CheckpointManager(run)
    for key in manifest.cells:
        require_completed(run, checkpoint, key)
    async with _Scoring(run, wanted) as scoring:
        environments = {
            key: await scoring.applied(_environment(entry, run / entry.dir), entry)
            for key, entry in manifest.cells.items()
        }
        with Session.open(run, resume=True, shard=shard, secrets=scoring.secrets) as session:
            return [await _rescore_cell(session, key, env) for key, env in environments.items()]


async def _rescore_cell(session: Session, key: str, env: EvalEnvironment) -> Rescored:
    entry = session.run.manifest.cells[key]
    cell = session.run.path / entry.dir
    _, before = _headline(cell, entry)
    info, changes = await rescore_cell(session, key, env)
    await env.close()
    metric, after = _headline(cell, entry)
    why = differences(entry.info["identity"]["scoring"], info.identity["scoring"])
    return Rescored(cell=entry.dir, metric=metric, before=before, after=after, changes=changes, why=why)


class _Scoring:
    """The `scoring` and the sandbox of each cell with the services that it names; the config is read only where there
    is any."""

    def __init__(self, run: Path, wanted: _Wanted) -> None:
        self._run = run
        self._wanted = wanted
        self._loaded: LoadedConfig | None = None
        self._services: Services | None = None
        self._sandboxes = Sandboxes()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sandboxes.close()
        if self._services is not None:
            await self._services.close()

    @property
    def secrets(self) -> Sequence[str]:
        """The secret values of the config, where it was read."""
        return self._loaded.secrets if self._loaded is not None else ()

    async def applied(self, env: EvalEnvironment, entry: CellEntry) -> EvalEnvironment:
        """The environment that measures as the config says."""
        said = entry.info["config"]["entry"]
        plain = not said.get("scoring") and not env.may_need_judge and env.verify_sandbox is None
        if not self._wanted and plain:
            return env
        if self._loaded is None or self._services is None:
            self._loaded = load_config(
                self._file, overrides=self._wanted.overrides, use_defaults=self._wanted.config is not None
            )
            self._services = Services(self._loaded, self._run / "logs")
        found = self._entry(self._loaded.config.benchmarks, said)
        kept = entry.info["identity"]["scoring"].get("metrics", {})
        metrics = [_with_rubric(metric, kept.get(metric.name, {})) for metric in found.scoring.metrics]
        scoring = found.scoring.model_copy(update={"metrics": metrics})
        if self._wanted.judge is not None:
            self._check_service(self._wanted.judge)
            scoring = judged_by(scoring, self._wanted.judge)
        if self._wanted.scorers:
            scoring = also_scored_by(scoring, self._wanted.scorers)
        found = found.model_copy(update={"scoring": scoring})
        sandbox = await self._sandboxes.of(found, env)
        if sandbox is not None:
            await self._sandboxes.start(sandbox)
            if env.verify_sandbox is not None:
                env = SandboxedEnvironment(env, sandbox.spec, sandbox.manager)
        return await scored_environment(found, env, self._services, sandbox, started=True)

    @property
    def _file(self) -> Path:
        return self._wanted.config or self._run / "config.yaml"

    def _check_service(self, name: str) -> None:
        assert self._loaded is not None
        known = self._loaded.config.services
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise UsageError(
                f"{self._file}: no service {name!r}",
                hint=f"Did you mean {near[0]!r}?" if near else f"Services: {', '.join(known)}.",
            )

    def _entry(self, entries: Sequence[Benchmark], said: dict[str, Any]) -> Benchmark:
        alike = [
            entry
            for entry in entries
            if (entry.name, entry.id, entry.parameters) == (said["name"], said["id"], said["params"])
        ]
        if not alike:
            raise UsageError(
                f"{self._file}: no entry {said['name']} with the id and params of the run",
                hint="A rescoring needs `scoring` alone to be different.",
            )
        same = [entry for entry in alike if scoring_of(entry) == said.get("scoring")]
        return (same or alike)[0]


def _with_rubric(metric: Metric, kept: dict[str, Any]) -> Metric:
    """The metric with the rubric that the run keeps, where its file is gone."""
    file = getattr(metric, "rubric_file", None)
    if file is None or Path(file).expanduser().exists() or not kept.get("rubric"):
        return metric
    return metric.model_copy(update={"rubric_file": None, "rubric": kept["rubric"]})


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
