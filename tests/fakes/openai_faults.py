"""`Fault`: one way in which a model server can misbehave, for `FakeOpenAI.script` and `FakeOpenAI.rule`."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to one request in place of an answer; see the constructors below."""

    status: int = 200
    retry_after: str | None = None
    body: Any = None
    """JSON value, or bytes sent as they are; None is the usual error body of `status`."""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    transport: str = ""
    """`reset`, `reset_mid_body`, `half_chunk`, `close`, `hang`, `hang_mid_body` or `loris`."""
    delay: float = 0.0
    """Seconds before anything is sent; with a `change`, before the changed answer."""
    change: Any = None
    """A function from the reply body (dict) that would have been sent to the one that is."""

    @classmethod
    def reset(cls) -> Fault:
        """The connection is reset before the headers."""
        return cls(transport="reset")

    @classmethod
    def close(cls) -> Fault:
        """The connection is closed politely before the headers."""
        return cls(transport="close")

    @classmethod
    def reset_mid_body(cls) -> Fault:
        """Headers and half of the body, then a reset."""
        return cls(transport="reset_mid_body")

    @classmethod
    def half_chunk(cls) -> Fault:
        """Chunked coding that ends inside a chunk."""
        return cls(transport="half_chunk")

    @classmethod
    def hang(cls) -> Fault:
        """Nothing is ever sent; the connection stays open."""
        return cls(transport="hang")

    @classmethod
    def hang_mid_body(cls) -> Fault:
        """Headers and half of the body, then nothing."""
        return cls(transport="hang_mid_body")

    @classmethod
    def loris(cls, delay: float = 0.01) -> Fault:
        """The body a byte at a time, `delay` seconds apart."""
        return cls(transport="loris", delay=delay)

    @classmethod
    def slow(cls, delay: float) -> Fault:
        """The right answer, `delay` seconds late."""
        return cls(delay=delay, change=lambda reply: reply)

    @classmethod
    def error_in_200(cls, code: Any = "server_error", message: str = "the engine died", type_: str = "") -> Fault:
        """Status 200 with an error body."""
        return cls(body={"error": {"message": message, "type": type_ or str(code), "code": code}})

    @classmethod
    def empty_choices(cls) -> Fault:
        return cls(change=lambda reply: {**reply, "choices": []})

    @classmethod
    def null_content(cls) -> Fault:
        """A message without content, tool calls or reasoning."""
        return cls(change=lambda reply: _message(reply, {"role": "assistant", "content": None}))

    @classmethod
    def only_reasoning(cls, field_name: str = "reasoning_content", text: str = "I thought about it") -> Fault:
        """Null content, with all that was said in a reasoning field."""
        return cls(change=lambda reply: _message(reply, {"role": "assistant", "content": None, field_name: text}))

    @classmethod
    def finish(cls, reason: str, content: str | None = "") -> Fault:
        """An answer that ended for `reason`."""
        return cls(
            change=lambda reply: {
                **reply,
                "choices": [
                    {**choice, "message": {"role": "assistant", "content": content}, "finish_reason": reason}
                    for choice in reply["choices"]
                ],
            }
        )

    @classmethod
    def wrong_json(cls) -> Fault:
        return cls(body=b'{"choices": [{"message": {"content": "cut o')

    @classmethod
    def wrong_shape(cls, body: Any) -> Fault:
        """Valid JSON that is no reply."""
        return cls(body=body)

    @classmethod
    def html(cls, status: int = 200) -> Fault:
        """A proxy's page instead of JSON."""
        return cls(status=status, body=b"<html><body>Bad gateway</body></html>", content_type="text/html")

    @classmethod
    def wrong_content_type(cls) -> Fault:
        """The right answer, called `text/plain`."""
        return cls(content_type="text/plain", change=lambda reply: reply)

    @classmethod
    def trailing_quotes(cls) -> Fault:
        """A tool call whose arguments end with a stray quote."""
        call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}"'}}
        return cls(change=lambda reply: _message(reply, {"role": "assistant", "content": None, "tool_calls": [call]}))

    @classmethod
    def duplicate_ids(cls) -> Fault:
        """Two tool calls that share one id."""
        calls = [
            {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("f", "g")
        ]
        return cls(change=lambda reply: _message(reply, {"role": "assistant", "content": None, "tool_calls": calls}))

    @classmethod
    def giant(cls, size: int = 50 * 1024 * 1024) -> Fault:
        """An answer of `size` characters."""
        return cls(change=lambda reply: _message(reply, {"role": "assistant", "content": "x" * size}))


def _message(reply: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {**reply, "choices": [{**choice, "message": message} for choice in reply["choices"]]}


def error_body(status: int) -> dict[str, Any]:
    """The error body that an OpenAI-compatible server sends with `status`."""
    names = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = names.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": f"fake error {status}", "type": kind, "code": None}}


async def break_transport(request: web.Request, fault: Fault, payload: bytes, closing: asyncio.Event) -> web.Response:
    """Misbehave below HTTP; returns only where a response object is needed to end the handler."""
    match fault.transport:
        case "reset":
            _reset(request)
        case "close":
            assert request.transport is not None
            request.transport.close()
        case "hang":
            await closing.wait()
        case "reset_mid_body" | "hang_mid_body" | "loris":
            await _partial(request, fault, payload, closing)
        case "half_chunk":
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert request.transport is not None
            request.transport.write(head + b"%x\r\n" % len(payload) + payload[: len(payload) // 2])
            request.transport.close()
        case other:
            raise ValueError(f"unknown transport fault {other!r}")
    return web.Response()


async def _partial(request: web.Request, fault: Fault, payload: bytes, closing: asyncio.Event) -> None:
    response = web.StreamResponse(headers={"Content-Type": fault.content_type})
    response.content_length = len(payload)
    await response.prepare(request)
    if fault.transport == "loris":
        for at in range(len(payload)):
            await response.write(payload[at : at + 1])
            await asyncio.sleep(fault.delay)
        return
    await response.write(payload[: len(payload) // 2])
    if fault.transport == "hang_mid_body":
        await closing.wait()
    else:
        _reset(request)


def _reset(request: web.Request) -> None:
    transport = request.transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
