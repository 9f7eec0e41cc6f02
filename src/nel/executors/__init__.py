"""Where a run happens: an executor starts it, says how it is, and stops it.

A new executor is a class, a metadata file that it leaves in the run directory, and an entry point in the group
`nel.executors`; nothing here needs to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from nel.core.errors import UsageError
from nel.core.loading import entry_points, load_object

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig
    from nel.orchestration.plan import Plan

ENTRY_POINTS = "nel.executors"
BUILT_IN = {"local": "nel.executors.local:LocalExecutor"}
LATER = ("docker", "slurm")
"""Types that a config may name but nothing runs yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What became of `Executor.run`."""

    run_dir: Path
    exit_code: int
    """Of the run, or of its planning; 0 for a run that was put in the background and is going on."""
    begun: bool = True
    """False for a run that was stopped while it planned: its directory is as it was."""
    pid: int | None = None
    """The process of a run in the background."""
    plan: Plan | None = None
    """Of a dry run: what would have been done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """Whether the process of a run is there. How far the run has come stands in its directory."""

    executor: str
    running: bool
    """Known to be going on."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the executor knows: a process or job id, host, since when. `stale` says why a run that did not end is not
    going on, `elsewhere` why that cannot be told from here."""


class Executor(Protocol):
    """A way to run a configuration; made without arguments."""

    name: str
    """What `cluster.type` says."""

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
        """Runs the configuration, or with `dry_run` plans it and writes nothing.

        `command` is recorded, without secrets. With `background` it returns once the run is under way; `ServiceError`
        says how it ended before that. With `submit` the run is handed to a scheduler. `UsageError` for an option that
        means nothing to the executor.
        """
        ...

    def status(self, output_dir: Path) -> ProcessState:
        """Whether the run in a directory is going on."""
        ...

    def stop(self, output_dir: Path) -> bool:
        """Ends the run in good order; False when there was none to end, an error when it cannot be ended from here."""
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
    from difflib import get_close_matches

    known = _installed()
    if type_ in known:
        return _make(known[type_])
    listed = f"Installed: {', '.join(sorted(known))}."
    if type_ in LATER:
        raise UsageError(f"The executor {type_!r} is not available yet.", hint=listed)
    near = get_close_matches(type_, known, n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    raise UsageError(f"There is no executor {type_!r}.", hint=meant + listed)


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
