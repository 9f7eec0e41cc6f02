"""`nel view`: a server until Ctrl-C, on this machine unless it is told otherwise."""

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from nel.cli.main import main
from nel.core.rundir import RunDir, Stage


@pytest.fixture
def runs(tmp_path):
    with RunDir.open(tmp_path / "runs" / "one", kind="models", resume=False) as run:
        run.finish(Stage.COMPLETED, counts={})
    return tmp_path / "runs"


def start(runs, tmp_path, *options):
    """The viewer and the address that it printed."""
    command = [sys.executable, "-m", "nel", "view", str(runs), "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": ""},
    )
    return process, process.stdout.readline().strip()


def stop(process):
    """Exit code and what was printed after the address."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return process.returncode, out + err


def test_it_serves_the_runs_until_ctrl_c(runs, tmp_path):
    process, address = start(runs, tmp_path)
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(address) as answer:
        assert "runs/one" in answer.read().decode()
    assert stop(process) == (0, "Ctrl-C ends the viewer.\n")


def test_another_host_needs_the_token_that_is_printed(runs, tmp_path):
    process, address = start(runs, tmp_path, "--host", "0.0.0.0")
    plain, _, token = address.replace("0.0.0.0", "127.0.0.1").partition("?token=")
    assert len(token) >= 32
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(plain)
    with caught.value as error:
        assert error.code == 403
    request = urllib.request.Request(plain, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    assert stop(process)[0] == 0


def test_a_directory_without_runs_is_a_usage_error(tmp_path, capsys):
    assert main(["view", str(tmp_path)]) == 64
    assert "is not a run directory" in capsys.readouterr().err


def test_a_port_that_is_taken_is_a_usage_error(runs, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", str(runs), "--port", str(port)]) == 64
    assert f"Cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
