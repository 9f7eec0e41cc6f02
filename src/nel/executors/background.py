"""A run in a process of its own that outlives the terminal: both ends of the pipe that tells it what to run."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from nel.core.disk import write_all
from nel.core.errors import ExitCode, NelError, ServiceError
from nel.core.secrets import Redactor, redact_text
from nel.executors.process import Process

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

_POLL = 0.05
_TAIL = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the process shall run."""

    config: LoadedConfig
    directory: Path
    resume: bool
    retry_errors: Literal["transient", "all"]
    command: list[str]
    log_level: int
    """Of the logger `nel`; 0 where nobody asked for more than warnings."""


def start(job: Job) -> int:
    """Starts the process and returns its id once it holds the run directory; `ServiceError` where it ended before.

    The job goes through a pipe: a key given on the command line is in no argument, variable or file. What the process
    says before it holds the directory goes to a file without a name, so that a refused start touches nothing.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            # -P: a file of the working directory must not stand in for a module.
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pickle.dump(sys.path, pipe)
                pickle.dump(job, pipe)
            while not _holds(job.directory, process.pid):
                if process.poll() is not None:
                    break
                time.sleep(_POLL)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if _holds(job.directory, process.pid):
            pid, process.returncode = process.pid, 0  # it is left alone from here on
            return pid
        raise ServiceError(f"the run ended before it had begun (exit code {process.returncode}):\n{_end_of(said)}")


def _holds(directory: Path, pid: int) -> bool:
    owner = Process.read(directory)
    return owner is not None and owner.pid == pid and owner.elsewhere() is None


def _end_of(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").splitlines()[-_TAIL:]
    return "\n".join(f"  | {line}" for line in lines) or "  (it said nothing)"


def write_to(log: Path) -> None:
    """From now on this process writes to `log`, beginning with what it has said before."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    write_all(descriptor, os.pread(sys.stderr.fileno(), 1 << 20, 0))
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def main() -> int:
    """The exit code of the run that standard input describes."""
    # The bytes come from the process that started this one, through a pipe that only the two hold.
    sys.path[:] = pickle.load(sys.stdin.buffer)  # noqa: S301
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301
    os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
    if job.log_level:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("nel").setLevel(job.log_level)
    try:
        return _run(job)
    except NelError as error:
        reason, code = f"error: {error}", int(error.exit_code)
    except Exception:
        reason, code = traceback.format_exc(), int(ExitCode.INTERNAL)
    print(redact_text(Redactor(job.config.secrets).text(reason)), file=sys.stderr)  # noqa: T201 - it is the log
    return code


def _run(job: Job) -> int:
    from nel.executors.local import run_here
    from nel.reporting.console import print_console
    from nel.reporting.run_view import open_run

    outcome = run_here(
        job.config,
        job.directory,
        resume=job.resume,
        retry_errors=job.retry_errors,
        command=job.command,
        background=True,
    )
    if outcome.begun:
        print_console(open_run(job.directory, unfinished=True), sys.stdout)
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
