"""`BwrapSandbox`: namespaces of its own through bubblewrap; no daemon, no image.

Every command gets namespaces of its own over one folder that is the sandbox's root. Of this machine it sees `/usr`, the
loader and a few files of `/etc`, all read-only, and nothing else. It runs as a user id that nobody else has when the
caller is root, else as the caller's. Limits hold by a cgroup where one can be made, else by the process's own limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, ClassVar

from nel.sandbox.base import KEPT_OUTPUT, ExecResult, OutsideEndpoint, SandboxError, SandboxSpec, VolumeMount
from nel.sandbox.cgroups import Cgroup
from nel.sandbox.folder import SandboxFolder
from nel.sandbox.process import Sink, end_session, follow
from nel.sandbox.tarred import TarredSandbox

PROGRAM = "bwrap"
_TRANSFER = 600.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl/certs", "localtime", "mime.types", "services")
"""What programs of `/usr` need of `/etc`, none of it secret."""
_OWNERS = range(700_000_000, 2_000_000_000)
"""User ids for sandboxes of root: far from those that systems and containers give out."""
_USER = 1000
"""The id inside, unless the spec names one."""

_ENTER = """\
for entrance in "$@"; do
  shift
  [ "$entrance" = -- ] && break
  echo $$ > "$entrance" || exit 126
