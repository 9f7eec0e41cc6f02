"""`Sandbox`: a place where commands of others run, apart from this machine.

A backend subclasses `Sandbox`; whoever uses one knows nothing of backends. What goes wrong in the sandbox's own works
(daemon gone, disk full, image missing) raises `SandboxError`; what a command does in it, however bad, is an
`ExecResult`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Literal, Self

from nel.core.errors import AttemptError

Network = Literal["none", "internal", "bridge", "host"]
"""`none`: nothing but loopback. `internal`: only the endpoints that were declared. `bridge`: the outside world.
`host`: no network isolation."""

KEPT_OUTPUT = 1 << 20
"""Bytes that are kept of each of a command's output streams unless a caller asks for another number."""


class SandboxError(AttemptError):
    """The sandbox itself failed: nothing can be said of what ran in it."""

    def __init__(self, message: str, *, hint: str | None = None, permanent: bool = False) -> None:
        super().__init__(message, category="sandbox_error", permanent=permanent)
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a sandbox may use."""

    memory: int = 4 << 30
    """Bytes."""
    cpus: float = 2.0
    pids: int = 512
    """Processes and threads at once."""
    disk: int = 4 << 30
    """Bytes that can be written, where the backend can bound them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeMount:
    """A folder of this machine that is seen inside."""

    host_path: Path
    container_path: str
    readonly: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideEndpoint:
    """A server outside that what runs inside may reach; its address as seen from inside goes into `env_var`."""

    url: str
    env_var: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is made from; equal specs make equal sandboxes, and can be keys."""

    image: str | None = None
    """An image (docker, podman) or the path of an unpacked root (bwrap); None for the backend's own."""
    environment_dir: Path | None = None
    """A folder with a Dockerfile or a compose file that the image is built from, instead of `image`."""
    workdir: str = "/workspace"
    """Where commands start; made where the image lacks it, and writable."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that are uploaded at the start: from a path here to one inside."""
    volumes: tuple[VolumeMount, ...] = ()
    limits: Limits = Limits()
    network: Network = "none"
    readonly_root: bool = False
    """Only the work directory and `/tmp` can be written, both on memory file systems of `limits.disk`."""
    user: str | None = None
    """User name or id that commands run as; None for the image's own."""

    def __hash__(self) -> int:
        return hash((self.image, self.environment_dir, self.workdir, self.network, self.limits, frozenset(self.env)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """How a command ended."""

    return_code: int
    """As a shell tells it: 128 + number for a signal; 124 where its time was up."""
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    """Its time was up; every process that it had started was ended, and what it had printed is kept."""
    truncated: bool = False
    """It printed more than was kept; of each stream the first and the last half of what is kept are there."""
    out_of_memory: bool = False
    """A process of it was ended because memory was full, where the backend can tell."""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.return_code == 0 and not self.timed_out

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are shown as escapes."""
        return self.stdout.decode(errors="backslashreplace")

    @property
    def error_text(self) -> str:
        """Standard error as text; bytes that are not UTF-8 are shown as escapes."""
        return self.stderr.decode(errors="backslashreplace")


class Sandbox(ABC):
    """One isolated place, used by one problem; an async context manager that starts and stops it.

    Methods may be called from several tasks of one event loop. Cancelling any of them leaves nothing running.
    """

    backend: ClassVar[str]
    """Its name in config, for the records."""

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec

    @abstractmethod
    async def start(self, outside_endpoints: Sequence[OutsideEndpoint] = ()) -> None:
        """Makes it ready for `exec`; `SandboxError` says why it cannot be, and then nothing is left of it."""

    @abstractmethod
    async def stop(self) -> None:
        """Ends every process in it and removes all that it was; harmless when it was stopped or never started."""

    @abstractmethod
    async def exec(
        self,
        command: str | Sequence[str],
        *,
        time_limit: float = 180.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes = b"",
        keep: int = KEPT_OUTPUT,
    ) -> ExecResult:
        """Runs a command and waits for its end, at most `time_limit` seconds.

        A text goes to a shell (bash where there is one, else sh); a list is run as it is. `cwd` is relative to the
        spec's work directory. Values of `env` never stand in a process list. Processes that a finished command left in
        the background go on until the sandbox stops. `SandboxError` where the command could not be run or followed.
        """

    @abstractmethod
    async def upload(self, local: Path, remote: str) -> None:
        """Copies a file or a tree in; folders on the way are made. `remote` names the copy itself, not its folder.

        Links that lead out of the tree are refused.
        """

    @abstractmethod
    async def download(self, remote: str, local: Path, *, max_bytes: int = 1 << 30) -> None:
        """Copies a file or a tree out; `local` names the copy itself.

        What comes out is not trusted: names that would leave `local` (absolute, `..`, through a link), device files
        and more than `max_bytes` in all raise `SandboxError`, and nothing is written outside `local`.
        """

    async def reset(self) -> None:
        """Makes it as it was after `start`: ends every process in it and removes what was written.

        Only with a read-only root, where it is known what can have been written. `SandboxError` where that cannot be
        done; it must then be stopped.
        """
        raise SandboxError(f"a sandbox of {self.backend} cannot be used again", permanent=True)

    @abstractmethod
    async def is_running(self) -> bool:
        """Whether commands can be run in it."""

    @abstractmethod
    def resolve_outside_endpoint(self, url: str) -> str:
        """The address under which what runs inside reaches an endpoint that `start` was told of."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that a sandbox left on this machine."""

    backend: str
    kind: str
    """`container`, `network`, `folder` or `cgroup`."""
    name: str
    owner: str
    """Who made it, as `label()` says it."""
    stale: bool
    """Its owner has ended, so that nobody will remove it."""


class SandboxBackend(ABC):
    """One way of making sandboxes, with what they share: a daemon, networks, images."""

    name: ClassVar[str]

    @abstractmethod
    async def check(self) -> str:
        """What it runs on, in words (program and version); `SandboxError` says what is missing and what to do."""

    @abstractmethod
    async def prepare(self, specs: Sequence[SandboxSpec]) -> Mapping[str, str]:
        """Fetches and builds the images that the specs name, each once; from an image to its digest here."""

    @abstractmethod
    def sandbox(self, spec: SandboxSpec) -> Sandbox:
        """A sandbox, not started; `SandboxError` where the spec asks for what this backend does not have."""

    @abstractmethod
    async def close(self) -> None:
        """Removes what its sandboxes shared. They are stopped before."""

    @abstractmethod
    async def leftovers(self) -> list[Leftover]:
        """What stands on this machine, of this process and of others."""

    @abstractmethod
    async def remove(self, leftover: Leftover) -> None:
        """Removes it, with every process in it."""
