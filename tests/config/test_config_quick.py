"""Quick mode builds the same kind of config from flags."""

import pytest
from config_texts import NO_HOME

from nel.config.load import load_config
from nel.config.planning import plan_check
from nel.config.quick import quick_config
from nel.core.errors import ConfigError, UsageError


def quick(*arguments, env=None, **options):
    return quick_config(*arguments, env={**NO_HOME, **(env or {})}, **options)


@pytest.mark.parametrize(
    ("url", "posted_to", "protocol"),
    [
        ("http://h:8000/v1", "http://h:8000/v1/chat/completions", "chat_completions"),
        ("http://h:8000/v1/", "http://h:8000/v1/chat/completions", "chat_completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions", "chat_completions"),
        ("http://h/v1/completions", "http://h/v1/completions", "completions"),
        ("http://h/v1/responses", "http://h/v1/responses", "responses"),
    ],
)
def test_the_url_is_completed_and_its_end_says_the_protocol(url, posted_to, protocol):
    service = quick("gsm8k", url).config.services["model"]
    assert (service.url, service.protocol, service.model) == (posted_to, protocol, None)


def test_every_flag_takes_effect():
    loaded = quick(
        ["gsm8k", "mmlu"],
        "http://h/v1",
        "tiny",
        repeats=3,
        max_problems=5,
        system_prompt="Be ${BRIEF}.",
        temperature=0.5,
        max_tokens=9,
        dataset="rows.jsonl",
        output_dir="out",
        overrides=["benchmarks[1].id=second"],
    )
    plan_check(loaded)
    first, second = loaded.config.benchmarks
    assert [first.name, second.name, second.id] == ["gsm8k", "mmlu", "second"]
    assert (first.repeats, first.max_problems, first.dataset.path) == (3, 5, "rows.jsonl")
    assert first.solver.system_prompt == "Be ${BRIEF}."
    assert first.solver.generation.given() == {"temperature": 0.5, "max_tokens": 9}
    assert loaded.config.services["model"].model == "tiny"
    assert loaded.config.output.directory == "out"


def test_greedy_decoding_is_the_default_and_none_sends_no_temperature():
    assert quick("gsm8k", "http://h/v1").config.benchmarks[0].solver.generation.temperature == 0
    assert quick("gsm8k", "http://h/v1", temperature=None).config.benchmarks[0].solver.generation.given() == {}


def test_the_environment_stands_in_for_flags():
    env = {
        "NEMO_MODEL_URL": "http://e/v1",
        "NEMO_MODEL_ID": "env-model",
        "NEMO_API_KEY": "low",
        "NEL_API_KEY": "high",
    }
    service = quick("gsm8k", env=env).config.services["model"]
    assert (service.url, service.model, service.api_key) == ("http://e/v1/chat/completions", "env-model", "high")
    service = quick("gsm8k", "http://f/v1", "flag", "key", env=env).config.services["model"]
    assert (service.url, service.model, service.api_key) == ("http://f/v1/chat/completions", "flag", "key")


def test_without_a_url_there_is_nothing_to_evaluate():
    with pytest.raises(UsageError, match="--model-url"):
        quick("gsm8k")


def test_a_bad_flag_is_named():
    with pytest.raises(ConfigError, match=r"command line --repeats: benchmarks\[0\]\.repeats: must be at least 1"):
        quick("gsm8k", "http://h/v1", repeats=0)
    with pytest.raises(ConfigError, match=r"command line --model-url: services\.model\.url: is not an http"):
        quick("gsm8k", "h/v1")


def test_a_stored_quick_config_resumes_with_the_key_of_the_flag_or_the_environment():
    from_flag = quick("gsm8k", "http://h/v1", "tiny", "correct-horse-battery")
    assert "correct-horse-battery" not in from_flag.to_yaml()
    again = load_config(from_flag.to_yaml(), env=NO_HOME, api_key="correct-horse-battery", use_defaults=False)
    assert again.config == from_flag.config
    env = {"NEMO_API_KEY": "correct-horse-battery"}
    from_env = quick("gsm8k", "http://h/v1", "tiny", env=env)
    assert from_env.composed["services"]["model"]["api_key"] == "${NEMO_API_KEY}"
    assert load_config(from_env.to_yaml(), env={**NO_HOME, **env}, use_defaults=False).config == from_env.config
    assert from_env.config == from_flag.config
