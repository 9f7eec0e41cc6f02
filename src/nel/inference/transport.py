"""`Transport`: the two methods by which the client reaches a server; a test swaps in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class Reply:
    """What a server sent."""

    status: int
    headers: Mapping[str, str]
    """Names compare without case."""
    body: bytes
    """Empty where `on_chunk` took an event stream."""


class TransportError(Exception):
    """A request that got no whole reply; `unreachable` tells a broken connection from a reply that breaks HTTP."""

    def __init__(self, message: str, *, unreachable: bool, retry: bool = True) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.retry = retry


class Transport(Protocol):
    """Sends one request: no retries, no time limit of its own, no opinion on statuses."""

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        on_chunk: Callable[[bytes], bool] | None = None,
    ) -> Reply:
        """The reply to a POST of `body`, or to a GET without one; `TransportError` where there is none.

        The pieces of an event stream go to `on_chunk`, which returns True when it has seen enough.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
