"""The wire protocols by name, and the check that a protocol can carry what is asked of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from nel.core.errors import UsageError
from nel.inference.failure import Failure
from nel.inference.protocols import chat_completions, completions, responses
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse


class StreamReader(Protocol):
    """Puts the events of one stream together into the reply that would have come without streaming."""

    started: bool
    """Whether a token has come."""

    def add(self, event: bytes) -> bool:
        """Take one event's data; True when no more is to be expected."""
        ...

    def reply(self, *, done: bool) -> bytes | Failure:
        """The body of the whole reply; without `done` the stream ended by itself and may be too short."""
        ...


class WireProtocol(Protocol):
    """One protocol; the modules of this package are its implementations."""

    SUFFIX: str
    """How the path of its URLs ends."""
    CARRIES: frozenset[str]
    """The generation parameters that it can carry, by NEL's names."""
    STREAMING: dict[str, Any]
    """The fields that ask for a stream."""
    SEVERAL: bool
    """Whether one request can ask for several answers."""

    def check(self, request: ModelRequest) -> str | None:
        """What of the request's content the protocol cannot carry (a noun); None when it can carry all."""
        ...

    def build(self, request: ModelRequest, parameters: dict[str, Any], images: Sequence[str]) -> dict[str, Any]:
        """The body without model, streaming and extra fields; `images` are URLs or data URIs."""
        ...

    def parse(self, body: bytes, retried: frozenset[int]) -> list[ModelResponse] | Failure:
        """The choices that a reply with status 200 holds."""
        ...

    def stream(self) -> StreamReader:
        """A reader for one stream."""
        ...


PROTOCOLS: Final[dict[str, WireProtocol]] = {
    "chat_completions": chat_completions,
    "completions": completions,
    "responses": responses,
}
GENERATION: Final = frozenset[str]().union(*(protocol.CARRIES for protocol in PROTOCOLS.values()))
"""Every generation parameter that has a name in NEL."""


def protocol_of_path(path: str) -> str | None:
    """The protocol whose suffix a URL's path has; None for a path of another kind."""
    by_length = sorted(PROTOCOLS, key=lambda name: -len(PROTOCOLS[name].SUFFIX))
    return next((name for name in by_length if path.rstrip("/").endswith(PROTOCOLS[name].SUFFIX)), None)


def check_parameters(generation: Mapping[str, Any], protocol: str, where: str) -> None:
    """Raise `UsageError` for a parameter that `protocol` cannot carry; `where` leads the message."""
    carried = PROTOCOLS[protocol].CARRIES
    for name in generation.keys() - carried:
        if name not in GENERATION:
            raise UsageError(
                f"{where}: {unknown_name('parameter', name, GENERATION)}",
                hint="A parameter that NEL has no name for goes into the service's `extra_body`.",
            )
        if generation[name] is not None:
            others = [other for other, wire in PROTOCOLS.items() if name in wire.CARRIES]
            raise UsageError(
                f"{where}: the protocol {protocol} cannot carry {name!r}",
                hint=f"Remove it, or use a service with the protocol {' or '.join(others)}.",
            )


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """`unknown <what> 'x'; did you mean 'y'?`, or the list of names where none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"unknown {what} {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(names)}")
