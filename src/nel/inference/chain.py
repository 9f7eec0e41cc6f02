"""`Chain`: interceptors around a request, in the client and in the proxy alike.

A request passes the interceptors in their order, then the endpoint; the response passes them back in reverse order. An
interceptor that answers a request itself ends its way there: the response goes back through those before it alone.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from nel.core.errors import AttemptError, UsageError
from nel.inference.failure import UNREADABLE

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class InterceptContext:
    """What an interceptor knows of a request beside the request itself."""

    service: str
    protocol: str
    model: str
    session: str = ""
    """The same for all requests of one attempt."""
    repeat: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    """For what an interceptor's two halves tell each other; one dict for each request."""


@dataclass(slots=True)
class AdapterRequest:
    """A request as it goes over the wire, without credentials."""

    path: str
    """Path of the URL; the host is the endpoint's."""
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(slots=True)
class AdapterResponse:
    """A response as it came over the wire; a stream comes as the reply that it adds up to."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]


def as_object(body: bytes) -> dict[str, Any]:
    """A reply that may be anything as the JSON object that interceptors expect."""
    try:
        value = msgspec.json.decode(body)
    except UNREADABLE:
        value = body[:4096].decode("utf-8", "replace")
    return value if isinstance(value, dict) else {"error": {"message": str(value)[:4096], "type": "not_json"}}


type Endpoint = Callable[[AdapterRequest], Awaitable[AdapterResponse]]


class BaseInterceptor:
    """Looks at, changes or answers requests, or looks at and changes responses; override either method or both."""

    name: ClassVar[str] = ""
    version: ClassVar[str] = "1"
    """Raise it when the same settings come to change requests or responses in another way."""
    changes: bool = True
    """Whether what is sent or returned may differ from what came in: then it is part of an attempt's identity."""
    best_effort: bool = False
    """Whether its errors are logged and passed over; only for one that changes nothing."""

    async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterRequest | AdapterResponse:
        """The request to send on, or the answer to it."""
        del ctx
        return request

    async def on_response(self, ctx: InterceptContext, response: AdapterResponse) -> AdapterResponse:
        """The response to give back."""
        del ctx
        return response

    def settings(self) -> dict[str, Any]:
        """What it was configured with, as far as that can change an answer."""
        return {}

    def identity(self) -> dict[str, Any]:
        """What it adds to an attempt's identity."""
        return {"interceptor": self.name, "version": self.version, **self.settings()}

    async def close(self) -> None:
        """Release what it holds."""


class Chain:
    """Interceptors in the order in which a request meets them."""

    def __init__(self, interceptors: Sequence[BaseInterceptor] = ()) -> None:
        for interceptor in interceptors:
            if interceptor.best_effort and interceptor.changes:
                raise UsageError(
                    f"interceptor {interceptor.name}: it changes what is sent or returned, so its errors cannot be "
                    "passed over",
                    hint="Set `best_effort` to false, or `changes` to false where it only looks.",
                )
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def identity(self) -> list[dict[str, Any]]:
        """The identities of those that change something, in their order."""
        return [interceptor.identity() for interceptor in self._interceptors if interceptor.changes]

    async def run(self, ctx: InterceptContext, request: AdapterRequest, endpoint: Endpoint) -> AdapterResponse:
        """The response to `request`, asked of `endpoint` unless an interceptor answers it.

        `AttemptError` from an interceptor or from the endpoint passes; another error of an interceptor becomes an
        `AttemptError` (`solver_error`) that names it.
        """
        passed: list[BaseInterceptor] = []
        response: AdapterResponse | None = None
        for interceptor in self._interceptors:
            got = await _call(interceptor, interceptor.on_request, ctx, request)
            if isinstance(got, AdapterResponse):
                response = got
                break
            request = got
            passed.append(interceptor)
        if response is None:
            response = await endpoint(request)
        for interceptor in reversed(passed):
            response = await _call(interceptor, interceptor.on_response, ctx, response)
        return response

    async def close(self) -> None:
        """Close every interceptor."""
        for interceptor in self._interceptors:
            await interceptor.close()


async def _call[In, Out](
    interceptor: BaseInterceptor,
    method: Callable[[InterceptContext, In], Awaitable[Out]],
    ctx: InterceptContext,
    value: In,
) -> Out | In:
    try:
        return await method(ctx, value)
    except AttemptError:
        raise
    except Exception as error:
        what = f"interceptor {interceptor.name or type(interceptor).__name__}, {method.__name__}: {error!r}"
        if not interceptor.best_effort:
            raise AttemptError(what, category="solver_error") from error
        _log.warning("%s (passed over)", what)
        return value
