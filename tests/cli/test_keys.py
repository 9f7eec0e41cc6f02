"""Which key goes to which endpoint: a vendor's key never leaves for another host."""

import pytest

from nel.cli.keys import api_key_variable
from nel.core.secrets import redact_command

KEYS = {"NVIDIA_API_KEY": "n", "OPENAI_API_KEY": "o"}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
        ("https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
        ("https://API.OpenAI.com/v1", "OPENAI_API_KEY"),
        ("http://localhost:8000/v1", None),
        ("https://nvidia.com.example.org/v1", None),
        ("https://evil-openai.com/v1", None),
        ("https://example.org/openai.com", None),
        ("https://openai.com@example.org/v1", None),
    ],
)
def test_a_vendors_key_goes_to_the_vendors_hosts_alone(url, name):
    assert api_key_variable(url, KEYS) == name


def test_nels_own_variable_goes_to_any_endpoint_and_comes_first():
    assert api_key_variable("http://localhost:8000/v1", KEYS | {"NEMO_API_KEY": "m"}) == "NEMO_API_KEY"
    assert (
        api_key_variable("https://api.openai.com/v1", KEYS | {"NEMO_API_KEY": "m", "NEL_API_KEY": "x"}) == "NEL_API_KEY"
    )


def test_an_empty_variable_is_no_key():
    assert api_key_variable("http://localhost:8000/v1", {"NEL_API_KEY": "", "NEMO_API_KEY": "m"}) == "NEMO_API_KEY"


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", "run", "--api-key", "the-secret-value"],
        ["eval", "run", "--api-key=the-secret-value"],
        ["eval", "run", "a.yaml", "-O", "services.model.api_key=the-secret-value"],
        ["eval", "run", "a.yaml", "--override=services.model.api_key=the-secret-value"],
        ["eval", "run", "a.yaml", "-Oservices.model.api_key=the-secret-value"],
        ["eval", "run", "--model-url", "https://user:the-secret-value@example.org/v1"],
    ],
)
def test_a_key_is_not_in_the_command_that_a_run_records(arguments):
    said = redact_command(arguments)
    assert said[:2] == ["eval", "run"]
    assert "the-secret-value" not in " ".join(said)


def test_the_rest_of_the_command_is_recorded_as_it_was_typed():
    arguments = ["eval", "run", "--bench", "gsm8k", "--max-tokens", "256", "-O", "benchmarks[0].repeats=4"]
    assert redact_command(arguments) == arguments
