"""Every error that NEL raises on purpose, and the exit code of each.

    NelError ............................ 1   something that a message can explain
    ├── UsageError ...................... 64  the user asked for something that cannot be done
    │   ├── ConfigError ................. 64  a config file, key or value (knows file and line)
    │   ├── DataError ................... 64  a benchmark's data: a file, a row, a column
    │   ├── LoadError ................... 64  `module:attr`, `file.py:name` or a plug-in that cannot be loaded
    │   ├── MissingDependencyError ...... 64  a package that must be installed first (knows the command)
    │   └── RunDirError ................. 64  a run directory that is locked, foreign, read-only or newer
    ├── RecordError ..................... 1   a stored record that cannot be read (knows file and line)
    ├── LogWriteError ................... 1   a log that cannot be written: disk full, I/O error
    ├── ServiceError .................... 1   a service that did not start, answer or stop
    └── AttemptError .................... 1   one attempt was not measured (never raised out of a run)

A run that ends above its error limit is no exception: it returns `ExitCode.DEGRADED`.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What `nel` tells the shell."""

    OK = 0
    FAILED = 1
    INCONCLUSIVE = 2
    DEGRADED = 3
    USAGE = 64
    INTERNAL = 70
    INTERRUPTED = 130


class NelError(Exception):
    """An error with a message for a person; `hint` says what to do next."""

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(NelError):
    """The user asked for something that cannot be done."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """A config value that cannot be used; the message starts with `file:line:` where they are known."""

    def __init__(
        self,
        message: str,
        *,
        file: Path | str | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        place = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        super().__init__(f"{place}{f'{key}: ' if key else ''}{message}", hint=hint)
        self.file = str(file) if file else None
        self.line = line
        self.key = key


class DataError(UsageError):
    """A benchmark's data cannot be used: the file, the row or the column that is wrong is named."""


class LoadError(UsageError):
    """An import path, a file or a plug-in that cannot be loaded."""


class MissingDependencyError(UsageError):
    """A package that must be installed first; the message ends with the command that installs it."""

    def __init__(self, what: str, *, needs: str, command: str) -> None:
        super().__init__(f"{what} needs {needs}, which is not installed.", hint=f"Install it with: {command}")
        self.command = command


class RunDirError(UsageError):
    """A run directory that cannot be used: locked, foreign, read-only, or written by a newer version."""


class RecordError(NelError):
    """A stored record that cannot be read: the file, the line and the reason are named."""


class LogWriteError(NelError):
    """A log could not be written (disk full, I/O error): names the file, the reason and what is safe."""


class ServiceError(NelError):
    """A service that did not start, answer or stop."""


class AttemptError(NelError):
    """One attempt that was not measured.

    `category` is one of `nel.observability.failures.CATEGORIES`; `permanent` says that asking again cannot help
    (a 4xx that will not get better), so neither the client nor a resume repeats it.
    """

    def __init__(
        self, message: str, *, category: str, permanent: bool = False, status: int | None = None, tries: int = 1
    ) -> None:
        super().__init__(message)
        self.category = category
        self.permanent = permanent
        self.status = status
        self.tries = tries
