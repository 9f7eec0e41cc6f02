"""`DockerBackend`: the images and networks that the containers of a run share."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import ClassVar

from nel.core.digest import digest_tree
from nel.sandbox.base import Leftover, Sandbox, SandboxBackend, SandboxError, SandboxSpec
from nel.sandbox.base import Network as Kind
from nel.sandbox.docker import LABEL, DockerSandbox, Network
from nel.sandbox.docker_cli import DockerCli
from nel.sandbox.owner import is_gone, label

_PULL = 3600.0
_BUILD = 3600.0


class DockerBackend(SandboxBackend):
    """Containers through `docker`."""

    name: ClassVar[str] = "docker"

    def __init__(self) -> None:
        self.cli = DockerCli(self.name)
        self._images: dict[str, asyncio.Task[str]] = {}
        self._networks: dict[Kind, asyncio.Task[Network]] = {}

    async def check(self) -> str:
        """See `SandboxBackend.check`."""
        try:
            version = await self.cli.ask("version", "--format", "{{.Server.Version}}", time_limit=30)
        except SandboxError as error:
            raise SandboxError(
                f"{self.cli.program} cannot be used: {error.message}",
                hint="Install it and start its daemon; `docker info` must answer for this user.",
                permanent=True,
            ) from None
        return f"{self.cli.program} {version}"

    async def prepare(self, specs: Sequence[SandboxSpec]) -> Mapping[str, str]:
        """See `SandboxBackend.prepare`."""
        images = await asyncio.gather(*(self.image(spec) for spec in specs))
        return {image: await self._digest(image) for image in dict.fromkeys(images)}

    def sandbox(self, spec: SandboxSpec) -> Sandbox:
        """See `SandboxBackend.sandbox`."""
        if spec.image is None and spec.environment_dir is None:
            raise SandboxError(
                "a container needs an image",
                hint="Set `image` or `image_template` of the sandbox in the config.",
                permanent=True,
            )
        return DockerSandbox(spec, self)

    async def image(self, spec: SandboxSpec) -> str:
        """The image of a spec, which is on this machine from then on: pulled or built once, however many ask."""
        key = f"build {spec.environment_dir}" if spec.environment_dir else str(spec.image)
        if key not in self._images or _failed(self._images[key]):
            self._images[key] = asyncio.create_task(self._build(spec) if spec.environment_dir else self._pull(key))
        return await asyncio.shield(self._images[key])

    async def _pull(self, image: str) -> str:
        if not await self.cli.inspect("image", "inspect", image):
            try:
                await self.cli.ask("pull", "--quiet", image, time_limit=_PULL)
            except SandboxError as error:
                raise SandboxError(f"the image {image} is not here and cannot be pulled: {error.message}") from None
        return image

    async def _build(self, spec: SandboxSpec) -> str:
        folder = spec.environment_dir
        assert folder is not None
        if not (folder / "Dockerfile").is_file():
            raise SandboxError(f"{folder} has no Dockerfile", permanent=True)
        tag = f"nel-build:{(await asyncio.to_thread(digest_tree, folder)).rpartition(':')[2][:32]}"
        if not await self.cli.inspect("image", "inspect", tag):
            done = await self.cli.run(
                *("build", "--quiet", "--force-rm", "--tag", tag, str(folder)),
                time_limit=_BUILD,
                env={"DOCKER_BUILDKIT": "0"},
            )
            if not done.ok:
                tail = (done.error_text.strip() or done.text.strip()).splitlines()[-5:]
                raise SandboxError(f"the image of {folder} cannot be built:\n" + "\n".join(tail))
        return tag

    async def _digest(self, image: str) -> str:
        found = await self.cli.inspect("image", "inspect", image)
        return (found[0].get("RepoDigests") or [found[0]["Id"]])[0].rpartition("@")[2] if found else ""

    async def network(self, spec: SandboxSpec) -> Network:
        """The network of a spec: one of each kind for all containers of this backend, in which none reaches another."""
        kind = spec.network
        if kind in {"none", "host"}:
            return Network(name=kind)
        if kind not in self._networks or _failed(self._networks[kind]):
            self._networks[kind] = asyncio.create_task(self._make_network(internal=kind == "internal"))
        return await asyncio.shield(self._networks[kind])

    async def _make_network(self, *, internal: bool) -> Network:
        name = f"nel-{secrets.token_hex(6)}"
        apart = ["--opt", "com.docker.network.bridge.enable_icc=false"]
        await self.cli.ask(
            "network", "create", "--label", f"{LABEL}={label()}", *apart, *(["--internal"] if internal else []), name
        )
        told = await self.cli.inspect("network", "inspect", name)
        gateway = next((place["Gateway"] for place in told[0]["IPAM"]["Config"] if "Gateway" in place), "")
        return Network(name=name, gateway=gateway.partition("/")[0], internal=internal)

    async def close(self) -> None:
        """See `SandboxBackend.close`."""
        networks, self._networks = self._networks, {}
        for task in networks.values():
            if not _failed(task):
                await self.cli.ask("network", "rm", (await task).name)

    async def leftovers(self) -> list[Leftover]:
        """See `SandboxBackend.leftovers`."""
        found = []
        for kind, command in (("container", ("ps", "--all")), ("network", ("network", "ls"))):
            listed = await self.cli.ask(*command, "--no-trunc", "--filter", f"label={LABEL}", "--format", "{{json .}}")
            for line in listed.splitlines():
                row = json.loads(line)
                owner = _owner(row.get("Labels", ""))
                name = row.get("Names") or row["Name"]
                found.append(Leftover(backend=self.name, kind=kind, name=name, owner=owner, stale=is_gone(owner)))
        return found

    async def remove(self, leftover: Leftover) -> None:
        """See `SandboxBackend.remove`."""
        if leftover.kind == "container":
            await self.cli.ask("rm", "--force", "--volumes", leftover.name)
        else:
            await self.cli.ask("network", "rm", leftover.name)


class PodmanBackend(DockerBackend):
    """Containers through `podman`, which takes the same commands."""

    name: ClassVar[str] = "podman"


def _owner(labels: str) -> str:
    return next((part.partition("=")[2] for part in labels.split(",") if part.startswith(f"{LABEL}=")), "")


def _failed(task: asyncio.Task[object]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
