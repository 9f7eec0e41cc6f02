"""A managed server starts, is waited for, and ends with all that it started, however NEL itself ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import psutil
import pytest
from standin_server import install, read_record

from nel.config.services import VllmService
from nel.core.errors import ServiceError
from nel.orchestration.model_server import APIDeployment, DeployConfig, ProcessModelDeployment, model_server
from nel.orchestration.server_commands import deploy_config
from nel.orchestration.server_process import free_port


@pytest.fixture
def vllm(tmp_path):
    """Makes a vLLM service whose program is the stand-in; keys in capitals are environment variables."""
    base = install(tmp_path)

    def make(**keys):
        env = base | {key: str(value) for key, value in keys.items() if key.isupper()}
        keys = {key: value for key, value in keys.items() if not key.isupper()}
        return VllmService(**{"type": "vllm", "model": "org/model", "port": 0, "extra_env": env} | keys)

    return make


def deployment(tmp_path, vllm, *, grace=15.0, **keys):
    return ProcessModelDeployment(replace(deploy_config("m", vllm(**keys), tmp_path / "logs"), stop_grace=grace))


def alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def wait_until_dead(pids, seconds=10.0):
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still alive: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.01)  # another process' end cannot be waited for


async def test_a_server_is_started_waited_for_and_ended(tmp_path, vllm):
    server = model_server("m", vllm(), tmp_path / "logs")
    url = await server.start()
    await server.health_wait()
    assert url.startswith("http://127.0.0.1:")
    pid = read_record(tmp_path)["pids"]["server"]
    assert alive(pid)
    await server.stop()
    await server.stop()
    assert not alive(pid)


async def test_stop_ends_workers_and_daemons_that_ignore_sigterm(tmp_path, vllm):
    server = deployment(tmp_path, vllm, grace=0.3, STANDIN_CHILDREN=1, STANDIN_DEAF=1)
    await server.start()
    await server.health_wait()
    pids = read_record(tmp_path)["pids"].values()
    assert len(pids) == 3
    await server.stop()
    assert not [pid for pid in pids if alive(pid)]


async def test_no_output_is_lost_however_much_comes_before_the_server_is_ready(tmp_path, vllm):
    server = model_server("m", vllm(STANDIN_SAY="first " + "x" * 120_000), tmp_path / "logs")
    await server.start()
    await server.health_wait()
    await server.stop()
    assert "first " + "x" * 120_000 in (tmp_path / "logs" / "server-m.log").read_text()


@pytest.mark.parametrize(
    ("code", "said"), [(3, "ended with exit code 3 before it was ready"), (-9, "was ended by SIGKILL before")]
)
async def test_an_early_exit_is_explained_with_the_last_lines_of_the_log(tmp_path, vllm, code, said):
    lines = "\n".join(f"line {number}" for number in range(30)) + "\nAuthorization: Bearer abcdef0123456789abcdef"
    service = vllm(STANDIN_EXIT=code, STANDIN_SAY=lines + "\nowned", MY_API_KEY="correcthorsebattery")
    server = model_server("m", service, tmp_path / "logs")
    await server.start()
    with pytest.raises(ServiceError, match=said) as caught:
        await server.health_wait()
    message = str(caught.value)
    assert "service m: " in message
    assert "server-m.log" in message
    assert "line 29" in message
    assert "line 5\n" not in message
    assert "abcdef0123456789" not in message


async def test_the_secrets_of_extra_env_do_not_come_out_with_the_log(tmp_path, vllm):
    service = vllm(STANDIN_EXIT=1, STANDIN_SAY="using correcthorsebattery", MY_API_KEY="correcthorsebattery")
    server = model_server("m", service, tmp_path / "logs")
    await server.start()
    with pytest.raises(ServiceError, match=r"using \[redacted\]"):
        await server.health_wait()


async def test_a_server_that_never_gets_ready_is_ended_and_explained(tmp_path, vllm):
    service = vllm(startup_timeout=1.5, STANDIN_STATUS=503, STANDIN_SAY="loading")
    server = model_server("m", service, tmp_path / "logs")
    await server.start()
    with pytest.raises(ServiceError, match=r"not ready after 1.5 s \(/health answers 503\)\.\n(.*\n)*.*loading"):
        await server.health_wait()
    assert not alive(read_record(tmp_path)["pids"]["server"])


async def test_a_port_that_is_taken_is_refused_before_anything_starts(tmp_path, vllm):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ServiceError, match=f"service m: port {port} is in use"):
            await model_server("m", vllm(port=port), tmp_path / "logs").start()
    assert not (tmp_path / "record.json").exists()


async def test_the_loop_runs_on_while_a_server_is_waited_for(tmp_path, vllm):
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            await asyncio.sleep(0.005)
            beats += 1

    task = asyncio.create_task(beat())
    server = model_server("m", vllm(startup_timeout=1.0, setup_commands=["sleep 0.5"], STANDIN_STATUS=503), tmp_path)
    await server.start()
    during_setup = beats
    with pytest.raises(ServiceError, match="not ready"):
        await server.health_wait()
    task.cancel()
    assert during_setup > 10
    assert beats - during_setup > 10


async def test_setup_commands_run_first_and_a_failing_one_is_named(tmp_path, vllm):
    done = tmp_path / "done"
    server = model_server("m", vllm(setup_commands=[f"echo one > {done}", f"echo two >> {done}"]), tmp_path / "logs")
    await server.start()
    await server.health_wait()
    await server.stop()
    assert done.read_text() == "one\ntwo\n"

    (tmp_path / "record.json").unlink()
    server = model_server("m", vllm(setup_commands=["true", "echo no disk; exit 7"]), tmp_path / "logs")
    with pytest.raises(ServiceError, match=r"setup_commands\[1\] ended with exit code 7\.\n(.*\n)*.*no disk"):
        await server.start()
    assert not (tmp_path / "record.json").exists()


async def test_a_setup_command_may_not_outlast_the_startup_timeout(tmp_path, vllm):
    server = model_server("m", vllm(setup_commands=["sleep 60"], startup_timeout=0.5), tmp_path / "logs")
    with pytest.raises(ServiceError, match=r"setup_commands\[0\] did not end within 0.5 s"):
        await server.start()


async def test_pre_cmd_holds_in_the_servers_own_shell(tmp_path, vllm):
    service = vllm(pre_cmd="export SET_BEFORE='it is'")
    del service.extra_env["PATH"]
    server = model_server("m", service, tmp_path / "logs")
    await server.start()
    await server.health_wait()
    await server.stop()
    assert read_record(tmp_path)["env"]["SET_BEFORE"] == "it is"


async def test_pre_cmd_may_activate_another_python(tmp_path, vllm):
    tools = tmp_path / "activated"
    tools.mkdir()
    (tools / "python").symlink_to("/bin/echo")
    server = model_server("m", vllm(pre_cmd=f"export PATH={tools}:$PATH"), tmp_path / "logs")
    await server.start()
    with pytest.raises(ServiceError, match=r"exit code 0 before it was ready.\n(.*\n)*.*-m vllm.entrypoints"):
        await server.health_wait()


async def test_a_failing_pre_cmd_starts_no_server(tmp_path, vllm):
    server = model_server("m", vllm(pre_cmd="echo no such module; false"), tmp_path / "logs")
    await server.start()
    with pytest.raises(ServiceError, match=r"exit code 1 before it was ready\.\n(.*\n)*.*no such module"):
        await server.health_wait()
    assert not (tmp_path / "record.json").exists()


async def test_a_program_that_cannot_be_started_is_named(tmp_path):
    config = DeployConfig(name="m", command=["/no/such/program"], port=free_port(), log_path=tmp_path / "m.log")
    server = ProcessModelDeployment(config)
    await server.start()
    with pytest.raises(ServiceError, match="/no/such/program cannot be started"):
        await server.health_wait()


async def test_health_cannot_be_waited_for_before_the_start(tmp_path, vllm):
    with pytest.raises(ServiceError, match="service m: the server was not started"):
        await model_server("m", vllm(), tmp_path).health_wait()


RUNNER = """
    import asyncio, sys
    from dataclasses import replace
    from pathlib import Path
    from nel.config.services import VllmService
    from nel.orchestration.server_commands import deploy_config
    from nel.orchestration.server_process import ProcessModelDeployment

    async def main():
        service = VllmService.model_validate_json(sys.argv[1])
        config = replace(deploy_config("m", service, Path(sys.argv[2])), stop_grace=0.5)
        server = ProcessModelDeployment(config)
        await server.start()
        await server.health_wait()
        print("ready", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_survives_the_end_of_nel(tmp_path, vllm, number):
    service = vllm(STANDIN_CHILDREN=1, STANDIN_DEAF=1).model_dump_json()
    command = [sys.executable, "-c", textwrap.dedent(RUNNER), service, str(tmp_path / "logs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as nel:
        assert nel.stdout.readline() == "ready\n"
        pids = read_record(tmp_path)["pids"].values()
        assert all(alive(pid) for pid in pids)
        nel.send_signal(number)
        nel.wait()
        wait_until_dead(pids)


async def test_stop_ends_what_a_killed_guard_left_behind(tmp_path, vllm):
    server = deployment(tmp_path, vllm, grace=0.3, STANDIN_CHILDREN=1)
    await server.start()
    await server.health_wait()
    pids = read_record(tmp_path)["pids"]
    guard = psutil.Process(pids["server"]).parent()
    guard.kill()
    if sys.platform.startswith("linux"):
        wait_until_dead([pids["server"]])  # by the kernel, before anybody asks
    await server.stop()
    assert not [name for name in ("server", "worker") if alive(pids[name])]
    os.kill(pids["daemon"], signal.SIGKILL)  # it left the session, and only the guard knew of it


async def test_an_endpoint_is_only_waited_for(tmp_path, vllm):
    server = model_server("m", vllm(STANDIN_STATUS=200), tmp_path / "logs")
    url = await server.start()
    await server.health_wait()
    endpoint = APIDeployment("api", url + "/v1/chat/completions", "/health")
    assert await endpoint.start() == url + "/v1/chat/completions"
    await endpoint.health_wait()
    with pytest.raises(ServiceError, match="service api: its health path /other answers 404"):
        await APIDeployment("api", url, "/other").health_wait()
    await endpoint.stop()
    await server.stop()
    with pytest.raises(ServiceError, match="service api: its health path /health does not answer"):
        await endpoint.health_wait()
    await APIDeployment("api", url).health_wait()  # no health path: nothing to wait for
