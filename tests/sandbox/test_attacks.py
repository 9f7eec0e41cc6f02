"""Attacks from inside: each ends as a fair verdict on the command or as an error of the sandbox, and hurts nobody.

For `local` each is a cell that says "not isolated", which is asserted where it can be shown without harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import threading

import pytest
from sandboxes import IMAGE, LIMITS, on, on_isolated

from nel.sandbox.backends import get_backend
from nel.sandbox.base import OutsideEndpoint, SandboxError, SandboxSpec


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 180))


def attack(opened, command, *, time_limit=20, **spec):
    """How the attack ended, and what a command after it in the same sandbox says."""

    async def act():
        async with opened(**spec) as sandbox:
            found = await sandbox.exec(command, time_limit=time_limit)
            after = await sandbox.exec("echo alive")
            return found, after

    return run(act())


@on_isolated
def test_a_fork_bomb_stays_below_its_limit_and_is_ended(opened):
    found, after = attack(opened, "b() { b | b & }; b; sleep 60", time_limit=3)
    assert found.timed_out
    assert after.stdout == b"alive\n"


@on_isolated
def test_a_memory_bomb_is_ended_and_told(opened):
    found, after = attack(opened, ["python3", "-c", "x = bytearray(1 << 30); print(len(x))"])
    assert (found.return_code, found.out_of_memory) == (137, True)
    assert after.stdout == b"alive\n"


@on_isolated
def test_a_full_disk_is_the_sandboxes_own(opened):
    command = "dd if=/dev/zero of=big bs=1M count=500; dd if=/dev/zero of=/tmp/big bs=1M count=500; rm -f big /tmp/big"
    found, after = attack(opened, command, readonly_root=True)
    assert found.error_text.count("No space left on device") == 2
    assert after.stdout == b"alive\n"


@on
def test_endless_output_is_cut_and_ended(opened):
    found, after = attack(opened, "yes", time_limit=2)
    assert (found.timed_out, found.truncated) == (True, True)
    assert len(found.stdout) < 2 << 20
    assert after.stdout == b"alive\n"


@on_isolated
@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "(setsid sh -c 'trap \"\" TERM; sleep 97.5' &) ; sleep 60",
        'python3 -c "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep(97.5)"; sleep 60',
    ],
)
def test_who_ignores_signals_or_leaves_the_session_is_ended_all_the_same(opened, command):
    async def act():
        async with opened() as sandbox:
            found = await sandbox.exec(command, time_limit=1.5)
            left = await sandbox.exec("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
            return found, left.stdout

    found, left = run(act())
    assert found.timed_out
    assert b"97.5" not in left
    assert b"trap '' TERM INT" not in left


@on_isolated
def test_the_hosts_files_and_environment_cannot_be_read(opened, tmp_path, monkeypatch):
    secret = "gold-answer-of-the-host"
    (tmp_path / "gold").write_text(secret)
    monkeypatch.setenv("NEL_TEST_SECRET", secret)
    command = (
        f"cat {tmp_path}/gold /etc/shadow /root/.bashrc /proc/1/environ /proc/[0-9]*/environ; env;"
        " ls /work /root /home /var/tmp; cat /proc/[0-9]*/root/etc/shadow"
    )
    found, _ = attack(opened, command)
    assert secret.encode() not in found.stdout + found.stderr
    assert b"root:$" not in found.stdout


@on_isolated
def test_nothing_is_reached_without_a_network(opened):
    found, _ = attack(
        opened,
        """python3 - <<'E'
import socket
for place in (("169.254.169.254", 80), ("127.0.0.1", 22), ("172.17.0.1", 22), ("8.8.8.8", 53)):
    try:
        socket.create_connection(place, timeout=2)
        print("reached", place)
    except OSError as error:
        print("refused")
