"""`DockerSandbox`: a container through the client of Docker or of podman."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, ClassVar, Protocol
from urllib.parse import urlsplit, urlunsplit

from nel.sandbox.base import KEPT_OUTPUT, ExecResult, OutsideEndpoint, SandboxError, SandboxSpec
from nel.sandbox.docker_cli import DockerCli, options
from nel.sandbox.owner import label
from nel.sandbox.process import Sink
from nel.sandbox.relay import Relay
from nel.sandbox.tarred import TarredSandbox

LABEL = "nel.owner"
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""What installing packages needs; everything else is dropped."""

_HOLD = "trap 'exit 0' TERM; while :; do sleep 86400 & wait $!; done"
"""Process 1. The kernel spares it when everything else is ended, and it starts its `sleep` again."""
_MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Where a container of cgroups version 2, or 1, counts them."""
_SPARE = 64
"""Processes beyond the limit that the one may have that ends the others."""
_TRANSFER = 600.0
_START = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a container is attached to, and where this machine is in it."""

    name: str
    gateway: str = ""
    internal: bool = False
    """Whether nothing outside can be reached from it."""


class Surroundings(Protocol):
    """What the containers of a run share."""

    @property
    def cli(self) -> DockerCli:
        """The client."""
        ...

    async def image(self, spec: SandboxSpec) -> str:
        """The image of a spec, which is on this machine from then on."""
        ...

    async def network(self, spec: SandboxSpec) -> Network:
        """The network of a spec, which is there from then on."""
        ...


