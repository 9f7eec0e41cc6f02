"""`rescore`: every completed cell of a run measured again, by the scorers as they are now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from nel.config.benchmarks import Benchmark
from nel.config.load import LoadedConfig, load_config
from nel.config.scoring import Metric
from nel.core.contract import decode_json
from nel.core.errors import LoadError, UsageError
from nel.core.rundir import CellEntry, RunDir
from nel.engine.derive import CellInfo
from nel.engine.rescore import rescore_cell
from nel.engine.selection import Shard
from nel.engine.session import Session
from nel.environments.base import EvalEnvironment
from nel.environments.registry import get_environment
from nel.environments.sandboxed import SandboxedEnvironment
from nel.orchestration.cells import scored_environment, scoring_of
from nel.orchestration.sandboxes import Sandboxes
from nel.orchestration.services import Services
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


def rescore(run_dir: Path, *, config: Path | None = None) -> list[Rescored]:
    """Measures the stored answers of a run again and derives its files and reports; the evaluated model is not asked.

    Neither its endpoint nor data are needed; a benchmark file or rubric that is gone is taken from what the run keeps.
    What is measured is the `scoring` of the run's own config, or of the entries of `config` with the same benchmark, id
    and params; only its judges are asked, and only for verdicts that the run does not hold yet. `RunDirError` where a
    cell is not completed.
    """
    manifest = RunDir.read(run_dir)
    formats = [name for name, suffix in SUFFIXES.items() if (run_dir / f"report{suffix}").exists()]
    shard = Shard(manifest.shard["index"], manifest.shard["total"]) if manifest.shard else None
    with Session.open(run_dir, resume=True, shard=shard) as session:
        changes = asyncio.run(_rescore(session, config))
    write_reports(run_dir, formats or ["markdown"])
    return changes


async def _rescore(session: Session, config: Path | None) -> list[Rescored]:
    async with _Scoring(session.run.path, config) as scoring:
        return await _rescore_cells(session, scoring)


async def _rescore_cells(session: Session, scoring: _Scoring) -> list[Rescored]:
    changes = []
    for key, entry in session.run.manifest.cells.items():
        cell = session.run.path / entry.dir
        env = await scoring.applied(_environment(entry, cell), entry)
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


class _Scoring:
    """The `scoring` and the sandbox of each cell with the services that it names; the config is read only where there
    is any."""

    def __init__(self, run: Path, config: Path | None) -> None:
        self._run = run
        self._config = config
        self._loaded: LoadedConfig | None = None
        self._services: Services | None = None
        self._sandboxes = Sandboxes()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sandboxes.close()
        if self._services is not None:
            await self._services.close()

    async def applied(self, env: EvalEnvironment, entry: CellEntry) -> EvalEnvironment:
        """The environment that measures as the config says."""
        said = entry.info["config"]["entry"]
        plain = not said.get("scoring") and not env.may_need_judge and env.verify_sandbox is None
        if self._config is None and plain:
            return env
        if self._loaded is None or self._services is None:
            own = self._config is None
            self._loaded = load_config(self._config or self._run / "config.yaml", use_defaults=not own)
            self._services = Services(self._loaded, self._run / "logs")
        found = self._entry(self._loaded.config.benchmarks, said)
        kept = entry.info["identity"]["scoring"].get("metrics", {})
        metrics = [_with_rubric(metric, kept.get(metric.name, {})) for metric in found.scoring.metrics]
        found = found.model_copy(update={"scoring": found.scoring.model_copy(update={"metrics": metrics})})
        sandbox = await self._sandboxes.of(found, env)
        if sandbox is not None:
            await self._sandboxes.start(sandbox)
            env = SandboxedEnvironment(env, sandbox.spec, sandbox.manager)
        return await scored_environment(found, env, self._services, started=True)

    def _entry(self, entries: Sequence[Benchmark], said: dict[str, Any]) -> Benchmark:
        alike = [
            entry
            for entry in entries
            if (entry.name, entry.id, entry.parameters) == (said["name"], said["id"], said["params"])
        ]
        if not alike:
            file = self._config or self._run / "config.yaml"
            raise UsageError(
                f"{file}: no entry {said['name']} with the id and params of the run",
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
