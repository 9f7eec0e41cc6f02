"""`LocalExecutor`: a run in this process, or in one of its own that outlives the terminal."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from nel.core.errors import NelError, RunDirError, UsageError
from nel.core.rundir import PREVIOUS_NAME, RunDir, Stage, is_run_dir
from nel.executors import ProcessState, RunOutcome
from nel.executors.background import Job, start, write_to
from nel.executors.process import METADATA, Process

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

LOG = "nel_eval.log"
_POLL = 0.1


class LocalExecutor:
    """Runs on this machine. Its metadata file `nel.pid` tells the process that a run was last started in."""

    name = "local"

    def __init__(self, *, stop_grace: float = 30.0) -> None:
        self.stop_grace = stop_grace
        """Seconds between SIGTERM and SIGKILL."""

    def run(
        self,
        config: LoadedConfig,
        *,
        dry_run: bool = False,
        resume: bool = False,
        background: bool = False,
        submit: bool = False,
        retry_errors: Literal["transient", "all"] = "transient",
        command: Sequence[str] = (),
    ) -> RunOutcome:
        """See `Executor.run`; `submit` is refused."""
        from nel.config.planning import plan_check
        from nel.engine.selection import shard_from_environment
        from nel.orchestration.suite import run_directory

        if submit:
            raise UsageError(
                "The executor 'local' has no scheduler to submit a run to.",
                hint="Leave out `submit`; `background` puts the run in a process of its own.",
            )
        if dry_run:
            return _plan(config)
        plan_check(config)
        directory = run_directory(config, resume=resume, shard=shard_from_environment())
        if not background:
            return run_here(
                config, directory, resume=resume, retry_errors=retry_errors, command=command, background=False
            )
        job = Job(
            config=config,
            directory=directory,
            resume=resume,
            retry_errors=retry_errors,
            command=list(command),
            log_level=logging.getLogger("nel").level,
        )
        return RunOutcome(run_dir=directory, exit_code=0, pid=start(job))

    def status(self, output_dir: Path) -> ProcessState:
        """See `Executor.status`; `details` has pid, host and since when (Unix seconds)."""
        process = Process.read(output_dir)
        if process is None:
            return ProcessState(executor=self.name, running=False)
        details = {"pid": process.pid, "host": process.host, "since": process.since}
        running = _is_going_on(output_dir)
        if running and (elsewhere := process.elsewhere()):
            running, details = False, {**details, "elsewhere": elsewhere}
        elif running and not process.is_alive():
            running, details = False, {**details, "stale": "its process has ended"}
        return ProcessState(executor=self.name, running=running, details=details)

    def stop(self, output_dir: Path) -> bool:
        """See `Executor.stop`: SIGTERM, and after a grace SIGKILL."""
        state, process = self.status(output_dir), Process.read(output_dir)
        if "elsewhere" in state.details:
            raise RunDirError(
                f"The run in {output_dir} cannot be stopped from here: {state.details['elsewhere']}.",
                hint="Stop it where it was started.",
            )
        if process is None or not state.running:
            return False
        for number, grace in ((signal.SIGTERM, self.stop_grace), (signal.SIGKILL, 5.0)):
            _send(process.pid, number)
            if _wait_until(lambda: not process.is_alive(), grace):
                return True
        raise NelError(f"Process {process.pid} of the run in {output_dir} does not end, even by SIGKILL.")

    def logs(self, output_dir: Path, *, follow: bool = False, tail: int | None = None) -> Iterator[str]:
        """See `Executor.logs`; `RunDirError` for a run in the foreground, which wrote to its terminal."""
        path = output_dir / LOG
        process = Process.read(output_dir)
        if not path.exists() or (process is not None and not process.background):
            earlier = f"The log of an earlier start is {path}. " if path.exists() else ""
            raise RunDirError(
                f"The run in {output_dir} has no log: it was not started with --background, and wrote to its terminal.",
                hint=f"{earlier}See `nel eval status {output_dir}`, and the servers' logs in {output_dir / 'logs'}.",
            )

        def going_on() -> bool:
            if process is None or not follow:
                return False
            return _is_going_on(output_dir) if process.elsewhere() else process.is_alive()

        with path.open(encoding="utf-8", errors="replace") as file:
            yield from _whole_lines(_growing(file, tail, going_on))

    @staticmethod
    def detect(output_dir: Path) -> bool:
        """Whether `nel.pid` is there."""
        return (output_dir / METADATA).is_file()


def run_here(
    config: LoadedConfig,
    directory: Path,
    *,
    resume: bool,
    retry_errors: Literal["transient", "all"],
    command: Sequence[str],
    background: bool,
) -> RunOutcome:
    """Runs in this process, in the run directory that was decided on; in the `background` it writes to the log."""
    from nel.observability.progress import ConsoleProgress
    from nel.orchestration.suite import run_local

    earlier = RunDir.read(directory).run_id if is_run_dir(directory) else None

    def started(directory: Path) -> None:
        if not resume:
            _set_log_aside(directory, earlier)
        if background:
            write_to(directory / LOG)
        Process.this(background=background).write(directory)

    result = run_local(
        config,
        directory=directory,
        resume=resume,
        retry_errors=retry_errors,
        progress=ConsoleProgress(interval=config.config.output.progress_interval),
        command=command,
        started=started,
    )
    return RunOutcome(run_dir=result.run_dir, exit_code=int(result.exit_code), begun=result.begun)


def _set_log_aside(directory: Path, earlier: str | None) -> None:
    """The log of the run that was set aside goes with it."""
    target = directory / PREVIOUS_NAME / str(earlier)
    if (directory / LOG).exists() and target.is_dir():
        (directory / LOG).rename(target / LOG)


def _plan(config: LoadedConfig) -> RunOutcome:
    from nel.core.errors import ExitCode
    from nel.orchestration.plan import make_plan

    plan = make_plan(config)
    code = ExitCode.USAGE if plan.errors else ExitCode.OK
    return RunOutcome(run_dir=Path(plan.output_dir), exit_code=int(code), plan=plan)


def _is_going_on(directory: Path) -> bool:
    """Whether the manifest says so; a killed run's does too."""
    return is_run_dir(directory) and RunDir.read(directory).stage is Stage.RUNNING


def _send(pid: int, number: signal.Signals) -> None:
    try:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    except PermissionError as error:
        raise NelError(f"Process {pid} belongs to another user, who alone can stop it.") from error


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL)
    return True


def _growing(file: TextIO, tail: int | None, going_on: Callable[[], bool]) -> Iterator[str]:
    """What stands in the file, the last `tail` lines of it, and what is added while `going_on`."""
    yield from file if tail is None else deque(file, maxlen=tail)
    while going_on():
        yield from file
        time.sleep(_POLL)
    yield from file


def _whole_lines(pieces: Iterable[str]) -> Iterator[str]:
    """The lines of a text that comes in pieces, of which none goes beyond the end of a line."""
    line = ""
    for piece in pieces:
        line += piece
        if line.endswith("\n"):
            yield line[:-1]
            line = ""
    if line:
        yield line