E""",
    )
    assert found.stdout == b"refused\n" * 4


@on_isolated
def test_the_kernel_is_not_for_the_sandbox(opened):
    commands = (
        "mount -t tmpfs none /mnt",
        'python3 -c "import ctypes; exit(0 if ctypes.CDLL(None).syscall(272, 0x10000000) == 0 else 1)" && unshare -m mount -t tmpfs x /tmp',
        "mknod disk b 8 0",
        "echo 1 > /proc/sys/kernel/panic",
        "chroot / true",
        "dmesg -C",
    )

    async def act():
        async with opened() as sandbox:
            return [(await sandbox.exec(command)).return_code for command in commands]

    assert 0 not in run(act())


@pytest.mark.parametrize("backend", ["docker", "podman"], indirect=True)
def test_on_an_internal_network_only_the_declared_server_answers(opened):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"declared")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    program = """
import os, socket, urllib.request
print(urllib.request.urlopen(os.environ["MODEL_BASE_URL"], timeout=5).read().decode())
for place in (("169.254.169.254", 80), ("8.8.8.8", 53)):
    try:
        socket.create_connection(place, timeout=2)
        print("reached")
    except OSError:
        print("refused")
"""

    async def act():
        async with opened(
            network="internal", endpoints=[OutsideEndpoint(url=url, env_var="MODEL_BASE_URL")]
        ) as sandbox:
            return await sandbox.exec(["python3", "-c", program])

    found = run(act())
    server.shutdown()
    server.server_close()
    assert found.text == "declared\nrefused\nrefused\n", found.error_text


@pytest.mark.parametrize("backend", ["docker", "podman"], indirect=True)
def test_sandboxes_of_one_network_do_not_reach_each_other(backend):
    serve = "python3 -m http.server 8000 --bind 0.0.0.0 >/dev/null 2>&1 & sleep 1; hostname -i"

    async def act():
        made = get_backend(backend)
        spec = SandboxSpec(image=IMAGE, limits=LIMITS, network="bridge")
        one, other = made.sandbox(spec), made.sandbox(spec)
        try:
            await asyncio.gather(one.start(), other.start())
            address = (await one.exec(serve)).text.split()[0]
            fetch = f"import urllib.request; urllib.request.urlopen('http://{address}:8000', timeout=3)"
            own = await one.exec(["python3", "-c", fetch])
            return own.return_code, (await other.exec(["python3", "-c", fetch])).return_code
        finally:
            await asyncio.gather(one.stop(), other.stop())
            await made.close()

    assert run(act()) == (0, 1)


@on_isolated
@pytest.mark.parametrize(
    "plant",
    [
        "mkdir out && ln -s /etc/passwd out/link",
        "mkdir out && ln -s ../../../../../../etc out/link",
        "ln -s /etc out",
        "mkdir -p out/d && ln -s .. out/d/up && ln -s d/up/.. out/out",
        "mkdir out && mknod out/pipe p",
    ],
)
def test_what_was_planted_for_the_way_out_is_refused(opened, tmp_path, plant):
    async def act():
        async with opened() as sandbox:
            assert (await sandbox.exec(plant)).ok
            with pytest.raises(SandboxError):
                await sandbox.download("out", tmp_path / "inner" / "out")

    (tmp_path / "inner").mkdir()
    run(act())
    assert list((tmp_path / "inner").iterdir()) == []


@on_isolated
def test_a_planted_link_does_not_lead_an_upload_out(opened, tmp_path):
    (tmp_path / "mine").write_text("overwritten")
    victim = tmp_path / "victim"
    victim.write_text("untouched")

    async def act():
        async with opened() as sandbox:
            await sandbox.exec(f"mkdir -p $(dirname {victim}); ln -s {victim} target; ln -s {tmp_path} folder")
            for place in ("target", "folder/victim"):
                with contextlib.suppress(SandboxError):
                    await sandbox.upload(tmp_path / "mine", place)

    run(act())
    assert victim.read_text() == "untouched"


@on_isolated
def test_a_hundred_thousand_files_are_removed_with_the_sandbox(opened):
    program = (
        "import os\nfor i in range(100):\n os.mkdir(f'd{i}')\n for j in range(1000): open(f'd{i}/{j}', 'w').close()\n"
    )
    found, after = attack(opened, ["python3", "-c", program], time_limit=120)
    assert found.return_code in {0, 1}  # done, or told that there is no more room
    assert after.stdout == b"alive\n"


@pytest.mark.parametrize("backend", ["local"], indirect=True)
def test_local_is_not_isolated(opened, tmp_path, monkeypatch):
    (tmp_path / "gold").write_text("seen")
    found, _ = attack(opened, f"cat {tmp_path}/gold; id -u")
    assert found.stdout == b"seen%d\n" % os.getuid()
