"""`Endpoint`: one body in, one parsed reply out; the tries, limits and replicas between the two."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from nel.core.secrets import strip_credentials
from nel.inference.clock import Clock
from nel.inference.failure import Failure, of_status
from nel.inference.limits import Limits, Verdict
from nel.inference.protocols import PROTOCOLS
from nel.inference.replicas import Replica, Replicas
from nel.inference.retry import Backoff, RandomSource
from nel.inference.settings import ServiceSettings
from nel.inference.sse import EventStream
from nel.inference.transport import Reply, Transport, TransportError
from nel.observability.records import ModelResponse


@dataclass(slots=True)
class Outgoing:
    """A body on its way to the endpoint."""

    data: bytes
    headers: Mapping[str, str]
    stream: bool = False
    tokens: int = 0
    """Estimate of what it will use, where tokens are limited."""
    path: str | None = None
    """Replaces the path of the service's URL."""


@dataclass(slots=True)
class Answer:
    """A try that succeeded."""

    responses: list[ModelResponse]
    data: bytes
    """The raw reply; of a stream, the reply that it added up to."""
    latency_ms: float = 0.0
    ttft_ms: float | None = None
    tries: int = 1
    replica: str | None = None
    cached: bool = False


@dataclass(slots=True)
class GaveUp:
    """The last of the tries that all failed."""

    failure: Failure
    url: str
    tries: int = 1


class Endpoint:
    """The server side of a service: who is asked, how often, and how much at once."""

    def __init__(self, settings: ServiceSettings, transport: Transport, clock: Clock, source: RandomSource) -> None:
        self.settings = settings
        self.transport = transport
        self.limits = Limits(
            max_concurrent=settings.max_concurrent,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            adaptive=settings.adaptive,
            clock=clock,
        )
        self._clock = clock
        self._source = source
        self._backoff = Backoff()
        self._protocol = PROTOCOLS[settings.protocol]
        self._replicas = Replicas(settings.urls, clock)

    async def ask(self, outgoing: Outgoing) -> Answer | GaveUp:
        """Try until there is an answer or no further try is left. No slot is held during back-off."""
        tries = 0
        while True:
            tries += 1
            outcome, replica = await self._in_slot(outgoing)
            if isinstance(outcome, Answer):
                outcome.tries = tries
                outcome.replica = strip_credentials(replica.url) if len(self.settings.urls) > 1 else None
                return outcome
            if not outcome.retry or tries > self.settings.max_retries:
                return GaveUp(outcome, replica.url, tries)
            if not (outcome.unreachable and self._replicas.another_awake()):
                wall = self._clock.wall()
                await self._clock.sleep(self._backoff.delay(tries, outcome.retry_after, wall, self._source))

    async def _in_slot(self, outgoing: Outgoing) -> tuple[Answer | Failure, Replica]:
        permit = await self.limits.acquire(outgoing.tokens)
        replica = self._replicas.take()
        outcome: Answer | Failure | None = None
        used: int | None = None
        verdict = Verdict.NOTHING
        try:
            outcome = await self._try(outgoing, replica)
            if isinstance(outcome, Answer):
                verdict = Verdict.ANSWERED
                used = sum(response.total_tokens for response in outcome.responses)
            elif outcome.reply is not None:
                verdict = Verdict.OVERLOADED if outcome.overload else Verdict.NOTHING
                used = 0
            return outcome, replica
        finally:
            self._replicas.put(replica, unreachable=isinstance(outcome, Failure) and outcome.unreachable)
            self.limits.release(permit, used=used, verdict=verdict)

    async def _try(self, outgoing: Outgoing, replica: Replica) -> Answer | Failure:
        clock, retried = self._clock, self.settings.retry_on_status
        events = EventStream(self._protocol.stream(), clock) if outgoing.stream else None
        url = replica.url if outgoing.path is None else with_path(replica.url, outgoing.path)
        on_chunk = events.feed if events is not None else None
        started = clock.monotonic()
        try:
            async with asyncio.timeout(self.settings.request_timeout):
                reply = await self.transport.send(url, outgoing.headers, outgoing.data, on_chunk)
        except TimeoutError:
            return Failure(
                category="model_timeout", detail=f"no whole reply within {self.settings.request_timeout:g} s"
            )
        except TransportError as error:
            category = "connection_error" if error.unreachable else "bad_response"
            return Failure(category=category, detail=str(error), unreachable=error.unreachable, retry=error.retry)
        ended = clock.monotonic()
        if not 200 <= reply.status < 300:
            return of_status(reply, retried)
        data = events.reply() if events is not None and not reply.body else reply.body
        parsed = self._protocol.parse(data, retried) if isinstance(data, bytes) else data
        if isinstance(parsed, Failure):
            parsed.reply = Reply(reply.status, reply.headers, data) if isinstance(data, bytes) else None
            return parsed
        assert isinstance(data, bytes)
        first = events.first_token_at if events is not None else None
        ttft = None if first is None else (first - started) * 1000
        return Answer(parsed, data, (ended - started) * 1000, ttft)


def with_path(url: str, path: str) -> str:
    """`url` with another path; host, credentials and query stay."""
    return urlunsplit(urlsplit(url)._replace(path=path))
