"""`ServiceSettings`: all that the client must know of one service, checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nel.core.errors import UsageError
from nel.core.secrets import strip_credentials
from nel.inference.cost import Prices
from nel.inference.failure import RETRIED_STATUSES
from nel.inference.protocols import PROTOCOLS, check_parameters, protocol_of_path, unknown_name

_OWN_FIELDS = frozenset({"model", "messages", "prompt", "input", "n", "stream", "stream_options", "seed"})


@dataclass(slots=True, kw_only=True)
class ServiceSettings:
    """One service; all its `urls` are replicas of the same model. `UsageError` names the service and the field."""

    name: str
    urls: list[str] = field(repr=False)
    """Full endpoint URLs, e.g. `https://host/v1/chat/completions`."""
    protocol: str = "chat_completions"
    model: str = ""
    """The name that is sent; nothing is sent when it is empty."""
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the body that NEL has no name for; they replace generation parameters of the same name."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Generation parameters; a request's own replace them one by one, and None is not sent."""
    request_timeout: float = 600.0
    """Seconds that one try may take, from sending to the last byte."""
    max_retries: int = 5
    """Further tries after the first."""
    retry_on_status: frozenset[int] = RETRIED_STATUSES
    max_concurrent: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    """Prompt and completion tokens together."""
    adaptive: bool = True
    """Find the concurrency that the service bears, at most `max_concurrent`."""
    prices: Prices | None = None
    cache_dir: Path | None = None
    stream: bool = False
    reasoning_pattern: str | None = None
    """A regular expression; what it matches is taken out of the answer and kept as reasoning (its first group, where it
    has one)."""
    declared_identity: str | None = None
    """What stands for URL and model in the service's identity."""
    max_reply_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UsageError(f"service {self.name}: " + unknown_name("protocol", self.protocol, PROTOCOLS))
        if not self.urls:
            raise UsageError(f"service {self.name}: no URL")
        for url in self.urls:
            self._check_url(url)
        check_parameters(self.generation, self.protocol, f"service {self.name}: generation")
        self._check_extra_body()
        if self.reasoning_pattern is not None:
            try:
                re.compile(self.reasoning_pattern)
            except re.error as error:
                raise UsageError(f"service {self.name}: reasoning_pattern: {error}") from None
        self._check_headers()
        self._check_numbers()

    def _check_url(self, url: str) -> None:
        parts = urlsplit(url)
        shown = strip_credentials(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise UsageError(f"service {self.name}: {shown!r} is no http or https URL")
        found = protocol_of_path(parts.path)
        if found is not None and found != self.protocol:
            raise UsageError(
                f"service {self.name}: the URL {shown} is that of the protocol {found}, not {self.protocol}",
                hint=f"Set `protocol: {found}`, or the URL that ends in {PROTOCOLS[self.protocol].SUFFIX}.",
            )

    def _check_extra_body(self) -> None:
        for key in self.extra_body:
            if key in _OWN_FIELDS:
                raise UsageError(
                    f"service {self.name}: extra_body may not set {key!r}, which NEL sets itself",
                    hint="Use `generation.seed`." if key == "seed" else None,
                )

    def _check_headers(self) -> None:
        for name, value in {"api_key": self.api_key or "", **self.headers}.items():
            if any(ord(character) < 32 or ord(character) == 127 for character in value):
                raise UsageError(f"service {self.name}: {name} holds a line break or another control character")

    def _check_numbers(self) -> None:
        positive: Iterable[tuple[str, float | None]] = (
            ("request_timeout", self.request_timeout),
            ("max_concurrent", self.max_concurrent),
            ("requests_per_minute", self.requests_per_minute),
            ("tokens_per_minute", self.tokens_per_minute),
            ("max_reply_bytes", self.max_reply_bytes),
        )
        for name, value in positive:
            if value is not None and not value > 0:
                raise UsageError(f"service {self.name}: {name} is {value}; it must be greater than 0")
        if self.max_retries < 0:
            raise UsageError(f"service {self.name}: max_retries is {self.max_retries}; it must be 0 or more")

    def identity(self) -> dict[str, Any]:
        """All that can change an answer, and nothing else: equal identities may share answers.

        A service with several replicas is known by its first URL. Headers, time limits, retries, rates, prices, cache
        and streaming do not count.
        """
        return {
            **self.place(),
            "protocol": self.protocol,
            "generation": {name: value for name, value in self.generation.items() if value is not None},
            "extra_body": dict(self.extra_body),
            "reasoning_pattern": self.reasoning_pattern,
        }

    def place(self) -> dict[str, Any]:
        """Which model is asked where: the declared identity, else URL (without credentials) and model."""
        if self.declared_identity is not None:
            return {"identity": self.declared_identity}
        return {"url": strip_credentials(self.urls[0]).rstrip("/"), "model": self.model}
