"""`run_local`: a whole configuration on this machine, from the run directory's lock to its reports."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nel.config.clusters import Cluster
from nel.config.load import LoadedConfig
from nel.config.planning import plan_check
from nel.core.disk import write_atomic
from nel.core.errors import ExitCode, NelError, UsageError
from nel.engine.cell import CellResult
from nel.engine.selection import Shard, shard_from_environment
from nel.engine.session import Session
from nel.engine.settings import RetryErrors
from nel.engine.tally import Tally
from nel.observability.progress import NullProgress, Progress, ProgressSnapshot
from nel.orchestration.cells import Cell, as_nel_error, build_solver, name_cells, plan_cells, scored_environment
from nel.orchestration.sandboxes import Sandboxes
from nel.orchestration.services import Services, wait_for_endpoint


@dataclass(slots=True, kw_only=True)
class SuiteResult:
    """How a suite ended."""

    run_dir: Path
    exit_code: ExitCode = ExitCode.OK
    begun: bool = False
    """Whether the run directory was taken; one that is stopped while it plans has touched nothing."""
    bundles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By cell key."""
    failed: dict[str, str] = field(default_factory=dict)
    """From a cell, or an entry of `benchmarks` that has none, to why it failed."""
    reports: list[Path] = field(default_factory=list)


def run_directory(loaded: LoadedConfig, *, resume: bool, shard: Shard | None = None) -> Path:
    """Where the run goes: `output.dir`, with a level for the time or for the shard where there is one.

    A resume without a named directory continues the latest run below the default one. The shards of one run share a
    directory, so they get no level for the time.
    """
    output = loaded.config.output
    base = Path(output.directory)
    if output.adds_timestamp and shard is None:
        runs = sorted(path.parent for path in base.glob("*/manifest.json")) if resume else []
        base = runs[-1] if runs else base / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return base / f"shard_{shard.index}" if shard else base


def run_local(
    loaded: LoadedConfig,
    *,
    directory: Path | None = None,
    resume: bool = False,
    retry_errors: RetryErrors = "transient",
    progress: Progress | None = None,
    command: Sequence[str] = (),
    started: Callable[[Path], None] | None = None,
) -> SuiteResult:
    """Runs every benchmark of the configuration; one that fails is noted, and the others go on.

    Ctrl-C and SIGTERM stop it: attempts in progress are dropped, all that was recorded stays, servers are stopped, and
    the exit code is 130. `directory` is by default `run_directory(...)`; `started` is told it once it is locked.
    """
    plan_check(loaded)
    shard = shard_from_environment()
    directory = directory or run_directory(loaded, resume=resume, shard=shard)
    suite = _Suite(loaded, directory, shard, retry_errors, progress or NullProgress())

    @contextlib.contextmanager
    def open_session() -> Iterator[Session]:
        with Session.open(directory, resume=resume, shard=shard, command=command, secrets=loaded.secrets) as session:
            suite.result.begun = True
            if started is not None:
                started(directory)
            write_atomic(directory / "config.yaml", loaded.to_yaml(), mode=0o600)
            yield session

    try:
        with _environment(loaded.config.cluster):
            asyncio.run(suite.run(open_session))
    except (KeyboardInterrupt, asyncio.CancelledError):
        suite.result.exit_code = ExitCode.INTERRUPTED
    finally:
        suite.progress.close()
    if suite.result.begun:
        suite.result.reports = write_reports(directory, loaded.config.output.report)
    return suite.result


