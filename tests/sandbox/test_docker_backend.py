"""What the containers of a run share: images that are built or fetched once, networks, labels."""

from __future__ import annotations

import asyncio
import json
import subprocess

import pytest
from sandboxes import IMAGE, LIMITS, mine

from nel.sandbox.base import SandboxError, SandboxSpec
from nel.sandbox.docker_backend import DockerBackend

pytestmark = pytest.mark.parametrize("backend", ["docker"], indirect=True)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


def told(kind, name):
    out = subprocess.run(["docker", kind, "inspect", name], capture_output=True, check=True).stdout
    return json.loads(out)[0]


@pytest.fixture
def folder(tmp_path, image):
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nCOPY word /word\nRUN cat /word > /built\n")
    (tmp_path / "word").write_text("one")
    return tmp_path


def test_an_image_is_built_once_however_many_ask_and_again_when_its_folder_changed(backend, folder):
    async def act():
        made = DockerBackend()
        spec = SandboxSpec(environment_dir=folder, limits=LIMITS)
        first = await asyncio.gather(*(made.image(spec) for _ in range(10)))
        sandbox = made.sandbox(spec)
        async with sandbox:
            built = await sandbox.exec("cat /built")
        (folder / "word").write_text("two")
        return set(first), built.text, await DockerBackend().image(spec), await made.prepare([spec])

    first, built, second, digests = run(act())
    (tag,) = first
    assert tag.startswith("nel-build:")
    assert built == "one"
    assert second != tag
    assert digests == {tag: told("image", tag)["Id"]}


def test_a_build_that_fails_shows_its_last_lines(backend, folder):
    (folder / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo the reason >&2; exit 3\n")

    async def act():
        await DockerBackend().image(SandboxSpec(environment_dir=folder))

    with pytest.raises(SandboxError, match=r"(?s)cannot be built:.*returned a non-zero code: 3"):
        run(act())


def test_an_image_that_is_nowhere_is_asked_for_again_by_the_next_one(backend):
    async def act():
        made = DockerBackend()
        for _ in range(2):
            with pytest.raises(SandboxError, match="no-such-image:1 is not here and cannot be pulled"):
                await made.image(SandboxSpec(image="no-such-image:1"))

    run(act())


def test_a_container_is_bounded_stripped_and_labelled(backend):
    async def act():
        made = DockerBackend()
        sandbox = made.sandbox(SandboxSpec(image=IMAGE, limits=LIMITS, readonly_root=True, env={"A": "1"}))
        async with sandbox:
            (left,) = mine(await made.leftovers())
            return told("container", left.name), left

    container, left = run(act())
    host = container["HostConfig"]
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (LIMITS.memory, LIMITS.memory, LIMITS.pids)
    assert host["NanoCpus"] == LIMITS.cpus * 1e9
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert (host["ReadonlyRootfs"], host["NetworkMode"], host["Privileged"]) == (True, "none", False)
    assert container["Config"]["Labels"]["nel.owner"] == left.owner
    assert (left.stale, left.kind) == (False, "container")


def test_the_images_own_entrypoint_is_not_run(backend, tmp_path, image):
    (tmp_path / "Dockerfile").write_text(f'FROM {image}\nENTRYPOINT ["sh", "-c", "exit 7"]\nCMD ["nothing"]\n')

    async def act():
        async with DockerBackend().sandbox(SandboxSpec(environment_dir=tmp_path, limits=LIMITS)) as sandbox:
            return await sandbox.exec("echo mine")

    assert run(act()).text == "mine\n"


def test_an_image_without_bash_is_used_with_its_sh(backend, tmp_path, image):
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nRUN rm -f /bin/bash /usr/bin/bash\n")

    async def act():
        async with DockerBackend().sandbox(SandboxSpec(environment_dir=tmp_path, limits=LIMITS)) as sandbox:
            return await sandbox.exec("echo $0 && command -v bash")

    found = run(act())
    assert found.text == "sh\n"
    assert found.return_code != 0


def test_commands_run_as_the_user_that_was_asked_for(backend):
    async def act():
        async with DockerBackend().sandbox(SandboxSpec(image=IMAGE, limits=LIMITS, user="1000")) as sandbox:
            return [await sandbox.exec("id -u; echo x > f && cat f"), await sandbox.exec("id -u", user="0")]

    own, root = run(act())
    assert (own.text, root.text) == ("1000\nx\n", "0\n")


def test_volumes_are_seen_and_read_only_unless_said(backend, tmp_path):
    from nel.sandbox.base import VolumeMount

    (tmp_path / "f").write_text("host")
    tmp_path.chmod(0o777)
    volumes = (
        VolumeMount(host_path=tmp_path, container_path="/given"),
        VolumeMount(host_path=tmp_path, container_path="/shared", readonly=False),
    )

    async def act():
        async with DockerBackend().sandbox(SandboxSpec(image=IMAGE, limits=LIMITS, volumes=volumes)) as sandbox:
            return await sandbox.exec("cat /given/f; touch /given/x; touch /shared/y && echo written")

    found = run(act())
    assert found.text == "hostwritten\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "y"]


def test_one_network_of_a_kind_serves_all_and_goes_with_the_run(backend):
    async def act():
        made = DockerBackend()
        specs = [SandboxSpec(image=IMAGE, limits=LIMITS, network=kind) for kind in ("internal", "internal", "bridge")]
        sandboxes = [made.sandbox(spec) for spec in specs]
        await asyncio.gather(*(sandbox.start() for sandbox in sandboxes))
        networks = [item for item in mine(await made.leftovers()) if item.kind == "network"]
        await asyncio.gather(*(sandbox.stop() for sandbox in sandboxes))
        await made.close()
        return len(networks), mine(await made.leftovers())

    assert run(act()) == (2, [])
