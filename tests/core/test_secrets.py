import json
import time
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.secrets import (
    Redactor,
    is_secret_name,
    redact_command,
    redact_text,
    redact_value,
    strip_credentials,
)

KEY = "nvapi-" + "aB3_" * 10


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apiKey", "API-KEY", "APIKey", "apikey", "x-api-key", "OPENAI_API_KEY", "services.m.api_key",
        "api_keys", "Authorization", "proxy-authorization", "auth", "token", "hf_token", "HF_TOKEN", "accessToken",
        "X-Auth-Token", "password", "db_password", "passwd", "PGPASSWORD_PASSWD", "client_secret", "secret",
        "AWS_SECRET_ACCESS_KEY", "credentials", "private_key", "Cookie", "Set-Cookie", "bearer", "--api-key",
        "X-Amz-Security-Token",
    ],
)  # fmt: skip
def test_names_of_credentials_are_known_however_they_are_spelled(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens", "tokens", "tokenizer", "max_new_tokens", "tokens_per_minute", "token_count", "eos_token",
        "pad_token", "cost_per_token", "time_per_output_token", "time_to_first_token", "author", "authored_by",
        "key", "keys", "cache_key", "api_key_env", "api_key_name", "password_file", "dockerhub_secret_arn",
        "monkey", "keyboard", "secretary", "model", "", "compass", "bypass", "temperature", "stop_token",
        "prompt_tokens", "answer_key",
    ],
)  # fmt: skip
def test_names_that_only_look_like_credentials_are_left_alone(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        f"key {KEY} was refused",
        "Incorrect API key provided: sk-proj-" + "x1Y2" * 8,
        "sk-ant-api03-" + "x1Y2" * 8,
        "hf_" + "aBcDeFgH" * 4,
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2" * 9,
        "glpat-" + "a1B2" * 6,
        "AKIAIOSFODNN7EXAMPLE",
        "AIza" + "a1B2c" * 7,
        "xoxb-1234567890-abcdef",
        "gsk_" + "a1B2" * 9,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlMQ",
        "Authorization: Bearer abc",
        "authorization: Basic dXNlcjpwYXNz",
        "{'Authorization': 'Bearer two words'}",
        '{"headers": {"x-api-key": "short"}}',
        "x-api-key: short",
        "(b'authorization', b'Bearer abcdefgh1')",
        "api_key=abc",
        "api_key = 'abc b, c'",
        "ClientConfig(api_key='abc', model='m')",
        "OPENAI_API_KEY=abc python run.py",
        "password: hunter",
        "--api-key abc",
        "--api-key=abc",
        "https://user:p@ss@host/v1",
        "https://abc@host/v1",
        "https://host/v1?api_key=abc&model=m",
        "https://host/v1?model=m&key=abc",
        "https://bucket/x?X-Amz-Signature=abc",
        r"{\"api_key\": \"abc\", \"model\": \"m\"}",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE cut off",
    ],
)
def test_credentials_in_a_text_are_replaced(text):
    secrets = (
        "abc", "short", "hunter", "p@ss", "p%40ss", "dXNlcjpwYXNz", "two words", "abcdefgh1", "MIIE", KEY, "x1Y2",
        "aBcDeFgH", "a1B2", "IOSFODNN7", "1234567890", "c2lnbmF0dXJlMQ", "eyJzdWIi",
    )  # fmt: skip
    assert any(secret in text for secret in secrets)
    cleaned = redact_text(text)
    assert not [secret for secret in secrets if secret in cleaned], cleaned
    assert "[redacted]" in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=512, temperature=0.0",
        "Bearer of good news",
        "Basic understanding of scikit-learn and sk-learn",
        "token: expected a string",
        "config.yaml:3: services.m.api_key: unknown key, did you mean api_key_env?",
        "api_key=${NVIDIA_API_KEY}",
        'api_key: "${NVIDIA_API_KEY}"',
        "api_key=None",
        '{"api_key": "", "token": null}',
        "https://host:8000/v1/chat/completions?stream=true",
        "mail@example.org wrote: the password must be long",
        "hf_hub_download and ghp_ and AKIA",
        "eos_token='</s>'",
        "",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert redact_text(text) == text


def test_what_surrounds_a_credential_stays_readable():
    assert redact_text('{"api_key": "abc", "model": "m"}') == '{"api_key": "[redacted]", "model": "m"}'
    assert redact_text("POST https://u:p@h:8000/v1?api_key=abc&x=1#f failed") == (
        "POST https://[redacted]@h:8000/v1?api_key=[redacted]&x=1#f failed"
    )
    assert redact_text("Authorization: Bearer abc\nAccept: */*") == "Authorization: [redacted]\nAccept: */*"


words = st.sampled_from(
    [
        "api_key", "token", "password", "=", ": ", ":", '"', "'", "\\", "Bearer ", "https://", "@", "?key=", "&",
        "--token ", " ", "sk-a1b2c3d4e5f6g7h8i9", "${A}", "None", "[redacted]", "x", "1", "\n", "é",
    ]
)  # fmt: skip


@given(st.lists(words, max_size=12).map("".join) | st.text())
@settings(deadline=None, max_examples=400)
def test_redacting_twice_changes_nothing_more(text):
    once = redact_text(text)
    assert redact_text(once) == once


