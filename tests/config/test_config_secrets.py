"""No file holds a secret, and a stored config loads again."""

import textwrap

import pytest
from config_texts import MINIMAL, NO_HOME, load, minimal
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.config.load import load_config
from nel.config.positions import plain
from nel.core.errors import ConfigError

KEY = "correct-horse-battery"


def with_key(written):
    return minimal(**{"    model: tiny\n": f"    model: tiny\n    api_key: {written}\n"})


def stored(loaded):
    text = loaded.to_yaml()
    for secret in loaded.secrets:
        assert secret not in text
    return text


def test_a_secret_field_stays_a_variable_and_everything_else_is_put_in():
    text = with_key("${MY_KEY}") + "output: {dir: '${BASE}/runs'}\n"
    loaded = load(text, env={"MY_KEY": KEY, "BASE": "/data"})
    assert loaded.config.services["m"].api_key == KEY
    assert loaded.composed["services"]["m"]["api_key"] == "${MY_KEY}"
    assert loaded.composed["output"]["dir"] == "/data/runs"
    assert loaded.secrets == [KEY]


def test_a_stored_config_gives_the_same_config_again():
    text = "_v: 1\n" + with_key("${MY_KEY}") + "    params: {x: '${._v}', y: '$${LITERAL} $${.a}', z: '${BASE}'}\n"
    first = load(text, env={"MY_KEY": KEY, "BASE": "${MY_KEY}"})
    again = load_config(stored(first), env={**NO_HOME, "MY_KEY": KEY}, use_defaults=False)
    assert again.config == first.config
    assert again.composed == first.composed
    assert first.config.benchmarks[0].params == {"x": 1, "y": "${LITERAL} ${.a}", "z": "${MY_KEY}"}


@pytest.mark.parametrize(
    ("written", "kept", "secrets"),
    [
        ("${MY_KEY:-}", "${MY_KEY}", [KEY]),
        ("${MY_KEY:-sk-default-0123456789}", "${MY_KEY}", [KEY]),
        ("${NO_KEY:-sk-default-0123456789}", "[redacted]", ["sk-default-0123456789"]),
        ("${NO_KEY:-${MY_KEY}}", "[redacted]", [KEY]),
        ("${NO_KEY:-}", "", []),
        ("literal-0123456789", "[redacted]", ["literal-0123456789"]),
        ("key-${MY_KEY}", "key-${MY_KEY}", [KEY, f"key-{KEY}"]),
        ("a$${b", "[redacted]", ["a${b"]),
    ],
)
def test_a_key_is_stored_only_as_a_variable(written, kept, secrets):
    loaded = load(with_key(f'"{written}"'), env={"MY_KEY": KEY})
    assert loaded.composed["services"]["m"]["api_key"] == kept
    assert loaded.secrets == secrets


def test_secrets_are_known_by_name_wherever_they_stand():
    text = minimal(
        textwrap.dedent("""\
            params: {password: hunter2-hunter2, max_tokens: 5, eos_token: </s>}
            select: {where: {token: cat}}
        cluster:
          type: local
          container_env: {HF_TOKEN: "${HF_TOKEN}", PATH_TO: "${HF_TOKEN}/x", LEVEL: "3"}
        """),
        **{"    model: tiny\n": "    proxy:\n      extra_headers: {Authorization: 'Basic ${MY_KEY}'}\n"},
    )
    loaded = load(text, env={"MY_KEY": KEY, "HF_TOKEN": "hf-token-0123456789"})
    entry = loaded.composed["benchmarks"][0]
    assert entry["params"] == {"password": "[redacted]", "max_tokens": 5, "eos_token": "</s>"}
    assert entry["select"] == {"where": {"token": "cat"}}
    assert loaded.composed["services"]["m"]["proxy"]["extra_headers"] == {"Authorization": "Basic ${MY_KEY}"}
    assert loaded.composed["cluster"]["container_env"] == {
        "HF_TOKEN": "${HF_TOKEN}",
        "PATH_TO": "${HF_TOKEN}/x",
        "LEVEL": "3",
    }
    assert set(loaded.secrets) == {"hunter2-hunter2", KEY, f"Basic {KEY}", "hf-token-0123456789"}


