"""`nel config`: what is wrong is said with its place, and what is set takes effect."""

import json
import stat

import pytest

from nel.cli.main import main

GOOD = """\
services:
  model:
    type: api
    url: http://localhost:8000/v1/chat/completions
    model: some-model
    api_key: ${THE_KEY}
benchmarks:
  - name: gsm8k
    solver: {type: simple, service: model}
"""


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """A user with an empty home, a key, and the config in the working directory."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("THE_KEY", "secret-of-the-user")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(GOOD)
    return tmp_path


def test_a_good_config_is_said_to_be_good(capsys):
    assert main(["config", "check", "suite.yaml"]) == 0
    assert capsys.readouterr().out == "suite.yaml: a good config (1 benchmark)\n"


def test_check_as_json_lists_what_was_read(capsys):
    assert main(["config", "check", "suite.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ok": True,
        "files": ["suite.yaml"],
        "benchmarks": ["gsm8k"],
        "warnings": [],
    }


def test_a_misspelt_key_is_refused_with_file_line_and_the_nearest_name(user, capsys):
    (user / "suite.yaml").write_text(GOOD.replace("benchmarks:\n", "benchmarks:\n  # a comment\n") + "    repaets: 3\n")
    assert main(["config", "check", "suite.yaml"]) == 64
    said = capsys.readouterr().err
    assert "suite.yaml:11" in said
    assert "repeats" in said


def test_what_is_not_available_yet_is_refused_by_check(user, capsys):
    (user / "suite.yaml").write_text(GOOD + "output: {export: [wandb]}\n")
    assert main(["config", "check", "suite.yaml"]) == 64
    assert "suite.yaml:10" in capsys.readouterr().err


def test_an_override_is_checked_like_the_file(capsys):
    assert main(["config", "check", "suite.yaml", "-O", "benchmarks[0].repeats=many"]) == 64
    assert "benchmarks[0].repeats" in capsys.readouterr().err


def test_show_prints_the_config_with_secrets_by_name_alone(capsys):
    assert main(["config", "show", "suite.yaml", "-O", "benchmarks[0].repeats=4"]) == 0
    shown = capsys.readouterr().out
    assert "api_key: ${THE_KEY}" in shown
    assert "repeats: 4" in shown
    assert "secret-of-the-user" not in shown


def test_what_show_prints_is_a_good_config(user, capsys):
    main(["config", "show", "suite.yaml"])
    (user / "again.yaml").write_text(capsys.readouterr().out)
    assert main(["config", "check", "again.yaml"]) == 0


def test_the_schema_is_json(capsys):
    assert main(["config", "schema"]) == 0
    assert "benchmarks" in json.loads(capsys.readouterr().out)["properties"]


def test_a_default_that_is_set_takes_effect_until_it_is_unset(capsys):
    assert main(["config", "set", "output.progress_interval", "5"]) == 0
    assert main(["config", "get", "output.progress_interval"]) == 0
    assert capsys.readouterr().out == "5\n"
    main(["config", "show", "suite.yaml"])
    assert "progress_interval: 5" in capsys.readouterr().out
    assert main(["config", "unset", "output.progress_interval"]) == 0
    main(["config", "show", "suite.yaml"])
    assert "progress_interval" not in capsys.readouterr().out


def test_show_without_a_config_prints_the_defaults_without_secrets(user, capsys):
    assert main(["config", "set", "services.model.api_key", "sk-abcdefghijklmnopqrstuvwx"]) == 0
    assert stat.S_IMODE((user / "home/nel/config.yaml").stat().st_mode) == 0o600
    assert main(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown["services"]["model"]) == ["api_key"]
    assert "abcdefghijkl" not in json.dumps(shown)


def test_a_default_that_no_config_has_is_refused_with_the_nearest_name(capsys):
    assert main(["config", "set", "output.progres_interval", "5"]) == 64
    assert "progress_interval" in capsys.readouterr().err


def test_an_override_without_a_config_would_do_nothing(capsys):
    assert main(["config", "show", "-O", "output.dir=x"]) == 64
    assert "name one" in capsys.readouterr().err
