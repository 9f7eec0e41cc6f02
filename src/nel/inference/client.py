"""`ModelClient`: the one way in which NEL asks a model."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from nel.core.errors import ServiceError, UsageError
from nel.core.secrets import is_secret_name, strip_credentials
from nel.inference.cache import CacheKey, ResponseCache
from nel.inference.chain import AdapterRequest, AdapterResponse, Chain, InterceptContext, as_object
from nel.inference.clock import Clock, SystemClock
from nel.inference.endpoint import Answer, Endpoint, GaveUp, Outgoing, with_path
from nel.inference.estimate import TokenEstimate
from nel.inference.explain import excerpt, inference_error
from nel.inference.failure import UNREADABLE, Failure, of_status
from nel.inference.images import image_urls
from nel.inference.limits import Limits
from nel.inference.protocols import PROTOCOLS, check_parameters
from nel.inference.request import ModelRequest
from nel.inference.retry import RandomSource
from nel.inference.settings import ServiceSettings
from nel.inference.transport import Reply, Transport, TransportError
from nel.observability.records import ModelResponse

_log = logging.getLogger(__name__)
_encode: Final = msgspec.json.Encoder().encode
_LARGE: Final = 1 << 20


class ModelClient:
    """Asks one service; owns its HTTP, retries, limits and generation parameters, and is shared by all that use it.

    Belongs to one event loop; `close()` it there. `transport`, `clock` and `source` (jitter) are for tests.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        transport: Transport | None = None,
        chain: Chain | None = None,
        clock: Clock | None = None,
        cache: ResponseCache | None = None,
        source: RandomSource | None = None,
    ) -> None:
        if transport is None:
            from nel.inference.aiohttp_transport import AiohttpTransport

            transport = AiohttpTransport(max_reply_bytes=settings.max_reply_bytes)
        self.settings = settings
        self._endpoint = Endpoint(settings, transport, clock or SystemClock(), source or random.Random())
        self._chain = chain or Chain()
        self._cache = cache or (ResponseCache(settings.cache_dir) if settings.cache_dir is not None else None)
        self._protocol = PROTOCOLS[settings.protocol]
        self._parameters = {name: value for name, value in settings.generation.items() if value is not None}
        self._reasoning = re.compile(settings.reasoning_pattern, re.DOTALL) if settings.reasoning_pattern else None
        self._estimate = TokenEstimate() if settings.tokens_per_minute else None
        headers = {"Content-Type": "application/json", "User-Agent": "nel"}
        if settings.api_key:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        self._headers = headers | dict(settings.headers)

    @property
    def limits(self) -> Limits:
        """What of the service is in use."""
        return self._endpoint.limits

    async def generate(self, request: ModelRequest) -> list[ModelResponse]:
        """The `request.n` answers, one for each repeat from `request.repeat` on.

        Raises `InferenceError` where the service gave no answer, another `AttemptError` where an interceptor refused,
        and `UsageError` where the protocol cannot carry the request.
        """
        if request.n == 1:
            return (await self._ask(request))[:1]
        if request.n < 1:
            raise UsageError(f"service {self.settings.name}: {request.n} answers were asked for; at least 1 is needed")
        found: list[ModelResponse] = []
        if (
            self._protocol.SEVERAL
            and not self._chain
            and self._cache is None
            and "seed" not in self.parameters(request)
        ):
            found = (await self._ask(request))[: request.n]
        # One by one: what the server gave too few of, and answers that differ in their seed, or are kept or intercepted
        # each for itself.
        missing = [replace(request, n=1, repeat=request.repeat + at) for at in range(len(found), request.n)]
        rest = await asyncio.gather(*(self._ask(single) for single in missing), return_exceptions=True)
        for answers in rest:
            if isinstance(answers, BaseException):
                raise answers
            found.append(answers[0])
        return found

    async def chat(self, messages: Sequence[Mapping[str, Any]], *, repeat: int = 0, **generation: Any) -> ModelResponse:
        """The answer to a conversation; `generation` replaces the service's parameters one by one."""
        return (await self.generate(ModelRequest(messages=messages, repeat=repeat, generation=generation)))[0]

    async def complete(self, prompt: str, *, repeat: int = 0, **generation: Any) -> ModelResponse:
        """The continuation of a text; for a chat service the text is one user message."""
        return (await self.generate(ModelRequest(prompt=prompt, repeat=repeat, generation=generation)))[0]

    def check(self, request: ModelRequest) -> None:
        """Raise `UsageError` where the service's protocol cannot carry the request."""
        where = f"service {self.settings.name}"
        check_parameters(request.generation, self.settings.protocol, where)
        lacking = self._protocol.check(request)
        if lacking is not None:
            raise UsageError(f"{where}: the protocol {self.settings.protocol} cannot carry {lacking}")

    def parameters(self, request: ModelRequest) -> dict[str, Any]:
        """The generation parameters of a request by NEL's names: the service's, replaced by its own, with the seed of
        its repeat."""
        parameters = dict(self._parameters)
        for name, value in request.generation.items():
            if value is None:
                parameters.pop(name, None)
            else:
                parameters[name] = value
        if request.repeat and "seed" in parameters:
            parameters["seed"] += request.repeat
        return parameters

    def identity(self) -> dict[str, Any]:
        """All of the service and of its chain that can change an answer."""
        interceptors = self._chain.identity()
        return self.settings.identity() | ({"interceptors": interceptors} if interceptors else {})

    async def list_models(self) -> list[str]:
        """The names that the service offers at `/models`; `ServiceError` where it gives no list."""
        url = self.settings.urls[0]
        path = urlsplit(url).path.rstrip("/")
        models = with_path(url, path.removesuffix(self._protocol.SUFFIX) + "/models")
        shown = f"service {self.settings.name}, {strip_credentials(models)}"
        headers = {name: value for name, value in self._headers.items() if name != "Content-Type"}
        try:
            async with asyncio.timeout(min(30.0, self.settings.request_timeout)):
                reply = await self._endpoint.transport.send(models, headers, None)
        except TimeoutError:
            raise ServiceError(f"{shown}: no reply within 30 s", hint="Is the server running?") from None
        except TransportError as error:
            raise ServiceError(f"{shown}: {error}", hint="Is the server running? Check host and port.") from None
        if reply.status != 200:
            refusal = inference_error(of_status(reply, frozenset()), models, 1, self.settings)
            raise ServiceError(refusal.message, hint=refusal.hint)
        try:
            return [model.id for model in msgspec.json.decode(reply.body, type=_Models).data]
        except UNREADABLE:
            said = excerpt(reply.body[:4096].decode("utf-8", "replace"), self.settings)
            raise ServiceError(f"{shown}: not a list of models: {said}") from None

    async def close(self) -> None:
        """Close all connections and the interceptors."""
        await self._chain.close()
        await self._endpoint.transport.close()

    # one request

    async def _ask(self, request: ModelRequest) -> list[ModelResponse]:
        self.check(request)
        images = await image_urls(request.images) if request.images else ()
        body = self._body(request, images)
        tokens = 0
        if self._estimate is not None:
            tokens = request.n * self._estimate.tokens(body, images)
        if self._chain:
            return await self._through_chain(request, body, tokens)
        outgoing = Outgoing(_encode(body), self._headers, "stream" in body, tokens)
        outcome = await self._cached(outgoing, body, request.repeat)
        if isinstance(outcome, GaveUp):
            raise inference_error(outcome.failure, outcome.url, outcome.tries, self.settings)
        return await self._finish(outcome, outgoing.data, request)

    def _body(self, request: ModelRequest, images: Sequence[str]) -> dict[str, Any]:
        settings = self.settings
        body: dict[str, Any] = {"model": settings.model} if settings.model else {}
        body |= self._protocol.build(request, self.parameters(request), images)
        if settings.stream if request.stream is None else request.stream:
            body |= self._protocol.STREAMING
        if request.n > 1:
            body["n"] = request.n
        body.update(settings.extra_body)
        return body

    async def _cached(self, outgoing: Outgoing, body: Mapping[str, Any], repeat: int) -> Answer | GaveUp:
        """The kept reply, else the endpoint's, which is then kept."""
        if self._cache is None:
            return await self._endpoint.ask(outgoing)
        key = self._cache_key(body, repeat)
        kept = await self._cache.get(key)
        if kept is not None:
            parsed = self._protocol.parse(kept, self.settings.retry_on_status)
            if not isinstance(parsed, Failure):
                return Answer(parsed, kept, cached=True)
        outcome = await self._endpoint.ask(outgoing)
        if isinstance(outcome, Answer):
            try:
                await self._cache.put(key, outcome.data)
            except OSError as error:
                _log.warning("a reply could not be kept in %s: %s", self._cache.directory, error)
        return outcome

    def _cache_key(self, body: Mapping[str, Any], repeat: int) -> CacheKey:
        return CacheKey.of({**self.settings.place(), "protocol": self.settings.protocol}, body, repeat)

    async def explain_miss(self, request: ModelRequest) -> str:
        """Which part of a request differs from the nearest one that the cache keeps; for requests without a chain."""
        if self._cache is None:
            return "the service has no cache"
        images = await image_urls(request.images) if request.images else ()
        key = self._cache_key(self._body(request, images), request.repeat)
        return await asyncio.to_thread(self._cache.explain_miss, key)

    async def _through_chain(self, request: ModelRequest, body: dict[str, Any], tokens: int) -> list[ModelResponse]:
        """The same with the interceptors around it; they see the last reply of the tries, whatever its status."""
        settings = self.settings
        secret = {k: v for k, v in self._headers.items() if is_secret_name(k)}
        last: Answer | GaveUp | None = None
        sent = b""
        own_path = urlsplit(settings.urls[0]).path

        async def endpoint(asked: AdapterRequest) -> AdapterResponse:
            nonlocal last, sent
            sent = _encode(asked.body)
            path = asked.path if asked.path != own_path else None
            outgoing = Outgoing(sent, asked.headers | secret, bool(asked.body.get("stream")), tokens, path)
            last = await self._cached(outgoing, asked.body, request.repeat)
            if isinstance(last, Answer):
                return AdapterResponse(200, {"Content-Type": "application/json"}, msgspec.json.decode(last.data))
            reply = last.failure.reply
            if reply is None:
                raise inference_error(last.failure, last.url, last.tries, settings)
            return AdapterResponse(reply.status, dict(reply.headers), as_object(reply.body))

        headers = {name: value for name, value in self._headers.items() if name not in secret}
        ctx = InterceptContext(
            service=settings.name,
            protocol=settings.protocol,
            model=settings.model,
            session=request.session,
            repeat=request.repeat,
        )
        # A copy: interceptors may change the body in place, and its messages are the caller's.
        asking = AdapterRequest(own_path, headers, msgspec.json.decode(_encode(body)))
        response = await self._chain.run(ctx, asking, endpoint)
        return await self._finish(self._from_chain(response, last), sent or _encode(body), request)

    def _from_chain(self, response: AdapterResponse, last: Answer | GaveUp | None) -> Answer:
        if isinstance(last, GaveUp) and last.failure.reply is not None:
            reply = last.failure.reply
            if (response.status, response.body) == (reply.status, as_object(reply.body)):
                raise inference_error(last.failure, last.url, last.tries, self.settings)
        data = _encode(response.body)
        if 200 <= response.status < 300:
            parsed = self._protocol.parse(data, self.settings.retry_on_status)
        else:
            parsed = of_status(Reply(response.status, response.headers, data), self.settings.retry_on_status)
        if isinstance(parsed, Failure):
            url = last.url if isinstance(last, GaveUp) else self.settings.urls[0]
            raise inference_error(parsed, url, last.tries if last is not None else 1, self.settings)
        return replace(last, responses=parsed, data=data) if isinstance(last, Answer) else Answer(parsed, data)

    async def _finish(self, answer: Answer, sent: bytes, request: ModelRequest) -> list[ModelResponse]:
        """Complete the responses with what is known of the exchange."""
        request_hash, response_hash = await _hexdigest(sent), await _hexdigest(answer.data)
        prices = self.settings.prices
        for response in answer.responses:
            response.request_hash = request_hash
            response.response_hash = response_hash
            response.latency_ms = answer.latency_ms
            response.ttft_ms = answer.ttft_ms
            response.tries = answer.tries
            response.replica = answer.replica
            response.cached = answer.cached
            if self._reasoning is not None:
                _split_reasoning(self._reasoning, response)
            if self._estimate is not None:
                self._estimate.learn(response.completion_tokens)
            if prices is not None:
                response.cost = 0.0 if answer.cached else prices.cost_of(response)
            if request.keep_raw:
                response.raw_response = msgspec.json.decode(answer.data)
        return answer.responses


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def _hexdigest(data: bytes) -> str:
    if len(data) < _LARGE:
        return hashlib.sha256(data).hexdigest()
    return (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()


def _split_reasoning(pattern: re.Pattern[str], response: ModelResponse) -> None:
    """Move what `pattern` matches (its first group, where it has one) from the answer to the reasoning."""
    found = [match[1] if pattern.groups else match[0] for match in pattern.finditer(response.content)]
    if found:
        response.content = pattern.sub("", response.content).strip()
        before = [response.reasoning_content] if response.reasoning_content else []
        response.reasoning_content = "\n".join([*before, *(text.strip() for text in found if text)]) or None
