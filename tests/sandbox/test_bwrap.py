"""What is bubblewrap's own: an unpacked root, networks that it does not have, limits."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from sandboxes import LIMITS, SCRIPTS

from nel.sandbox.backends import best_backend, get_backend
from nel.sandbox.base import OutsideEndpoint, SandboxBackend, SandboxError, SandboxSpec, VolumeMount
from nel.sandbox.bwrap import BwrapSandbox

pytestmark = pytest.mark.parametrize("backend", ["bwrap"], indirect=True)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 120))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    subprocess.run([SCRIPTS / "base-image", "--root", folder], check=True)
    return folder


def test_an_unpacked_root_is_used_as_a_copy(opened, root):
    async def act():
        async with opened(image=str(root)) as sandbox:
            return await sandbox.exec(
                "rm -rf /usr/lib/python3*; echo mine > /etc/passwd; python3 -c 1 || cat /etc/passwd"
            )

    found = run(act())
    assert found.text == "mine\n"
    assert (root / "etc/passwd").read_text().startswith("root:")
    assert list((root / "usr/lib").glob("python3*"))


def test_a_folder_that_is_no_root_is_refused(opened, tmp_path):
    async def act():
        async with opened(image=str(tmp_path)):
            pass

    with pytest.raises(SandboxError, match="no unpacked root"):
        run(act())


@pytest.mark.parametrize("network", ["bridge", "internal"])
def test_a_network_that_bubblewrap_does_not_have_is_refused(backend, network):
    with pytest.raises(SandboxError, match=f"no network of kind '{network}'"):
        BwrapSandbox(SandboxSpec(network=network))


def test_an_endpoint_cannot_be_asked_for_without_a_network(backend):
    async def act():
        await BwrapSandbox(SandboxSpec()).start([OutsideEndpoint(url="http://localhost:1", env_var="X")])

    with pytest.raises(SandboxError, match="no endpoint can be reached"):
        run(act())


def test_volumes_are_seen_and_read_only_unless_said(opened, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "f").write_text("host")

    async def act():
        async with opened(volumes=(VolumeMount(host_path=tmp_path / "given", container_path="/given"),)) as sandbox:
            return await sandbox.exec("cat /given/f; touch /given/x")

    tmp_path.chmod(0o755)
    found = run(act())
    assert (found.text, found.return_code) == ("host", 1)
    assert not (tmp_path / "given" / "x").exists()


def test_of_this_machine_only_what_programs_need_is_there(opened):
    async def act():
        async with opened() as sandbox:
            return await sandbox.exec("ls /; echo; ls /etc")

    top, etc = run(act()).text.split("\n\n")
    assert set(top.split()) <= {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "proc",
        "sbin",
        "tmp",
        "usr",
        "workspace",
    }
    assert "shadow" not in etc.split()


def test_the_best_backend_is_one_with_isolation(backend):
    assert run(best_backend()).name == "bwrap"


def test_a_backend_of_ones_own_is_found_by_its_path(backend, tmp_path, monkeypatch):
    (tmp_path / "boxes.py").write_text(
        "from nel.sandbox.host_backends import BwrapBackend\n\nclass Boxes(BwrapBackend):\n    name = 'boxes'\n"
    )
    found = get_backend(f"{tmp_path / 'boxes.py'}:Boxes")
    assert isinstance(found, SandboxBackend)
    assert found.name == "boxes"


def test_a_backend_that_is_not_there_is_named_with_the_nearest(backend):
    from nel.core.errors import UsageError

    with pytest.raises(UsageError, match=r"(?s)no sandbox backend 'dokcer'.*Did you mean 'docker'"):
        get_backend("dokcer")


def test_where_the_folder_cannot_be_made_the_reason_is_told(backend, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEL_SANDBOX_DIR", str(tmp_path / "file" / "below"))

    async def act():
        await BwrapSandbox(SandboxSpec(limits=LIMITS)).start()

    with pytest.raises(SandboxError, match="no folder for a sandbox can be made"):
        run(act())
    assert Path("/var/tmp").is_dir()
