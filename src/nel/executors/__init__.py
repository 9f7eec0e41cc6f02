"""Where a run happens: an executor starts it, says how it is, and stops it.

A new executor is a class, a metadata file that it leaves in the run directory, and an entry point in the group
`nel.executors`; nothing here needs to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from nel.core.errors import UsageError
from nel.core.loading import entry_points, load_object

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

ENTRY_POINTS = "nel.executors"
BUILT_IN = {"local": "nel.executors.local:LocalExecutor"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What became of `Executor.run`."""

    run_dir: Path
    exit_code: int
    """Of the run; 0 for one that was put in the background and is going on."""
    pid: int | None = None
    """The process of a run in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """Whether the process of a run is there."""

    executor: str
    running: bool
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the executor knows: a process or job id, where, since when, and what is odd about it."""


class Executor(Protocol):
    """A way to run a configuration; made without arguments."""

    name: str
    """What `cluster.type` says."""

    def run(
        self,
        config: LoadedConfig,
        *,
        resume: bool = False,
        background: bool = False,
        retry_errors: Literal["transient", "all"] = "transient",
        command: Sequence[str] = (),
    ) -> RunOutcome:
        """Runs the configuration; `command` is recorded, without secrets. In the background: returns once it is
        under way, `ServiceError` with the end of its log where it ended before that."""
        ...

    def status(self, output_dir: Path) -> ProcessState:
        """Whether the run in a directory is going on."""
        ...

    def stop(self, output_dir: Path) -> bool:
        """Ends the run in good order; False when there was none to end."""
        ...

    def logs(self, output_dir: Path, *, follow: bool = False, tail: int | None = None) -> Iterator[str]:
        """The lines of the run's log, the last `tail` of them; with `follow` until the run ends."""
        ...

    @staticmethod
    def detect(output_dir: Path) -> bool:
        """Whether this executor started the run in a directory, told by its metadata file."""
        ...


def get_executor(type_: str) -> Executor:
    """The executor for a `cluster.type`; `UsageError` lists those that are installed."""
    known = _installed()
    if type_ not in known:
        near = get_close_matches(type_, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"There is no executor {type_!r}.", hint=f"{meant}Installed: {', '.join(sorted(known))}.")
    return _make(known[type_])


def detect_executor(output_dir: Path) -> Executor | None:
    """The executor that started the run in a directory; None where no installed one knows it."""
    for location in _installed().values():
        executor = _make(location)
        if executor.detect(output_dir):
            return executor
    return None


def _installed() -> dict[str, str]:
    return {**BUILT_IN, **entry_points(ENTRY_POINTS)}


def _make(location: str) -> Executor:
    executor: Executor = load_object(location, what="executor")()
    return executor
