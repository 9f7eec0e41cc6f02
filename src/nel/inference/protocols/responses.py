"""`/responses`: bodies, replies and streams of the responses protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from nel.inference.failure import UNREADABLE, Failure, bad_response, content_filtered, of_error_body, stream_ended_early
from nel.inference.protocols.chat_completions import with_images
from nel.inference.protocols.reply import Count, chat_logprobs, not_a_reply, tool_calls
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse

SUFFIX = "/responses"
CARRIES = frozenset(
    {
        "temperature",
        "top_p",
        "max_tokens",
        "logprobs",
        "top_logprobs",
        "response_format",
        "reasoning_effort",
        "tool_choice",
        "parallel_tool_calls",
    }
)
STREAMING: dict[str, Any] = {"stream": True}
SEVERAL = False


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
    body: dict[str, Any] = {"input": [item for message in messages for item in _items(message)]}
    body |= _parameters(parameters)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def _parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    out = dict(parameters)
    if (limit := out.pop("max_tokens", None)) is not None:
        out["max_output_tokens"] = limit
    if (effort := out.pop("reasoning_effort", None)) is not None:
        out["reasoning"] = {"effort": effort}
    if (form := out.pop("response_format", None)) is not None:
        out["text"] = {"format": _text_format(form)}
    wanted, top = out.pop("logprobs", None), out.pop("top_logprobs", None)
    if (wanted is not None and wanted is not False) or top:
        out["include"] = ["message.output_text.logprobs"]
        out["top_logprobs"] = max(top or 0, 0 if wanted is True or wanted is None else wanted)
    choice = out.get("tool_choice")
    if isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        out["tool_choice"] = {"type": "function", "name": choice["function"].get("name")}
    return out


def _text_format(form: Any) -> Any:
    """The chat protocol's `response_format`, without the level that this protocol does not have."""
    if isinstance(form, Mapping) and isinstance(form.get("json_schema"), Mapping):
        return {"type": form.get("type", "json_schema"), **form["json_schema"]}
    return form


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    return {"type": "function", **function} if isinstance(function, Mapping) else dict(tool)


def _items(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One message of a chat as the input items that say the same."""
    role, content = message.get("role", "user"), message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    items: list[dict[str, Any]] = []
    if content or not message.get("tool_calls"):
        parts = [{"type": "text", "text": content or ""}] if not isinstance(content, list) else content
        items.append({"role": role, "content": [_part(part, role) for part in parts]})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        items.append(
            {
                "type": "function_call",
                "call_id": call["id"],
                "name": function["name"],
                "arguments": function["arguments"],
            }
        )
    return items


def _part(part: Mapping[str, Any], role: str) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part.get("text", "")}
    if part.get("type") == "image_url":
        image = part["image_url"]
        values = image if isinstance(image, Mapping) else {"url": image}
        detail = {"detail": values["detail"]} if values.get("detail") else {}
        return {"type": "input_image", "image_url": values["url"], **detail}
    return dict(part)


class _Part(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    logprobs: Any = None


class _Item(msgspec.Struct, gc=False):
    type: str = "message"
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    name: str | None = None
    arguments: Any = None
    call_id: str | None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: Count | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: Count | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    output: list[_Item]
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


_decoder: Final = msgspec.json.Decoder(_Reply)


def parse(body: bytes, retried: frozenset[int]) -> list[ModelResponse] | Failure:
    """See `WireProtocol.parse`."""
    try:
        reply = _decoder.decode(body)
    except UNREADABLE as error:
        return not_a_reply(body, error, retried)
    if reply.error or reply.status in {"failed", "cancelled"}:
        return of_error_body({"error": reply.error or {"message": f"status is {reply.status}"}}, retried)
    if reply.status in {"queued", "in_progress"}:
        return bad_response(f"status is {reply.status}: the answer is not there yet")
    finish = _finish_reason(reply)
    if finish == "content_filter":
        return content_filtered("incomplete_details.reason is content_filter")
    response = _response(reply.output)
    if isinstance(response, str):
        return bad_response(response)
    usage = reply.usage or _Usage()
    details, cached = usage.output_tokens_details, usage.input_tokens_details
    response.model = reply.model or ""
    response.prompt_tokens = usage.input_tokens or 0
    response.completion_tokens = usage.output_tokens or 0
    response.reasoning_tokens = (details.reasoning_tokens if details is not None else None) or 0
    response.cached_tokens = (cached.cached_tokens if cached is not None else None) or 0
    response.finish_reason = response.finish_reason or finish or ("tool_calls" if response.tool_calls else "stop")
    spoke = any(item.type == "message" and item.content for item in reply.output)
    if not (spoke or response.tool_calls or response.reasoning_content or response.reasoning_tokens or finish):
        return bad_response("no message, tool call or reasoning in the output")
    return [response]


def _finish_reason(reply: _Reply) -> str:
    if reply.status != "incomplete":
        return ""
    reason = (reply.incomplete_details.reason if reply.incomplete_details is not None else None) or "incomplete"
    return "length" if reason == "max_output_tokens" else reason


def _response(output: list[_Item]) -> ModelResponse | str:
    """What the output items say together, or why they say nothing."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    response = ModelResponse()
    for item in output:
        if item.type == "message":
            for part in item.content or ():
                if part.refusal:
                    response.finish_reason = "refusal"
                texts.append(part.text or part.refusal or "")
                rows = chat_logprobs(part.logprobs)
                if rows:
                    response.logprobs = (response.logprobs or []) + rows
        elif item.type == "reasoning":
            thoughts += [part.text for part in item.content or item.summary or () if part.text]
        elif item.type == "function_call":
            calls.append({"id": item.call_id, "function": {"name": item.name, "arguments": item.arguments}})
    response.content = "".join(texts)
    response.reasoning_content = "\n".join(thoughts) or None
    if calls:
        checked = tool_calls(calls)
        if isinstance(checked, str):
            return checked
        response.tool_calls = checked
    return response


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    response: msgspec.Raw = msgspec.Raw()
    delta: Any = None
    error: Any = None
    message: Any = None
    code: Any = None


_event_decoder: Final = msgspec.json.Decoder(_Event)


class _Reader:
    """See `StreamReader`: the last event holds the whole reply."""

    def __init__(self) -> None:
        self.started = False
        self._reply: bytes | None = None

    def add(self, event: bytes) -> bool:
        try:
            value = _event_decoder.decode(event)
        except UNREADABLE:
            self._reply = event
            return True
        if value.type in {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}:
            self._reply = bytes(value.response)
            return True
        if value.type == "error" or value.error:
            error = value.error or {"message": value.message, "code": value.code}
            self._reply = msgspec.json.encode({"error": error})
            return True
        self.started |= value.type.endswith(".delta") and bool(value.delta)
        return False

    def reply(self, *, done: bool) -> bytes | Failure:  # noqa: ARG002
        return self._reply if self._reply is not None else stream_ended_early()


stream = _Reader
