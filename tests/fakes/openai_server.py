"""A fake OpenAI-compatible server over real HTTP, for tests, benchmarks and kill tests.

async with FakeOpenAI(answer=lambda body: "42") as server: ...      # in this event loop
with FakeOpenAI() as server: ...                                    # in a thread, for synchronous code
python tests/fakes/openai_server.py --port 0 --answers FILE.json    # a process; prints its URL on the first line
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aiohttp import web
from openai_faults import Fault, break_transport, error_body
from openai_wire import REPLIES, Answer, prompt_text, stream_events

type AnswerFunction = Callable[[dict[str, Any]], str | Mapping[str, Any] | Answer]
type Rule = Callable[[dict[str, Any], int], Fault | None]


@dataclass(slots=True)
class Recorded:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    raw: bytes
    at: float
    """Seconds on the monotonic clock."""


def echo(body: dict[str, Any]) -> str:
    """The text of the last user turn."""
    return prompt_text(body)


class FakeOpenAI:
    """Answers `/v1/chat/completions`, `/v1/completions`, `/v1/responses`, `/v1/models` and `/health`.

    `answer(body)` gives text, the fields of an `Answer`, or a whole reply body (a dict with `choices`, `output` or
    `error`); it is called once for each of the `n` choices.
    """

    def __init__(
        self,
        answer: AnswerFunction = echo,
        *,
        models: Iterable[str] = ("fake",),
        rule: Rule | None = None,
        delay: float = 0.0,
        api_key: str | None = None,
        record: bool = True,
        port: int = 0,
    ) -> None:
        self.answer = answer
        self.models = list(models)
        self.rule = rule
        """Called with the body and the request's number (from 0) when the script is empty."""
        self.delay = delay
        self.api_key = api_key
        """When set, another or no bearer token is a 401."""
        self.requests: list[Recorded] = []
        self.count = 0
        """Model requests that arrived; `/v1/models` and `/health` do not count."""
        self.in_flight = 0
        self.max_in_flight = 0
        self._record = record
        self._port = port
        self._script: deque[Fault | None] = deque()
        self._runner: web.AppRunner | None = None
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], None] | None = None
        self._closing = asyncio.Event()

    # addresses

    @property
    def url(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def chat_url(self) -> str:
        return f"{self.url}/v1/chat/completions"

    @property
    def completions_url(self) -> str:
        return f"{self.url}/v1/completions"

    @property
    def responses_url(self) -> str:
        return f"{self.url}/v1/responses"

    # what arrived

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    def script(self, faults: Iterable[Fault | None]) -> None:
        """One entry for each request to come, in order of arrival; None answers as usual."""
        self._script.extend(faults)

    # life

    async def start(self) -> Self:
        """Listen on loopback in the running loop."""
        self._closing = asyncio.Event()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_get("/health", self._health)
        app.router.add_get("/v1/models", self._list_models)
        for path in REPLIES:
            app.router.add_post(path, self._model)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=1024)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        """Close every connection; hanging requests end."""
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        started = threading.Event()

        async def serve() -> None:
            await self.start()
            done = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(done.set)
            started.set()
            await done.wait()
            await self.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="fake-openai", daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the fake server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stop is not None
        assert self._thread is not None
        self._stop()
        self._thread.join(10)

    # answers

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _list_models(self, request: web.Request) -> web.Response:
        if self._refused(request):
            return web.json_response(error_body(401), status=401)
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})

    def _refused(self, request: web.Request) -> bool:
        return self.api_key is not None and request.headers.get("Authorization") != f"Bearer {self.api_key}"

    async def _model(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._respond(request, raw)
        finally:
            self.in_flight -= 1

    async def _respond(self, request: web.Request, raw: bytes) -> web.StreamResponse:
        number = self.count
        self.count += 1
        body = json.loads(raw)
        if self._record:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.requests.append(Recorded(request.path, headers, body, raw, time.monotonic()))
        if self._refused(request):
            return web.json_response(error_body(401), status=401)
        fault = self._script.popleft() if self._script else self.rule(body, number) if self.rule else None
        if fault is None:
            if self.delay:
                await asyncio.sleep(self.delay)
            return await self._send(request, body, self._reply(request.path, body, number))
        if fault.delay and fault.transport != "loris":
            await asyncio.sleep(fault.delay)
        if fault.transport:
            payload = json.dumps(self._reply(request.path, body, number)).encode()
            return await break_transport(request, fault, payload, self._closing)
        if fault.change is not None:
            reply = fault.change(self._reply(request.path, body, number))
            return await self._send(request, body, reply, fault.content_type)
        payload = fault.body if fault.body is not None else error_body(fault.status)
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        headers = dict(fault.headers)
        if fault.retry_after is not None:
            headers["Retry-After"] = fault.retry_after
        return web.Response(status=fault.status, body=data, content_type=fault.content_type, headers=headers)

    def _reply(self, path: str, body: dict[str, Any], number: int) -> dict[str, Any]:
        values = [self.answer(body) for _ in range(body.get("n") or 1)]
        if isinstance(values[0], Mapping) and values[0].keys() & {"choices", "output", "error"}:
            return dict(values[0])
        return REPLIES[path](body, [Answer.of(value) for value in values], number)

    async def _send(
        self, request: web.Request, body: dict[str, Any], reply: dict[str, Any], content_type: str = "application/json"
    ) -> web.StreamResponse:
        if not body.get("stream") or reply.get("error"):
            return web.Response(body=json.dumps(reply).encode(), content_type=content_type)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in stream_events(request.path, body, reply):
            await response.write(event)
        return response


class InstantProtocol(asyncio.Protocol):
    """One fixed HTTP reply to every request, as fast as Python can: for benchmarks of a client."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + size:
                return
            self._buffer = self._buffer[end + 4 + size :]
            assert self._transport is not None
            self._transport.write(self._reply)


def instant_reply(size: int, text: str = "ok") -> bytes:
    """Head and body of a chat reply whose body is about `size` bytes long and ends its answer with `text`."""
    filler = "x" * max(0, size - 420)
    reply = REPLIES["/v1/chat/completions"]({"model": "fake"}, [Answer(content=f"{filler} {text}".lstrip())], 0)
    body = json.dumps(reply, separators=(",", ":")).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _serve_instant(port: int, reply: bytes) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: InstantProtocol(reply), "127.0.0.1", port, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def _serve(server: FakeOpenAI) -> None:
    async with server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


def answers_from(table: Mapping[str, Any], default: str) -> AnswerFunction:
    """Look an answer up by the whole text of the last user turn, else by a key that stands in it."""

    def answer(body: dict[str, Any]) -> Any:
        text = prompt_text(body)
        if text in table:
            return table[text]
        return next((value for key, value in table.items() if key in text), default)

    return answer


def failing(rates: Iterable[str], seed: int) -> Rule:
    """A rule from `STATUS=RATE` entries: that share of the requests fails so."""
    table = [(int(status), float(rate)) for status, rate in (entry.split("=") for entry in rates)]
    source = random.Random(seed)

    def rule(_: dict[str, Any], __: int) -> Fault | None:
        draw = source.random()
        for status, rate in table:
            if draw < rate:
                return Fault(status=status, retry_after="0" if status == 429 else None)
            draw -= rate
        return None

    return rule


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--answers", type=Path, help="JSON object from a user turn's text, or a part of it, to an answer")
    what.add_argument("--echo", action="store_true", help="answer with the question (the default)")
    what.add_argument("--instant", type=int, metavar="BYTES", help="one fixed chat reply of this size to everything")
    parser.add_argument("--default", default="I do not know", help="what is said when --answers has no entry")
    parser.add_argument("--model", action="append", help="a name for /v1/models (repeatable)")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--fail", action="append", default=[], metavar="STATUS=RATE", help="fail a share of requests")
    parser.add_argument("--seed", type=int, default=0, help="of --fail")
    args = parser.parse_args()
    if args.instant is not None:
        if args.delay or args.fail or args.model:
            parser.error("--instant knows no --delay, --fail or --model")
        asyncio.run(_serve_instant(args.port, instant_reply(args.instant)))
        return
    answer: AnswerFunction = echo
    if args.answers is not None:
        answer = answers_from(json.loads(args.answers.read_text()), args.default)
    rule = failing(args.fail, args.seed) if args.fail else None
    server = FakeOpenAI(
        answer, models=args.model or ["fake"], rule=rule, delay=args.delay, record=False, port=args.port
    )
    asyncio.run(_serve(server))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
