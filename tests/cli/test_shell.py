"""The shell around the commands: one exit code for each kind of ending, and messages that help."""

import os
import subprocess
import sys

import click
import pytest

from nel.cli import main as shell
from nel.cli.lazy import Entry
from nel.core.errors import (
    AttemptError,
    ConfigError,
    DataError,
    ExitCode,
    LoadError,
    MissingDependencyError,
    NelError,
    RecordError,
    RunDirError,
    ServiceError,
    UsageError,
)


@pytest.fixture
def ending(monkeypatch):
    """Make `nel boom` end in a given way."""

    def install(error):
        @click.command()
        @click.option("--count", type=int)
        def boom(count):
            if isinstance(error, BaseException):
                raise error
            return error

        monkeypatch.setitem(shell.root.entries, "boom", Entry(f"{__name__}:_command", "Ends."))
        monkeypatch.setattr(sys.modules[__name__], "_command", boom, raising=False)

    return install


ERRORS = [
    (NelError("it failed"), 1),
    (UsageError("it failed"), 64),
    (ConfigError("it failed", file="a.yaml", line=3), 64),
    (DataError("it failed"), 64),
    (LoadError("it failed"), 64),
    (MissingDependencyError("it failed", needs="x", command="pip install x"), 64),
    (RunDirError("it failed"), 64),
    (RecordError("it failed"), 1),
    (ServiceError("it failed"), 1),
    (AttemptError("it failed", category="server_error"), 1),
]


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=[type(error).__name__ for error, _ in ERRORS])
def test_an_explained_error_is_a_message_and_the_exit_code_of_its_class(ending, capsys, error, code):
    ending(error)
    assert shell.main(["boom"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "it failed" in said.err
    assert "Traceback" not in said.err


def test_the_hint_follows_the_message_on_a_line_of_its_own(ending, capsys):
    ending(ConfigError("no such key", file="a.yaml", line=3, hint="Did you mean 'name'?"))
    assert shell.main(["boom"]) == 64
    assert capsys.readouterr().err == "error: a.yaml:3: no such key\nDid you mean 'name'?\n"


def test_an_error_in_a_task_group_is_told_as_the_error_itself(ending, capsys):
    ending(ExceptionGroup("unhandled errors in a TaskGroup", [DataError("row 3 has no question")]))
    assert shell.main(["boom"]) == 64
    assert capsys.readouterr().err == "error: row 3 has no question\n"


@pytest.mark.parametrize("code", list(ExitCode))
def test_the_code_that_a_command_returns_is_the_exit_code(ending, code):
    ending(code)
    assert shell.main(["boom"]) == code


def test_a_command_that_returns_nothing_succeeded(ending):
    ending(None)
    assert shell.main(["boom"]) == 0


def test_ctrl_c_ends_with_130(ending):
    ending(KeyboardInterrupt())
    assert shell.main(["boom"]) == 130


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["boom", "--cuont", "3"], "--count"),
        (["boom", "--count", "many"], "--count"),
        (["boom", "extra"], "extra"),
        (["bom"], "'boom'"),
        (["eval", "rum"], "'run'"),
        (["frobnicate"], "Commands: eval, "),
    ],
)
def test_a_usage_error_ends_with_64_and_names_what_is_meant(ending, capsys, arguments, named):
    ending(None)
    assert shell.main(arguments) == 64
    assert named in capsys.readouterr().err


def test_an_internal_error_shows_no_traceback_but_tells_how_to_see_it(ending, capsys, monkeypatch):
    monkeypatch.delenv("NEL_DEBUG", raising=False)
    ending(ZeroDivisionError("division by zero"))
    assert shell.main(["boom"]) == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in said
    assert "NEL_DEBUG=1" in said
    assert "Traceback" not in said


def test_nel_debug_shows_the_traceback(ending, capsys, monkeypatch):
    monkeypatch.setenv("NEL_DEBUG", "1")
    ending(ZeroDivisionError("division by zero"))
    assert shell.main(["boom"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_error_never_shows_a_credential(ending, capsys):
    ending(ServiceError("refused: Authorization: Bearer sk-abcdefghijklmnop1234567890"))
    assert shell.main(["boom"]) == 1
    assert "abcdefghijklmnop" not in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error():
    """`nel ... | head -1` must not end in a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "nel", "--help"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 141


def test_the_help_of_a_group_says_what_each_command_says_of_itself():
    """The one-line help in the tables is written once more than needed: this keeps the two equal."""
    from nel.cli import eval as eval_commands

    for table in (shell.COMMANDS, eval_commands.COMMANDS):
        for name, entry in table.items():
            module, _, attribute = entry.target.partition(":")
            command = getattr(__import__(module, fromlist=[attribute]), attribute)
            if not isinstance(command, click.Group):
                first = (command.help or "").split("\n\n")[0].replace("\n", " ").strip()
                assert entry.help == first, name


def test_version_is_the_one_of_the_package(capsys):
    import nel

    assert shell.main(["--version"]) == 0
    assert capsys.readouterr().out == f"nel {nel.__version__}\n"
