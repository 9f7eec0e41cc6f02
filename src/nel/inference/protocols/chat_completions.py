"""`/chat/completions`: bodies, replies and streams of the chat protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nel.inference.failure import UNREADABLE, Failure, bad_response, content_filtered, of_error_body, stream_ended_early
from nel.inference.protocols.reply import Usage, chat_logprobs, not_a_reply, share_usage, tool_calls
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse

SUFFIX = "/chat/completions"
CARRIES = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "max_tokens",
        "seed",
        "stop",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "response_format",
        "reasoning_effort",
        "tool_choice",
        "parallel_tool_calls",
    }
)
STREAMING: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
SEVERAL = True


class _Message(msgspec.Struct, gc=False):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    tool_calls: list[Any] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice]
    model: str | None = None
    usage: Usage | None = None
    error: Any = None


_decoder: Final = msgspec.json.Decoder(_Reply)


def check(request: ModelRequest) -> str | None:
    """See `WireProtocol.check`."""
    if request.echo:
        return "the prompt's own log-probabilities (echo)"
    return None if request.messages or request.prompt is not None else "an empty request: it needs messages or a prompt"


def build(request: ModelRequest, parameters: dict[str, Any], images: Sequence[str]) -> dict[str, Any]:
    """See `WireProtocol.build`."""
    messages: Sequence[Any] = request.messages or [{"role": "user", "content": request.prompt}]
    if images:
        messages = with_images(messages, images, request.image_detail)
    body: dict[str, Any] = {"messages": messages, **parameters}
    wanted = body.get("logprobs")
    if wanted is not None and not isinstance(wanted, bool):
        body |= {"logprobs": True, "top_logprobs": max(wanted, body.get("top_logprobs") or 0)}
    if request.tools:
        body["tools"] = request.tools
    return body


def with_images(messages: Sequence[Any], images: Sequence[str], detail: str | None) -> list[dict[str, Any]]:
    """`messages` with the images before the text of the last user message."""
    extra = {} if detail is None else {"detail": detail}
    parts = [{"type": "image_url", "image_url": {"url": url, **extra}} for url in images]
    out = [dict(message) for message in messages]
    for message in reversed(out):
        if message.get("role") == "user":
            content = message.get("content") or []
            message["content"] = parts + ([{"type": "text", "text": content}] if isinstance(content, str) else content)
            return out
    return [*out, {"role": "user", "content": parts}]


def parse(body: bytes, retried: frozenset[int]) -> list[ModelResponse] | Failure:
    """See `WireProtocol.parse`."""
    try:
        reply = _decoder.decode(body)
    except UNREADABLE as error:
        return not_a_reply(body, error, retried)
    if reply.error:
        return of_error_body({"error": reply.error}, retried)
    if not reply.choices:
        return bad_response("no choices")
    usage = reply.usage or Usage()
    reasoning_tokens = usage.reasoning()
    responses: list[ModelResponse] = []
    for choice in reply.choices:
        if choice.finish_reason == "content_filter":
            # Beside other choices it says nothing of what a request for one alone would bring.
            return content_filtered("finish_reason is content_filter", permanent=len(reply.choices) == 1)
        response = _response(choice, reasoning_tokens)
        if isinstance(response, Failure):
            return response
        response.model = reply.model or ""
        responses.append(response)
    share_usage(responses, usage)
    return responses


def _response(choice: _Choice, reasoning_tokens: int) -> ModelResponse | Failure:
    message = choice.message
    finish = choice.finish_reason or ""
    content, reasoning = message.content, message.reasoning_content
    if reasoning is None and isinstance(message.reasoning, str):
        reasoning = message.reasoning
    if isinstance(content, list):
        content, thought = _parts(content)
        reasoning = reasoning or thought
    response = ModelResponse(content=content or "", finish_reason=finish, reasoning_content=reasoning or None)
    if message.tool_calls:
        calls = tool_calls(message.tool_calls)
        if isinstance(calls, str):
            return bad_response(calls)
        response.tool_calls = calls
    if message.refusal:
        response.content = content or message.refusal
        response.finish_reason = "refusal"
    elif content is None and not (reasoning or message.tool_calls or reasoning_tokens or finish == "length"):
        return bad_response("null content, without tool calls or reasoning")
    if choice.logprobs is not None:
        response.logprobs = chat_logprobs(choice.logprobs.get("content"))
    return response


def _parts(content: list[Any]) -> tuple[str | None, str | None]:
    """Text and reasoning of a content that is a list of parts."""
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    thoughts: list[str] = []
    for part in content:
        thinking = part.get("thinking") if isinstance(part, dict) else None
        inner = thinking if isinstance(thinking, list) else [{"text": thinking}]
        thoughts += [i["text"] for i in inner if isinstance(i, dict) and isinstance(i.get("text"), str)]
    return ("".join(texts) if texts else None), ("".join(thoughts) or None)


class _FunctionDelta(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class _CallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _ChunkChoice(msgspec.Struct, gc=False):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_ChunkChoice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


_chunk_decoder: Final = msgspec.json.Decoder(_Chunk)


class _Growing:
    """One choice as far as it has come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.calls: dict[int, dict[str, Any]] = {}
        self.logprobs: list[Any] = []
        self.finish_reason: str | None = None

    def add(self, choice: _ChunkChoice) -> bool:
        """Whether a token came."""
        delta = choice.delta or _Delta()
        self.finish_reason = choice.finish_reason or self.finish_reason
        rows = (choice.logprobs or {}).get("content")
        self.logprobs += rows if isinstance(rows, list) else []
        token = False
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            piece = getattr(delta, name)
            if isinstance(piece, str):
                self.texts.setdefault(name, []).append(piece)
                token = token or bool(piece)
        for call in delta.tool_calls or ():
            self._add_call(call)
            token = True
        return token

    def _add_call(self, delta: _CallDelta) -> None:
        index = delta.index if delta.index is not None else max(self.calls, default=0)
        call = self.calls.setdefault(index, {"id": "", "name": "", "arguments": []})
        call["id"] = call["id"] or delta.id
        if delta.function is not None:
            call["name"] = call["name"] or delta.function.name
            arguments = delta.function.arguments
            if arguments is not None:
                whole = isinstance(arguments, str)
                call["arguments"].append(arguments if whole else msgspec.json.encode(arguments).decode())

    def message(self) -> dict[str, Any]:
        """The message that would have come whole."""
        message: dict[str, Any] = {name: "".join(pieces) for name, pieces in self.texts.items()}
        if self.calls:
            message["tool_calls"] = [
                {"id": c["id"], "function": {"name": c["name"], "arguments": "".join(c["arguments"])}}
                for _, c in sorted(self.calls.items())
            ]
            message["content"] = message.get("content") or None
        return message


class _Reader:
    """See `StreamReader`."""

    def __init__(self) -> None:
        self.started = False
        self._choices: dict[int, _Growing] = {}
        self._model = ""
        self._usage: Any = None
        self._broken: bytes | None = None

    def add(self, event: bytes) -> bool:
        try:
            chunk = _chunk_decoder.decode(event)
        except UNREADABLE:
            chunk = _Chunk(error=True)
        if chunk.error:
            self._broken = event
            return True
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices or ():
            self.started |= self._choices.setdefault(choice.index, _Growing()).add(choice)
        return False

    def reply(self, *, done: bool) -> bytes | Failure:
        if self._broken is not None:
            return self._broken
        choices = [choice for _, choice in sorted(self._choices.items())]
        if not done and not all(choice.finish_reason for choice in choices):
            return stream_ended_early()
        return msgspec.json.encode(
            {
                "object": "chat.completion",
                "model": self._model,
                "choices": [
                    {
                        "index": index,
                        "message": choice.message(),
                        "finish_reason": choice.finish_reason,
                        "logprobs": {"content": choice.logprobs} if choice.logprobs else None,
                    }
                    for index, choice in enumerate(choices)
                ],
                "usage": self._usage,
            }
        )


stream = _Reader
