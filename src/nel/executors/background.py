"""The process of a run in the background: reads from its standard input what to run, and runs it."""

from __future__ import annotations

import pickle
import sys

from nel.core.errors import NelError


def main() -> int:
    """The exit code of the run."""
    from nel.executors.local import LocalExecutor

    # The bytes come from the process that started this one, through a pipe that only the two hold.
    config, directory, resume, retry_errors, command = pickle.load(sys.stdin.buffer)  # noqa: S301
    sys.stdin.close()
    try:
        outcome = LocalExecutor().run_in(directory, config, resume=resume, retry_errors=retry_errors, command=command)
    except NelError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - standard error is the log
        return int(error.exit_code)
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
