"""Clients of the fake server, as the tests of this folder use them."""

from __future__ import annotations

from typing import Any, Self

from openai_server import FakeOpenAI
from virtual_clock import InstantClock

from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings

PROTOCOLS = ("chat_completions", "completions", "responses")


def url_of(server: FakeOpenAI, protocol: str) -> str:
    return {
        "chat_completions": server.chat_url,
        "completions": server.completions_url,
        "responses": server.responses_url,
    }[protocol]


def settings_for(server: FakeOpenAI, protocol: str = "chat_completions", **options: Any) -> ServiceSettings:
    return ServiceSettings(
        **{"name": "svc", "urls": [url_of(server, protocol)], "protocol": protocol, "model": "fake", **options}
    )


class Client(ModelClient):
    """A `ModelClient` for `async with`, which never waits between tries."""

    def __init__(self, settings: ServiceSettings, **options: Any) -> None:
        self.clock = options.pop("clock", None) or InstantClock()
        super().__init__(settings, clock=self.clock, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def client_of(server: FakeOpenAI, protocol: str = "chat_completions", **options: Any) -> Client:
    """A client of `server`; options of the client itself are picked out of those of its settings."""
    own = {name: options.pop(name) for name in ("transport", "chain", "clock", "cache", "source") if name in options}
    return Client(settings_for(server, protocol, **options), **own)