@contextlib.contextmanager
def _environment(cluster: Cluster) -> Iterator[None]:
    """Sets the cluster's `container_env` while a run lasts."""
    before = dict(os.environ)
    os.environ.update(cluster.container_env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Suite:
    def __init__(
        self,
        loaded: LoadedConfig,
        directory: Path,
        shard: Shard | None,
        retry_errors: RetryErrors,
        progress: Progress,
    ) -> None:
        self.result = SuiteResult(run_dir=directory)
        self.progress = progress
        self._loaded = loaded
        self._shard = shard
        self._retry_errors = retry_errors

    async def run(self, open_session: Callable[[], AbstractContextManager[Session]]) -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        services = Services(self._loaded, self.result.run_dir / "logs")
        sandboxes = Sandboxes()
        try:
            planned = await plan_cells(
                self._loaded, services, sandboxes, shard=self._shard, retry_errors=self._retry_errors
            )
            _refuse_where_nothing_can_run(planned)
            with open_session() as session:
                await self._run_cells(session, services, sandboxes, planned)
        finally:
            for problem in await sandboxes.close():
                self.progress.message(problem)
            await services.close()
        self._conclude()

    async def _run_cells(
        self,
        session: Session,
        services: Services,
        sandboxes: Sandboxes,
        planned: Sequence[Cell | tuple[int, NelError]],
    ) -> None:
        session.checkpoint.forget_failures()
        cells = [cell for cell in planned if isinstance(cell, Cell)]
        name_cells(cells, session.run.manifest.cells)
        for failure in planned:
            if not isinstance(failure, Cell):
                index, error = failure
                self._failed(f"benchmarks[{index}] {self._loaded.config.benchmarks[index].name}", error, session)
        waiting = [cell for cell in cells if session.finished(cell.key, cell.plan) is None]
        for cell in waiting:  # all at once, so that the time left is that of the whole suite
            self.progress.begin(cell.directory, cell.plan.attempts, 0)
        slots = asyncio.Semaphore(self._loaded.config.max_concurrent_benchmarks)
        async with asyncio.TaskGroup() as group:
            for cell in cells:
                group.create_task(self._run_cell(session, services, sandboxes, cell, slots))

    async def _run_cell(
        self, session: Session, services: Services, sandboxes: Sandboxes, cell: Cell, slots: asyncio.Semaphore
    ) -> None:
        async with slots:
            name = cell.directory
            try:
                bundle = session.finished(cell.key, cell.plan)
                if bundle is not None:
                    self.progress.message(f"{name}: completed already")
                else:
                    if cell.sandbox is not None:
                        await sandboxes.start(cell.sandbox)
                    bundle = (await self._evaluate(session, services, cell)).bundle
                self.result.bundles[str(cell.key)] = bundle
            except Exception as error:
                self._failed(str(cell.key), as_nel_error(error), session)
            finally:
                await cell.plan.env.close()

    async def _evaluate(self, session: Session, services: Services, cell: Cell) -> CellResult:
        name, plan = cell.directory, cell.plan
        service = cell.entry.service
        if service is not None:
            client = await services.client(service)
            await wait_for_endpoint(service, self._loaded.config.services[service])
            plan = plan.with_solver(await build_solver(cell.entry, plan.env, client, services.config(service)))
        if plan.env is not cell.env:
            plan = plan.with_environment(
                await scored_environment(cell.entry, cell.env, services, cell.sandbox, started=True)
            )
        tally = Tally()

        def show(now: Tally) -> None:
            nonlocal tally
            tally = now
            self.progress.update(name, snapshot(now))

        try:
            result = await session.evaluate(cell.key, plan, directory=cell.directory, on_progress=show)
        finally:
            self.progress.end(name, snapshot(tally))
        for note in result.notes:
            self.progress.message(f"{name}: {note}")
        return result

    def _failed(self, name: str, error: NelError, session: Session) -> None:
        session.checkpoint.fail(name, error.message)
        self.result.failed[name] = str(error)
        self.progress.message(f"{name} failed: {error}")

    def _conclude(self) -> None:
        if self.result.failed:
            self.result.exit_code = ExitCode.FAILED
        elif any(bundle["outcome"] == "degraded" for bundle in self.result.bundles.values()):
            self.result.exit_code = ExitCode.DEGRADED


def _refuse_where_nothing_can_run(planned: Sequence[Cell | tuple[int, NelError]]) -> None:
    """Raises where every entry is a user's mistake: an earlier run in the directory is then left alone."""
    errors = [item[1] for item in planned if not isinstance(item, Cell)]
    if len(errors) == len(planned) and all(isinstance(error, UsageError) for error in errors):
        raise errors[0] if len(errors) == 1 else UsageError("\n".join(str(error) for error in errors))


def snapshot(tally: Tally) -> ProgressSnapshot:
    """What the display shows of a cell."""
    return ProgressSnapshot(
        done=tally.done,
        total=tally.planned,
        scored=tally.scored,
        unscored=tally.unscored,
        errors=dict(tally.errors),
        mean=tally.mean,
        ci_lower=tally.interval[0] if tally.interval else None,
        ci_upper=tally.interval[1] if tally.interval else None,
        tokens=tally.tokens,
        cost=tally.cost,
        elapsed=tally.elapsed,
        in_flight=tally.in_flight,
        known=tally.known,
    )


def write_reports(directory: Path, formats: Sequence[str]) -> list[Path]:
    """Writes the report of a run in each format that is a file, and returns the paths."""
    from nel.reporting.formats import SUFFIXES, render
    from nel.reporting.run_view import open_run

    view = open_run(directory)
    written = []
    for name in formats:
        if name in SUFFIXES:
            path = directory / f"report{SUFFIXES[name]}"
            write_atomic(path, render(view, name))
            written.append(path)
    return written
