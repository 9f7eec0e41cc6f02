"""`/completions`: bodies, replies and streams of text completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nel.inference.failure import UNREADABLE, Failure, bad_response, content_filtered, of_error_body, stream_ended_early
from nel.inference.protocols.reply import Usage, completion_logprobs, not_a_reply, share_usage
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse

SUFFIX = "/completions"
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
    }
)
STREAMING: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
SEVERAL = True


class _Choice(msgspec.Struct, gc=False):
    text: str | None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice]
    model: str | None = None
    usage: Usage | None = None
    error: Any = None


_decoder: Final = msgspec.json.Decoder(_Reply)


def check(request: ModelRequest) -> str | None:
    """See `WireProtocol.check`."""
    for name in ("messages", "images", "tools"):
        if getattr(request, name):
            return name
    return "an empty request: it needs a prompt" if request.prompt is None else None


def build(request: ModelRequest, parameters: dict[str, Any], images: Sequence[str]) -> dict[str, Any]:  # noqa: ARG001
    """See `WireProtocol.build`."""
    body = {"prompt": request.prompt, **parameters}
    wanted, top = body.pop("logprobs", None), body.pop("top_logprobs", None)
    if wanted is not None and wanted is not False:
        # Here `logprobs` is the number of alternatives, and some servers send nothing for 0.
        body["logprobs"] = max(1, top or 0, 0 if wanted is True else wanted)
    if request.echo:
        body["echo"] = True
    return body


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
    responses = []
    for choice in reply.choices:
        if choice.finish_reason == "content_filter":
            return content_filtered("finish_reason is content_filter", permanent=len(reply.choices) == 1)
        reasoning = choice.reasoning_content or choice.reasoning
        if choice.text is None and not (reasoning or usage.reasoning() or choice.finish_reason == "length"):
            return bad_response("null text")
        responses.append(
            ModelResponse(
                content=choice.text or "",
                model=reply.model or "",
                finish_reason=choice.finish_reason or "",
                reasoning_content=reasoning,
                logprobs=completion_logprobs(choice.logprobs) if choice.logprobs is not None else None,
            )
        )
    share_usage(responses, usage)
    return responses


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_ChunkChoice] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


class _ChunkChoice(msgspec.Struct, gc=False):
    index: int = 0
    text: str | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


_chunk_decoder: Final = msgspec.json.Decoder(_Chunk)


class _Reader:
    """See `StreamReader`."""

    def __init__(self) -> None:
        self.started = False
        self._choices: dict[int, list[_ChunkChoice]] = {}
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
            self._choices.setdefault(choice.index, []).append(choice)
            self.started |= bool(choice.text)
        return False

    def reply(self, *, done: bool) -> bytes | Failure:
        if self._broken is not None:
            return self._broken
        choices = [_joined(index, pieces) for index, pieces in sorted(self._choices.items())]
        if not done and not all(choice["finish_reason"] for choice in choices):
            return stream_ended_early()
        return msgspec.json.encode(
            {"object": "text_completion", "model": self._model, "choices": choices, "usage": self._usage}
        )


def _joined(index: int, pieces: list[_ChunkChoice]) -> dict[str, Any]:
    tables = [piece.logprobs for piece in pieces if piece.logprobs]
    table: dict[str, list[Any]] = {}
    for part in tables:
        for key, values in part.items():
            table.setdefault(key, []).extend(values if isinstance(values, list) else [])
    return {
        "index": index,
        "text": "".join(piece.text or "" for piece in pieces),
        "finish_reason": next((piece.finish_reason for piece in reversed(pieces) if piece.finish_reason), None),
        "logprobs": table or None,
    }


stream = _Reader