class DockerSandbox(TarredSandbox):
    """A container of its own: limits, few capabilities, no new privileges, and no network unless the spec asks."""

    backend: ClassVar[str] = "docker"

    def __init__(self, spec: SandboxSpec, surroundings: Surroundings) -> None:
        super().__init__(spec)
        self.name = f"nel-{secrets.token_hex(6)}"
        self._around = surroundings
        self._cli = surroundings.cli
        self._started = False
        self._shell = "sh"
        self._memory_kills = 0
        self._relays: list[Relay] = []
        self._resolved: dict[str, str] = {}
        self._endpoint_env: dict[str, str] = {}

    async def start(self, outside_endpoints: Sequence[OutsideEndpoint] = ()) -> None:
        """See `Sandbox.start`."""
        try:
            image, network = await self._around.image(self.spec), await self._around.network(self.spec)
            for endpoint in outside_endpoints:
                await self._open(endpoint, network)
            self._started = True
            env = {**self.spec.env, **self._endpoint_env}
            await self._cli.ask(*self._run(image, network, env), time_limit=_START, env=env)
            found = await self._inside(["sh", "-c", "command -v bash || true"], time_limit=60)
            if found.return_code:
                raise SandboxError(f"{image}: no command can be run in it: {found.error_text.strip()}")
            self._shell = "bash" if found.stdout.strip() else "sh"
            if self.spec.user is not None:
                await self._inside(["chown", self.spec.user, self.spec.workdir], time_limit=60)
            for local, remote in self.spec.files.items():
                await self.upload(Path(local), remote)
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    def _run(self, image: str, network: Network, env: Mapping[str, str]) -> list[str]:
        spec, limits = self.spec, self.spec.limits
        command = ["run", "--detach", "--name", self.name, "--label", f"{LABEL}={label()}", "--pull", "never"]
        command += ["--memory", str(limits.memory), "--memory-swap", str(limits.memory)]
        command += ["--cpus", f"{limits.cpus:g}", "--pids-limit", str(limits.pids)]
        command += ["--cap-drop", "ALL", *options("--cap-add", CAPABILITIES)]
        command += ["--security-opt", "no-new-privileges", "--network", network.name]
        command += ["--workdir", spec.workdir, "--user", "0", "--entrypoint", "sh", "--log-driver", "none"]
        if spec.readonly_root:
            command += ["--read-only"]
            for place in dict.fromkeys(("/tmp", spec.workdir)):  # noqa: S108 - inside
                command += ["--tmpfs", f"{place}:rw,exec,mode=1777,size={limits.disk}"]
        for volume in spec.volumes:
            mode = ",readonly" if volume.readonly else ""
            command += ["--mount", f"type=bind,source={volume.host_path},target={volume.container_path}{mode}"]
        # Only names: the client takes the values from its own environment, so they are in no process list.
        return [*command, *options("--env", list(env)), image, "-c", _HOLD]

    async def _open(self, endpoint: OutsideEndpoint, network: Network) -> None:
        """Makes an endpoint reachable from the container's network."""
        url = urlsplit(endpoint.url)
        if network.name == "none":
            raise SandboxError(
                f"{endpoint.url} cannot be reached from inside: the sandbox has no network", permanent=True
            )
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        local = host in {"localhost", "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 - compared, not bound
        if network.name == "host" or (not local and not network.internal):
            address = endpoint.url
        else:
            relay = Relay(host, port)
            self._relays.append(relay)
            try:
                await relay.start(network.gateway)
            except OSError as error:
                raise SandboxError(f"{endpoint.url} cannot be passed on to {network.name}: {error}") from error
            user, at, _ = url.netloc.rpartition("@")
            address = urlunsplit(url._replace(netloc=f"{user}{at}{network.gateway}:{relay.port}"))
        self._resolved[endpoint.url] = address
        self._endpoint_env[endpoint.env_var] = address

    async def stop(self) -> None:
        """See `Sandbox.stop`."""
        started, self._started = self._started, False
        for relay in self._relays:
            await relay.close()
        self._relays.clear()
        if started:
            done = await self._cli.run("rm", "--force", "--volumes", self.name)
            if not done.ok and b"No such container" not in done.stderr and b"no container" not in done.stderr:
                raise SandboxError(f"the container {self.name} could not be removed: {done.error_text.strip()}")

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
        """See `Sandbox.exec`. When its time is up, every process in the container is ended."""
        inner = [self._shell, "-c", command] if isinstance(command, str) else list(command)
        return await self._inside(
            inner, time_limit=time_limit, cwd=cwd, env=env or {}, user=user or self.spec.user, stdin=stdin, keep=keep
        )

    async def pipe(
        self, command: Sequence[str], *, stdin: bytes | BinaryIO = b"", stdout: Sink | None = None
    ) -> ExecResult:
        """See `TarredSandbox.pipe`."""
        return await self._inside(list(command), time_limit=_TRANSFER, cwd="/", stdin=stdin, stdout=stdout)

    async def _inside(
        self,
        inner: Sequence[str],
        *,
        time_limit: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes | BinaryIO = b"",
        stdout: Sink | None = None,
        keep: int = KEPT_OUTPUT,
    ) -> ExecResult:
        if not self._started:
            raise SandboxError("the sandbox is not running")
        env = env or {}
        command = ["exec", "--user", user or "0", "--workdir", str(PurePosixPath(self.spec.workdir, cwd or ""))]
        if stdin != b"":
            command.append("--interactive")
        command += [*options("--env", list(env)), self.name, *inner]
        try:
            found = await self._cli.run(*command, time_limit=time_limit, stdin=stdin, stdout=stdout, env=env, keep=keep)
        except asyncio.CancelledError:
            if self._started:
                await asyncio.shield(self._end_all())
            raise
        if found.timed_out:
            await self._end_all()
            return found
        if found.return_code == 137 and not await self.is_running():
            raise SandboxError(f"{self.name}: the container ended while a command ran in it")
        if found.return_code == 137 or b"Killed" in found.stderr:
            return replace(found, out_of_memory=await self._was_out_of_memory())
        if found.return_code in {1, 125, 126, 127} and not await self._can_be_the_commands_own(found):
            raise SandboxError(f"{self.name}: {found.error_text.strip()}")
        return found

    async def _can_be_the_commands_own(self, found: ExecResult) -> bool:
        """Whether an exit code that the client too may give is the command's: only then the container goes on."""
        daemons = (
            b"Error response from daemon",
            b"Cannot connect to the Docker daemon",
            b"Error: ",
            b"error during connect",
        )
        return not found.stderr.startswith(daemons) or await self.is_running()

    async def _was_out_of_memory(self) -> bool:
        """Whether more processes were ended because memory was full than when it was last asked."""
        told = await self._cli.run("exec", "--user", "0", self.name, "cat", *_MEMORY_EVENTS)
        kills = sum(int(line.split()[1]) for line in told.text.splitlines() if line.startswith("oom_kill "))
        before, self._memory_kills = self._memory_kills, max(kills, self._memory_kills)
        return kills > before

    async def _end_all(self) -> None:
        """Ends every process but the first, even where there are as many as there may be."""
        limit = self.spec.limits.pids
        await self._cli.run("update", "--pids-limit", str(limit + _SPARE), self.name)
        done = await self._cli.run("exec", "--user", "0", self.name, "sh", "-c", "kill -9 -1", time_limit=60)
        await self._cli.run("update", "--pids-limit", str(limit), self.name)
        if done.return_code not in {0, 1, 137}:
            raise SandboxError(f"what ran in {self.name} could not be ended: {done.error_text.strip()}")

    async def reset(self) -> None:
        """See `Sandbox.reset`."""
        if not self.spec.readonly_root:
            raise SandboxError("only a sandbox with a read-only root can be used again", permanent=True)
        script = 'kill -9 -1; for place; do find "$place" -mindepth 1 -maxdepth 1 -exec rm -rf {} + || exit 1; done'
        empty = ["sh", "-c", script, "sh", "/tmp", self.spec.workdir]  # noqa: S108 - inside
        done = await self._inside(empty, time_limit=60, cwd="/")
        if not done.ok:  # as where it may start no further process
            await self._end_all()
            done = await self._inside(empty, time_limit=60, cwd="/")
        if not done.ok:
            raise SandboxError(f"{self.name} cannot be emptied: {done.error_text.strip()}")

    async def is_running(self) -> bool:
        """See `Sandbox.is_running`."""
        if not self._started:
            return False
        with contextlib.suppress(SandboxError):
            return (await self._cli.ask("inspect", "--format", "{{.State.Running}}", self.name)) == "true"
        return False

    def resolve_outside_endpoint(self, url: str) -> str:
        """See `Sandbox.resolve_outside_endpoint`."""
        try:
            return self._resolved[url]
        except KeyError:
            raise SandboxError(f"{url} was not named when the sandbox was started", permanent=True) from None
