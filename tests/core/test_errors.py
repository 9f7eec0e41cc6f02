import inspect
import re

import pytest

from nel.core import errors
from nel.core.errors import (
    AttemptError,
    ConfigError,
    ExitCode,
    MissingDependencyError,
    NelError,
    RunDirError,
    UsageError,
)


def classes():
    return {
        name: value for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)
    }


def test_the_drawing_lists_every_error_with_its_exit_code_and_parent():
    rows = re.findall(r"^    ([ │├└─]*)(\w+Error) \.+ +(\d+) ", errors.__doc__, re.MULTILINE)
    drawn, parents = {}, {}
    for indent, name, code in rows:
        depth = len(indent) // 4
        parents[depth] = name
        drawn[name] = (int(code), parents[depth - 1] if depth else "Exception")
    assert drawn == {name: (int(value.exit_code), value.__base__.__name__) for name, value in classes().items()}


def test_exit_codes_are_the_documented_ones():
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0, "FAILED": 1, "INCONCLUSIVE": 2, "DEGRADED": 3, "USAGE": 64, "INTERNAL": 70, "INTERRUPTED": 130,
    }  # fmt: skip


def test_an_error_reads_as_message_and_hint():
    error = RunDirError("It is locked.", hint="Wait.")
    assert str(error) == "It is locked.\nWait."
    assert (error.message, error.hint) == ("It is locked.", "Wait.")
    assert str(NelError("Alone.")) == "Alone."
    assert isinstance(error, UsageError)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({"file": "a.yaml", "line": 3, "key": "services.m"}, "a.yaml:3: services.m: bad"),
        ({"file": "a.yaml", "line": 3}, "a.yaml:3: bad"),
        ({"file": "a.yaml"}, "a.yaml: bad"),
        ({"key": "services.m"}, "services.m: bad"),
        ({"line": 3}, "bad"),
        ({}, "bad"),
    ],
)
def test_a_config_error_starts_with_the_place_that_is_known(place, text):
    error = ConfigError("bad", **place)
    assert str(error) == text
    assert (error.file, error.line, error.key) == (place.get("file"), place.get("line"), place.get("key"))


def test_a_missing_dependency_ends_with_the_command():
    error = MissingDependencyError("The exporter", needs="wandb", command="pip install 'nel[wandb]'")
    assert str(error) == "The exporter needs wandb, which is not installed.\nInstall it with: pip install 'nel[wandb]'"
    assert error.command == "pip install 'nel[wandb]'"


def test_an_attempt_error_says_what_a_retry_needs_to_know():
    error = AttemptError("refused", category="bad_request", permanent=True, status=400, tries=2)
    assert (error.category, error.permanent, error.status, error.tries) == ("bad_request", True, 400, 2)
    assert not AttemptError("late", category="model_timeout").permanent