def test_a_credential_inside_a_harmless_key_is_taken_out_alone():
    text = minimal(**{"https://host/v1": "https://me:pass-word-1234@host/v1"})
    loaded = load(text)
    assert loaded.config.services["m"].url == "https://me:pass-word-1234@host/v1/chat/completions"
    assert loaded.composed["services"]["m"]["url"] == "https://[redacted]@host/v1/chat/completions"
    assert loaded.secrets == ["me:pass-word-1234", "pass-word-1234"]


def test_a_variable_with_a_secret_name_stays_in_a_harmless_key():
    loaded = load(
        minimal(**{"https://host": "https://u:${DB_PASSWORD}@${HOST}"}), env={"DB_PASSWORD": KEY, "HOST": "h"}
    )
    assert loaded.composed["services"]["m"]["url"] == "https://u:${DB_PASSWORD}@${HOST}/v1/chat/completions"
    assert loaded.secrets == [KEY, f"u:{KEY}"]


def test_a_key_from_the_command_line_is_in_no_file():
    loaded = load(MINIMAL, overrides=[f"services.m.api_key={KEY}"])
    assert loaded.config.services["m"].api_key == KEY
    assert KEY not in stored(loaded)


def test_a_config_that_lacks_its_key_asks_for_it_and_takes_it_from_flag_override_or_environment():
    text = stored(load(MINIMAL, overrides=[f"services.m.api_key={KEY}"]))
    with pytest.raises(
        ConfigError, match=r"services\.m\.api_key: a secret that was given in clear is in no file"
    ) as caught:
        load_config(text, env=NO_HOME)
    assert "--api-key" in str(caught.value)
    by_flag = load_config(text, env=NO_HOME, api_key=KEY)
    by_override = load_config(text, env={**NO_HOME, "X": KEY}, overrides=["services.m.api_key=${X}"])
    by_environment = load_config(text, env={**NO_HOME, "NEMO_API_KEY": KEY})
    assert {c.config.services["m"].api_key for c in (by_flag, by_override, by_environment)} == {KEY}
    assert by_flag.composed["services"]["m"]["api_key"] == "[redacted]"
    assert by_environment.composed["services"]["m"]["api_key"] == "${NEMO_API_KEY}"


def test_another_secret_that_was_not_stored_is_asked_for_by_its_own_name():
    text = stored(load(MINIMAL + "    params: {password: hunter2-hunter2}\n"))
    with pytest.raises(ConfigError, match=r"-O 'benchmarks\[0\]\.params\.password=\$\{NAME\}'"):
        load_config(text, env=NO_HOME, api_key=KEY)


def test_an_error_does_not_show_a_secret():
    with pytest.raises(ConfigError) as caught:
        load(MINIMAL, overrides=[f"services.m.api_key=[{KEY}]"])
    assert KEY not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        load(minimal(**{"https://host": "htp://me:pass-word-1234@host"}))
    assert "pass-word-1234" not in str(caught.value)


texts = st.lists(
    st.sampled_from(["${A}", "${MY_KEY}", "$${A}", "${NO:-d}", "$ ", "{", "}", " x", "é\n", "${.services.m.model}"]),
    max_size=6,
).map("".join)


@settings(deadline=None, max_examples=25)
@given(texts)
def test_storing_and_loading_again_is_the_identity(text):
    from nel.config.load import load_tree
    from nel.config.positions import Place, node_of, read_map

    tree = plain(read_map(MINIMAL, "c"))
    tree["benchmarks"][0]["params"] = {"x": text}
    tree["services"]["m"]["api_key"] = "${MY_KEY}"
    env = {"A": "a $${B} ${C}", "MY_KEY": KEY}
    first = load_tree(node_of(tree, Place("c")), env=env)
    again = load_config(first.to_yaml(), env={**NO_HOME, **env}, use_defaults=False)
    assert again.config == first.config
    assert KEY not in first.to_yaml()
