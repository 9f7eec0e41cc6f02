"""What a service is told, what is refused, and what it is known by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nel.core.errors import UsageError
from nel.inference.cost import Prices
from nel.inference.settings import ServiceSettings

URL = "https://user:hunter2-password@host:8443/v1/chat/completions"


def service(**options: Any) -> ServiceSettings:
    return ServiceSettings(**{"name": "qwen", "urls": [URL], "model": "q3", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "chat"}, "unknown protocol 'chat'; did you mean 'chat_completions'"),
        ({"urls": []}, "no URL"),
        ({"urls": ["localhost:8000/v1"]}, "no http or https URL"),
        ({"urls": ["ftp://host/x"]}, "no http or https URL"),
        ({"protocol": "responses"}, "is that of the protocol chat_completions, not responses"),
        ({"urls": ["https://host/v1/completions"]}, "is that of the protocol completions, not chat_completions"),
        ({"generation": {"max_token": 3}}, "generation: unknown parameter 'max_token'; did you mean 'max_tokens'"),
        (
            {"urls": ["https://host/v1/responses"], "protocol": "responses", "generation": {"stop": ["x"]}},
            "generation: the protocol responses cannot carry 'stop'",
        ),
        ({"extra_body": {"messages": []}}, "extra_body may not set 'messages'"),
        ({"extra_body": {"stream": True}}, "extra_body may not set 'stream'"),
        ({"extra_body": {"n": 2}}, "extra_body may not set 'n'"),
        ({"extra_body": {"seed": 2}}, "Use `generation.seed`"),
        ({"reasoning_pattern": "("}, "reasoning_pattern"),
        ({"request_timeout": 0}, "request_timeout is 0"),
        ({"max_concurrent": 0}, "max_concurrent is 0"),
        ({"requests_per_minute": -1}, "requests_per_minute is -1"),
        ({"tokens_per_minute": 0}, "tokens_per_minute is 0"),
        ({"max_retries": -1}, "max_retries is -1"),
        ({"api_key": "sk-abc\n"}, "api_key holds a line break"),
        ({"headers": {"X-A": "b\r\nX-B: c"}}, "X-A holds a line break"),
    ],
)
def test_what_cannot_work_is_refused_with_the_service_and_the_field(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        service(**options)
    assert "service qwen" in str(caught.value)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "sk-abc" not in str(caught.value)


def test_an_endpoint_with_a_path_of_its_own_is_taken_as_it_is() -> None:
    assert service(urls=["https://gateway.example/invoke?api-version=3"]).urls


def test_identity_is_all_that_can_change_an_answer() -> None:
    generation = {"temperature": 0.5, "stop": None}
    settings = service(generation=generation, extra_body={"chat_template_kwargs": {}}, reasoning_pattern="<t>.*?</t>")
    assert settings.identity() == {
        "url": "https://host:8443/v1/chat/completions",
        "model": "q3",
        "protocol": "chat_completions",
        "generation": {"temperature": 0.5},
        "extra_body": {"chat_template_kwargs": {}},
        "reasoning_pattern": "<t>.*?</t>",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"api_key": "sk-0123456789"},
        {"headers": {"X-A": "b"}},
        {"request_timeout": 1.0},
        {"max_retries": 9},
        {"retry_on_status": frozenset({500})},
        {"max_concurrent": 2},
        {"requests_per_minute": 5.0},
        {"tokens_per_minute": 5.0},
        {"adaptive": False},
        {"prices": Prices(input=1.0, output=1.0)},
        {"cache_dir": Path("cache")},
        {"stream": True},
        {"max_reply_bytes": 5},
        {"urls": ["https://other:secret-word@host:8443/v1/chat/completions/"]},
        {"urls": [URL, "https://second/v1/chat/completions"]},
        {"generation": {"stop": None}},
    ],
)
def test_what_cannot_change_an_answer_is_no_part_of_identity(change: dict[str, Any]) -> None:
    assert replace(service(), **change).identity() == service().identity()


@pytest.mark.parametrize(
    "change",
    [
        {"urls": ["https://elsewhere/v1/chat/completions"]},
        {"model": "q4"},
        {"urls": ["https://host:8443/v1/completions"], "protocol": "completions"},
        {"generation": {"temperature": 0.1}},
        {"extra_body": {"x": 1}},
        {"reasoning_pattern": "x"},
        {"declared_identity": "weights"},
    ],
)
def test_what_can_change_an_answer_changes_identity(change: dict[str, Any]) -> None:
    assert replace(service(), **change).identity() != service().identity()


def test_a_declared_identity_stands_for_address_and_model() -> None:
    here = service(declared_identity="sha256:1", urls=["http://127.0.0.1:8000/v1/chat/completions"], model="a")
    there = service(declared_identity="sha256:1", urls=["http://127.0.0.1:9000/v1/chat/completions"], model="b")
    assert here.identity() == there.identity()