@pytest.mark.parametrize(
    "part",
    [
        "a", "a-", "key", "api_key=", "api_key: ", '"', "\\", "://", "sk-", "Bearer ", "eyJaaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----", 'key\\"= ', "--token ", "hf_", "://a", "a@", "?key",
    ],
)  # fmt: skip
def test_no_text_makes_redaction_slow(part):
    """Time grows with the length, not its square: 16 times the text may take 16 times as long, not 256 times."""

    def seconds(length):
        text = part * (length // len(part))
        start = time.process_time()
        redact_text(text)
        return time.process_time() - start

    small = min(seconds(5_000) for _ in range(3))
    assert seconds(80_000) < max(60 * small, 0.05)


def test_values_of_secret_names_are_replaced_at_any_depth_and_the_rest_is_kept():
    value = {
        "services": {
            "m": {"api_key": "abc", "url": "https://u:p@h/v1", "max_tokens": 5, "headers": [("X-Api-Key", 1)]}
        },
        "credentials": {"user": "u", "keys": ["a", "b"], "none": None, "on": True},
        "password": 1234,
        "token": "${HF_TOKEN}",
        "secret": "",
        7: "sk-" + "a1b2" * 6,
    }
    assert redact_value(value) == {
        "services": {
            "m": {
                "api_key": "[redacted]",
                "url": "https://[redacted]@h/v1",
                "max_tokens": 5,
                "headers": [("X-Api-Key", 1)],
            }
        },
        "credentials": {"user": "[redacted]", "keys": ["[redacted]", "[redacted]"], "none": None, "on": True},
        "password": "[redacted]",
        "token": "${HF_TOKEN}",
        "secret": "",
        7: "[redacted]",
    }
    assert value["password"] == 1234


@pytest.mark.parametrize(
    ("command", "recorded"),
    [
        (["nel", "--api-key", "abc", "--model", "m"], ["nel", "--api-key", "[redacted]", "--model", "m"]),
        (["--api-key=abc"], ["--api-key=[redacted]"]),
        (["-O", "services.m.api_key=abc"], ["-O", "services.m.api_key=[redacted]"]),
        (["--model-url", "https://u:p@h/v1"], ["--model-url", "https://[redacted]@h/v1"]),
        (["--max-tokens", "5"], ["--max-tokens", "5"]),
        ([], []),
    ],
)
def test_a_command_line_is_recorded_without_its_credentials(command, recorded):
    assert redact_command(command) == recorded


@pytest.mark.parametrize(
    ("url", "stripped"),
    [
        ("https://host:8000/v1/chat/completions", "https://host:8000/v1/chat/completions"),
        ("https://u:p@host/v1", "https://host/v1"),
        ("https://token@host/v1", "https://host/v1"),
        ("https://u:p@ss@host/v1", "https://host/v1"),
        ("https://host/v1?api_key=1&x=%20a&key=2&y", "https://host/v1?x=%20a&y"),
        ("https://host/v1?api%5Fkey=1", "https://host/v1"),
        ("https://host/a@b?q=c@d", "https://host/a@b?q=c@d"),
        ("https://host/#access_token=1", "https://host/"),
        ("https://u:p@[::1]:80/v1", "https://[::1]:80/v1"),
        ("host:8000/v1", "host:8000/v1"),
        ("u:p@host:8000/v1", "host:8000/v1"),
        ("http://[bad", "http://[bad"),
        ("", ""),
    ],
)
def test_a_url_loses_its_credentials_and_nothing_else(url, stripped):
    assert strip_credentials(url) == stripped
    assert strip_credentials(stripped) == stripped


class Reply(msgspec.Struct):
    content: str
    calls: list[dict[str, str]]


SECRET = 'p"ä/ss w+rd%12\\x'


def test_a_runs_own_secret_values_are_replaced_wherever_they_stand():
    redactor = Redactor([SECRET])
    forms = [SECRET, json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False), quote(SECRET), quote(SECRET, safe="")]
    for form in [*forms, quote(SECRET, safe="").lower().replace("w%2brd", "w%2brd")]:
        assert redactor.text(f"<{form.strip(chr(34))}>") == "<[redacted]>"
    assert redactor.value({"a": [SECRET, ("x", SECRET)], SECRET: 1, "n": None}) == {
        "a": ["[redacted]", ("x", "[redacted]")],
        "[redacted]": 1,
        "n": None,
    }
    assert redactor.value(Reply(f"it is {SECRET}", [{"k": SECRET}])) == Reply("it is [redacted]", [{"k": "[redacted]"}])


def test_talk_about_keys_is_not_touched_and_not_copied():
    redactor = Redactor([SECRET])
    value = {"messages": [{"role": "user", "content": "api_key=abc, Bearer abcdef123456"}], "reply": Reply("x", [])}
    assert redactor.value(value) is value
    assert redactor.text(value["messages"][0]["content"]) is value["messages"][0]["content"]


def test_short_values_could_be_words_and_are_ignored():
    assert not Redactor(["", "  ", "hunter2", "x" * 11, " " * 20])
    assert Redactor(["x" * 12])
    text = "hunter2"
    assert Redactor(["hunter2"]).text(text) is text


def test_a_value_that_contains_another_is_replaced_whole():
    redactor = Redactor(["secret-value", "secret-value-longer"])
    assert redactor.text("secret-value-longer secret-value") == "[redacted] [redacted]"


@given(
    secret=st.text(min_size=12, max_size=30).filter(lambda text: len(text.strip()) >= 12), around=st.text(max_size=20)
)
@settings(deadline=None, max_examples=150)
def test_no_secret_survives_in_text_json_or_url(secret, around):
    secret = secret.strip()
    redactor = Redactor([secret])
    encodable = secret.encode("utf-8", "ignore").decode() == secret
    forms = [secret, json.dumps(secret)[1:-1], *([quote(secret, safe="")] if encodable else [])]
    for form in forms:
        assert "[redacted]" in redactor.text(around + form + around)
