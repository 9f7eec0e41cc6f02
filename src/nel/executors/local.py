"""`LocalExecutor`: a run in this process, or in one of its own that outlives the terminal."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from nel.core.contract import decode_json, encode_json
from nel.core.disk import write_atomic
from nel.core.errors import RecordError, RunDirError, ServiceError
from nel.core.lock import process_start
from nel.executors import ProcessState, RunOutcome

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

METADATA = "nel.pid"
LOG = "nel_eval.log"
_POLL = 0.1
_TAIL = 20


class LocalExecutor:
    """Runs on this machine. Its metadata file `nel.pid` tells the process: id, start time, host."""

    name = "local"

    def __init__(self, *, stop_grace: float = 30.0) -> None:
        self.stop_grace = stop_grace
        """Seconds between SIGTERM and SIGKILL."""

    def run(
        self,
        config: LoadedConfig,
        *,
        resume: bool = False,
        background: bool = False,
        retry_errors: Literal["transient", "all"] = "transient",
        command: Sequence[str] = (),
    ) -> RunOutcome:
        """See `Executor.run`."""
        from nel.engine.selection import shard_from_environment
        from nel.orchestration.suite import run_directory

        directory = run_directory(config, resume=resume, shard=shard_from_environment())
        if background:
            return _in_background(config, directory, resume, retry_errors, list(command))
        return self.run_in(directory, config, resume=resume, retry_errors=retry_errors, command=command)

    def run_in(
        self,
        directory: Path,
        config: LoadedConfig,
        *,
        resume: bool,
        retry_errors: Literal["transient", "all"],
        command: Sequence[str],
    ) -> RunOutcome:
        """Runs in this process, in the run directory that was decided on."""
        from nel.observability.progress import ConsoleProgress
        from nel.orchestration.suite import run_local

        result = run_local(
            config,
            directory=directory,
            resume=resume,
            retry_errors=retry_errors,
            progress=ConsoleProgress(interval=config.config.output.progress_interval),
            command=command,
            started=_leave_metadata,
        )
        return RunOutcome(run_dir=result.run_dir, exit_code=int(result.exit_code))

    def status(self, output_dir: Path) -> ProcessState:
        """See `Executor.status`; `details` has pid, host and since when, and `stale` says why a process is not ours."""
        owner = _read(output_dir)
        if owner is None:
            return ProcessState(executor=self.name, running=False)
        if owner["host"] != os.uname().nodename:
            note = f"it was started on {owner['host']}, whose processes cannot be seen from here"
            return ProcessState(executor=self.name, running=False, details={**owner, "stale": note})
        if not _is_alive(owner):
            return ProcessState(executor=self.name, running=False, details={**owner, "stale": "its process has ended"})
        return ProcessState(executor=self.name, running=True, details=owner)

    def stop(self, output_dir: Path) -> bool:
        """See `Executor.stop`: SIGTERM, and after a grace SIGKILL."""
        state = self.status(output_dir)
        if not state.running:
            return False
        pid = int(state.details["pid"])
        for number, grace in ((signal.SIGTERM, self.stop_grace), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            if _wait_until(lambda: not _is_alive(state.details), grace):
                return True
        raise ServiceError(f"process {pid} of the run in {output_dir} does not end")

    def logs(self, output_dir: Path, *, follow: bool = False, tail: int | None = None) -> Iterator[str]:
        """See `Executor.logs`; `RunDirError` for a run in the foreground, which wrote to its terminal."""
        path = output_dir / LOG
        if not path.exists():
            raise RunDirError(
                f"{output_dir} has no {LOG}: the run was not started with --background, and wrote to its terminal.",
                hint=f"See `nel eval status {output_dir}`, and the servers' logs in {output_dir / 'logs'}.",
            )
        with path.open(encoding="utf-8", errors="replace") as file:
            lines: Iterator[str] | deque[str] = iter(file) if tail is None else deque(file, maxlen=tail)
            yield from (line.rstrip("\n") for line in lines)
            while follow:
                ended = not self.status(output_dir).running
                yield from (line.rstrip("\n") for line in file)
                if ended:
                    return
                time.sleep(_POLL)

    @staticmethod
    def detect(output_dir: Path) -> bool:
        """Whether `nel.pid` is there."""
        return (output_dir / METADATA).is_file()


def _leave_metadata(directory: Path) -> None:
    owner = {"pid": os.getpid(), "started": process_start(os.getpid()), "host": os.uname().nodename, "at": time.time()}
    write_atomic(directory / METADATA, msgspec.json.format(encode_json(owner)) + b"\n")


def _read(directory: Path) -> dict[str, Any] | None:
    try:
        owner = decode_json((directory / METADATA).read_bytes())
    except (FileNotFoundError, RecordError):
        return None
    return owner if isinstance(owner, dict) and {"pid", "started", "host"} <= owner.keys() else None


def _is_alive(owner: Any) -> bool:
    """Whether the very process is there: ids are used again, start times are not."""
    started = process_start(int(owner["pid"]))
    return started is not None and started == str(owner["started"])


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL)
    return True


def _in_background(
    config: LoadedConfig, directory: Path, resume: bool, retry_errors: str, command: list[str]
) -> RunOutcome:
    """Starts a process of its own and waits until it holds the run directory.

    What it shall run goes through a pipe: a key given on the command line is in no argument, variable or file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log_path = directory / LOG
    with log_path.open("ab" if resume else "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "nel.executors.background"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pickle.dump((config, directory, resume, retry_errors, command), pipe)

    def under_way() -> bool:
        owner = _read(directory)
        return process.poll() is not None or (owner is not None and owner["pid"] == process.pid)

    while not _wait_until(under_way, 60.0):
        pass
    owner = _read(directory)
    if owner is not None and owner["pid"] == process.pid:
        pid, process.returncode = process.pid, 0  # it is left alone from here on
        return RunOutcome(run_dir=directory, exit_code=0, pid=pid)
    tail = "\n".join(f"  | {line}" for line in log_path.read_text(errors="replace").splitlines()[-_TAIL:])
    raise ServiceError(
        f"the run ended with exit code {process.returncode} before it had begun.\n{tail}",
        hint=f"Its whole log: {log_path}",
    )