done
exec "$@"
"""


class BwrapSandbox(TarredSandbox):
    """Isolation by bubblewrap. `spec.image` is the path of an unpacked root, of which a copy is used."""

    backend: ClassVar[str] = "bwrap"

    def __init__(self, spec: SandboxSpec) -> None:
        super().__init__(spec)
        if spec.network not in {"none", "host"}:
            raise SandboxError(f"bwrap has no network of kind {spec.network!r}: only `none` and `host`", permanent=True)
        if spec.environment_dir is not None:
            raise SandboxError("bwrap builds no images; `image` may name an unpacked root", permanent=True)
        self._program = shutil.which(PROGRAM)
        self._folder: SandboxFolder | None = None
        self._cgroup: Cgroup | None = None
        self._shell = "sh"
        self._volumes: list[tuple[Path, VolumeMount]] = []

    async def start(self, outside_endpoints: Sequence[OutsideEndpoint] = ()) -> None:
        """See `Sandbox.start`."""
        if self._program is None:
            raise SandboxError(
                "bubblewrap is not installed", hint="Debian, Ubuntu: apt-get install bubblewrap", permanent=True
            )
        if outside_endpoints and self.spec.network != "host":
            raise SandboxError("bwrap has no network, so no endpoint can be reached from inside", permanent=True)
        try:
            await _in_thread(self._make)
            for local, remote in self.spec.files.items():
                await self.upload(Path(local), remote)
            done = await self.exec(["true"], time_limit=30)
            if not done.ok:
                raise SandboxError(f"bwrap does not work on this machine: {done.error_text.strip()}")
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    def _make(self) -> None:
        limits = self.spec.limits
        owner = os.getuid() or secrets.choice(_OWNERS)
        self._folder = folder = SandboxFolder.make(owner=owner, disk=limits.disk)
        with contextlib.suppress(SandboxError):
            self._cgroup = Cgroup.make(folder.name, limits)
        if self._cgroup is None and os.getuid() == 0 and shutil.which("prlimit") is None:
            raise SandboxError("neither a cgroup nor prlimit is there to hold a sandbox's limits", permanent=True)
        if self.spec.image is None:
            self._link_host(folder.root)
        else:
            self._copy_root(Path(self.spec.image), folder.root)
        for inner in ("proc", "dev", "tmp", self.spec.workdir.lstrip("/")):
            (folder.root / inner).mkdir(parents=True, exist_ok=True)
        for volume in self.spec.volumes:
            place = folder.root / volume.container_path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if volume.host_path.is_dir():
                place.mkdir(exist_ok=True)
            else:
                place.touch()
            self._volumes.append((folder.reach(volume.host_path), volume))
        if os.getuid() == 0:
            _give(folder.root, owner)
        self._shell = "bash" if any((folder.root / place).exists() for place in _bash(folder.root)) else "sh"

    @staticmethod
    def _link_host(root: Path) -> None:
        (root / "etc" / "ssl").mkdir(parents=True)
        (root / "usr").mkdir()
        for name in _MERGED:
            host = Path("/", name)
            if host.is_symlink():
                (root / name).symlink_to(f"usr/{name}")
            elif host.is_dir():
                (root / name).mkdir()
        for name in _ETC:
            host = Path("/etc", name)
            if host.is_dir():
                (root / "etc" / name).mkdir()
            elif host.exists():
                (root / "etc" / name).touch()
        (root / "etc" / "passwd").write_text(
            f"root:x:0:0:root:/root:/bin/sh\nuser:x:{_USER}:{_USER}:user:/workspace:/bin/sh\n"
        )
        (root / "etc" / "group").write_text(f"root:x:0:\nuser:x:{_USER}:\n")
        (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")

    @staticmethod
    def _copy_root(image: Path, root: Path) -> None:
        if not (image / "bin").exists() and not (image / "usr" / "bin").exists():
            raise SandboxError(f"{image} is no unpacked root: it has neither /bin nor /usr/bin", permanent=True)
        shutil.copytree(image, root, symlinks=True, dirs_exist_ok=True)

    async def stop(self) -> None:
        """See `Sandbox.stop`."""
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        cgroup, self._cgroup = self._cgroup, None
        folder, self._folder = self._folder, None
        try:
            if cgroup is not None:
                cgroup.remove()
        finally:
            if folder is not None:
                folder.remove()

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
        """See `Sandbox.exec`. What a command leaves in the background ends with it."""
        inner = [self._shell, "-c", command] if isinstance(command, str) else list(command)
        return await self._run(
            inner, time_limit=time_limit, cwd=cwd or "", env=env or {}, user=user, stdin=stdin, keep=keep
        )

    async def pipe(
        self, command: Sequence[str], *, stdin: bytes | BinaryIO = b"", stdout: Sink | None = None
    ) -> ExecResult:
        """See `TarredSandbox.pipe`."""
        return await self._run(list(command), time_limit=_TRANSFER, cwd="/", env={}, stdin=stdin, stdout=stdout)

    async def _run(
        self,
        inner: list[str],
        *,
        time_limit: float,
        cwd: str,
        env: Mapping[str, str],
        user: str | None = None,
        stdin: bytes | BinaryIO = b"",
        stdout: Sink | None = None,
        keep: int = KEPT_OUTPUT,
    ) -> ExecResult:
        folder, cgroup = self._folder, self._cgroup
        if folder is None:
            raise SandboxError("the sandbox is not running")
        kills = cgroup.memory_kills() if cgroup else 0
        with tempfile.TemporaryFile() as said, _arguments(self._options(folder, cwd, env, user)) as options:
            outer = [*self._outside(folder.owner), str(self._program), "--args", str(options)]
            found = await follow(
                [*outer, "--json-status-fd", str(said.fileno()), "--", *inner],
                end=end_session,
                time_limit=time_limit,
                stdin=stdin,
                stdout=stdout,
                env={"PATH": _PATH},
                pass_fds=[options, said.fileno()],
                keep=keep,
            )
            ran = b"exit-code" in os.pread(said.fileno(), 4096, 0)
        out_of_memory = cgroup is not None and cgroup.memory_kills() > kills
        if not ran and not found.timed_out and not out_of_memory:
            raise SandboxError(f"bwrap could not run a command: {found.error_text.strip() or found.return_code}")
        return replace(found, out_of_memory=out_of_memory)

    def _outside(self, owner: int) -> list[str]:
        """What stands before bwrap: it enters the cgroup, becomes the sandbox's user and takes on its limits."""
        limits, before = self.spec.limits, list[str]()
        if self._cgroup is not None:
            before += ["/bin/sh", "-c", _ENTER, "sh", *self._cgroup.entrances(), "--"]
        if os.getuid() == 0:
            before += ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups", "--"]
        before += ["prlimit", "--core=0", f"--fsize={limits.disk}"]
        if self._cgroup is None:
            before += [f"--as={limits.memory}", f"--nproc={limits.pids}"]
        return before

    def _options(self, folder: SandboxFolder, cwd: str, env: Mapping[str, str], user: str | None) -> Iterator[str]:
        spec = self.spec
        yield from ("--unshare-all", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv")
        if spec.network == "host":
            yield "--share-net"
        yield from ("--cap-drop", "ALL", "--uid", _id(user or spec.user), "--gid", _id(user or spec.user))
        root = str(folder.root)
        yield from ("--ro-bind" if spec.readonly_root else "--bind", root, "/")
        if spec.readonly_root:
            yield from ("--bind", f"{root}/{spec.workdir.lstrip('/')}", spec.workdir)
        if spec.image is None:
            yield from ("--ro-bind", "/usr", "/usr")
            for name in _MERGED:
                if not (host := Path("/", name)).is_symlink() and host.is_dir():
                    yield from ("--ro-bind", str(host), str(host))
            for name in _ETC:
                if (host := Path("/etc", name)).exists():
                    yield from ("--ro-bind", str(host), str(host))
        yield from ("--proc", "/proc", "--dev", "/dev", "--bind", str(folder.tmp), "/tmp")  # noqa: S108 - its own
        for place, volume in self._volumes:
            yield from ("--ro-bind" if volume.readonly else "--bind", str(place), volume.container_path)
        for name, value in {"PATH": _PATH, "HOME": spec.workdir, "LANG": "C.UTF-8", **spec.env, **env}.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", str(PurePosixPath(spec.workdir, cwd)))

    async def reset(self) -> None:
        """See `Sandbox.reset`. Processes have ended with their commands."""
        if not self.spec.readonly_root:
            raise SandboxError("only a sandbox with a read-only root can be used again", permanent=True)
        if self._folder is None:
            raise SandboxError("the sandbox is not running")
        await _in_thread(self._empty)

    def _empty(self) -> None:
        folder, cgroup = self._folder, self._cgroup
        assert folder is not None
        if cgroup is not None:
            cgroup.end()
        for place in (folder.tmp, folder.root / self.spec.workdir.lstrip("/")):
            for path in place.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    async def is_running(self) -> bool:
        """See `Sandbox.is_running`."""
        return self._folder is not None and self._folder.root.is_dir()

    def resolve_outside_endpoint(self, url: str) -> str:
        """See `Sandbox.resolve_outside_endpoint`."""
        if self.spec.network != "host":
            raise SandboxError("bwrap has no network, so no endpoint can be reached from inside", permanent=True)
        return url


async def _in_thread(work: Callable[[], None]) -> None:
    """Does the work in a thread, and to its end also when the caller is cancelled: a thread cannot be stopped."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def _id(user: str | None) -> str:
    if user is None:
        return str(_USER)
    if user == "root":
        return "0"
    if not user.isdigit():
        raise SandboxError(f"bwrap knows users by number, or `root`, not {user!r}", permanent=True)
    return user


def _bash(root: Path) -> Iterator[Path]:
    for place in ("bin/bash", "usr/bin/bash"):
        yield root / place
        if (root / "usr").is_dir() and not any((root / "usr").iterdir()):  # the host's is mounted there
            yield Path("/", place)


def _give(root: Path, owner: int) -> None:
    os.chown(root, owner, owner)
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            os.chown(Path(folder, name), owner, owner, follow_symlinks=False)


@contextlib.contextmanager
def _arguments(options: Iterator[str]) -> Iterator[int]:
    """A file without a name that holds the options: what stands in it is in no process list."""
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(option.encode() + b"\0" for option in options))
        file.seek(0)
        yield file.fileno()
