"""What an OpenAI-compatible server says: one `Answer` as the reply body, or the stream, of each protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class Answer:
    """What the model says, whatever the protocol."""

    content: str | None = ""
    reasoning: str | None = None
    reasoning_field: str = "reasoning_content"
    """`reasoning_content` or `reasoning`."""
    tool_calls: list[dict[str, Any]] | None = None
    finish_reason: str | None = None
    """None: `tool_calls` where there are some, `length` where `max_tokens` cut the answer, else `stop`."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """Overrides of `prompt_tokens`, `completion_tokens`, `reasoning_tokens`, `cached_tokens`."""
    top_logprobs: Mapping[str, float] | None = None
    """Token to logprob for the first position."""
    refusal: str | None = None
    prompt_logprob: Callable[[Sequence[str], int], float] = lambda tokens, at: -0.125
    """What `echo` says of a prompt: the log-probability of its token number `at`; the first one has none."""

    @classmethod
    def of(cls, value: str | Mapping[str, Any] | Answer) -> Answer:
        if isinstance(value, Answer):
            return value
        return cls(content=value) if isinstance(value, str) else cls(**value)


def prompt_text(body: Mapping[str, Any]) -> str:
    """The text of the last user turn of a request of any protocol."""
    if "prompt" in body:
        prompt = body["prompt"]
        return prompt if isinstance(prompt, str) else " ".join(prompt)
    turns = body.get("messages", body.get("input", ""))
    if isinstance(turns, str):
        return turns
    for turn in reversed(turns):
        if turn.get("role") == "user":
            content = turn.get("content")
            if isinstance(content, str):
                return content
            return "".join(part.get("text", "") for part in content or [])
    return ""


def count(text: str | None) -> int:
    """Tokens: four characters each, rounded up."""
    return -(-len(text or "") // 4)


def tokens_of(text: str) -> list[str]:
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def _usage(answers: list[Answer], prompt: str) -> dict[str, int]:
    first = answers[0].usage
    reasoning = sum(a.usage.get("reasoning_tokens", count(a.reasoning)) for a in answers)
    completion = sum(a.usage.get("completion_tokens", count(a.content) + count(a.reasoning)) for a in answers)
    return {
        "prompt": first.get("prompt_tokens", count(prompt)),
        "completion": completion,
        "reasoning": reasoning,
        "cached": first.get("cached_tokens", 0),
    }


def chat_usage(answers: list[Answer], prompt: str) -> dict[str, Any]:
    u = _usage(answers, prompt)
    return {
        "prompt_tokens": u["prompt"],
        "completion_tokens": u["completion"],
        "total_tokens": u["prompt"] + u["completion"],
        "prompt_tokens_details": {"cached_tokens": u["cached"]},
        "completion_tokens_details": {"reasoning_tokens": u["reasoning"]},
    }


def _reason(answer: Answer) -> str:
    return answer.finish_reason or ("tool_calls" if answer.tool_calls else "stop")


def _tops(answer: Answer, at: int, token: str, wanted: int) -> dict[str, float]:
    if at == 0 and answer.top_logprobs is not None:
        table = dict(answer.top_logprobs)
    else:
        table = {token: -0.125, f"{token}~": -2.5, f"{token}!": -3.5}
    return dict(sorted(table.items(), key=lambda item: -item[1])[:wanted])


def chat_logprobs(answer: Answer, wanted: int) -> dict[str, Any]:
    rows = []
    for at, token in enumerate(tokens_of(answer.content or "")):
        tops = [
            {"token": t, "logprob": p, "bytes": list(t.encode())} for t, p in _tops(answer, at, token, wanted).items()
        ]
        rows.append({"token": token, "logprob": -0.125, "bytes": list(token.encode()), "top_logprobs": tops})
    return {"content": rows, "refusal": None}


def completion_logprobs(answer: Answer, wanted: int, prompt: str = "") -> dict[str, Any]:
    """`prompt`: what is echoed in front of the answer; its tokens are words with the space before them."""
    echoed = prompt_tokens(prompt)
    said = tokens_of(answer.content or "")
    values: list[float | None] = [answer.prompt_logprob(echoed, at) if at else None for at in range(len(echoed))]
    tops: list[dict[str, float] | None] = [
        None if value is None else {token: value, "~": -1.5} if value > -1.5 else {"~": -1.5, token: value}
        for token, value in zip(echoed, values, strict=True)
    ]
    tokens = [*echoed, *said]
    return {
        "tokens": tokens,
        "token_logprobs": values + [-0.125] * len(said),
        "top_logprobs": tops + [_tops(answer, at, token, wanted) for at, token in enumerate(said)],
        "text_offset": [sum(map(len, tokens[:at])) for at in range(len(tokens))],
    }


def prompt_tokens(prompt: str) -> list[str]:
    """Words and signs, each with the space before it."""
    return re.findall(r"\s?\w+|\s?[^\w\s]|\s", prompt)


def chat_reply(body: Mapping[str, Any], answers: list[Answer], number: int) -> dict[str, Any]:
    choices = []
    for index, answer in enumerate(answers):
        message: dict[str, Any] = {"role": "assistant", "content": answer.content}
        if answer.reasoning is not None:
            message[answer.reasoning_field] = answer.reasoning
        if answer.tool_calls:
            message["tool_calls"] = answer.tool_calls
        if answer.refusal is not None:
            message |= {"content": None, "refusal": answer.refusal}
        logprobs = chat_logprobs(answer, body.get("top_logprobs") or 0) if body.get("logprobs") else None
        choices.append({"index": index, "message": message, "logprobs": logprobs, "finish_reason": _reason(answer)})
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": body.get("model", "fake"),
        "choices": choices,
        "usage": chat_usage(answers, prompt_text(body)),
    }


def completion_reply(body: Mapping[str, Any], answers: list[Answer], number: int) -> dict[str, Any]:
    wanted = body.get("logprobs")
    prompt = prompt_text(body) if body.get("echo") else ""
    return {
        "id": f"cmpl-{number}",
        "object": "text_completion",
        "created": 1,
        "model": body.get("model", "fake"),
        "choices": [
            {
                "index": index,
                "text": prompt + answer.content if prompt else answer.content,
                "logprobs": completion_logprobs(answer, wanted, prompt) if wanted else None,
                "finish_reason": _reason(answer),
            }
            for index, answer in enumerate(answers)
        ],
        "usage": chat_usage(answers, prompt_text(body)),
    }


def responses_reply(body: Mapping[str, Any], answers: list[Answer], number: int) -> dict[str, Any]:
    (answer,) = answers
    output: list[dict[str, Any]] = []
    if answer.reasoning is not None:
        part = {"type": "reasoning_text", "text": answer.reasoning}
        output.append({"id": "rs_1", "type": "reasoning", "summary": [], "content": [part]})
    output += [
        {"type": "function_call", "call_id": call["id"], "id": f"fc_{call['id']}", **call["function"]}
        for call in answer.tool_calls or []
    ]
    if answer.refusal is not None:
        parts: list[dict[str, Any]] = [{"type": "refusal", "refusal": answer.refusal}]
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": parts})
    elif answer.content is not None and not (answer.tool_calls and not answer.content):
        text: dict[str, Any] = {"type": "output_text", "text": answer.content, "annotations": []}
        if body.get("top_logprobs") is not None:
            text["logprobs"] = chat_logprobs(answer, body["top_logprobs"])["content"]
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]})
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    incomplete = reasons.get(answer.finish_reason or "")
    u = _usage(answers, prompt_text(body))
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": None,
        "model": body.get("model", "fake"),
        "output": output,
        "usage": {
            "input_tokens": u["prompt"],
            "input_tokens_details": {"cached_tokens": u["cached"]},
            "output_tokens": u["completion"],
            "output_tokens_details": {"reasoning_tokens": u["reasoning"]},
            "total_tokens": u["prompt"] + u["completion"],
        },
    }


REPLIES = {
    "/v1/chat/completions": chat_reply,
    "/v1/completions": completion_reply,
    "/v1/responses": responses_reply,
}


def stream_events(path: str, body: Mapping[str, Any], reply: dict[str, Any]) -> Iterator[bytes]:
    """Server-sent events that say what `reply` says."""
    make = {"/v1/chat/completions": _chat_chunks, "/v1/completions": _completion_chunks}.get(path)
    if make is None:
        yield from _responses_events(reply)
        return
    frame = {key: reply[key] for key in ("id", "created", "model")}
    for choices in make(reply):
        yield b"data: " + json.dumps({**frame, "choices": choices}).encode() + b"\n\n"
    if (body.get("stream_options") or {}).get("include_usage"):
        yield b"data: " + json.dumps({**frame, "choices": [], "usage": reply["usage"]}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _chat_chunks(reply: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    for choice in reply["choices"]:
        index, message = choice["index"], choice["message"]

        def delta(
            value: dict[str, Any], reason: str | None = None, index: int = index, **rest: Any
        ) -> list[dict[str, Any]]:
            return [{"index": index, "delta": value, "finish_reason": reason, **rest}]

        yield delta({"role": "assistant", "content": ""})
        for name in ("reasoning_content", "reasoning", "refusal"):
            for piece in tokens_of(message.get(name) or ""):
                yield delta({name: piece})
        rows = ((choice.get("logprobs") or {}).get("content")) or []
        for at, piece in enumerate(tokens_of(message.get("content") or "")):
            yield delta({"content": piece}, **({"logprobs": {"content": [rows[at]]}} if rows else {}))
        for at, call in enumerate(message.get("tool_calls") or []):
            head = {**call, "index": at, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield delta({"tool_calls": [head]})
            for piece in tokens_of(call["function"]["arguments"]):
                yield delta({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        yield delta({}, choice["finish_reason"])


def _completion_chunks(reply: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    for choice in reply["choices"]:
        table = choice.get("logprobs")
        for at, piece in enumerate(tokens_of(choice["text"] or "")):
            part = {key: values[at : at + 1] for key, values in table.items()} if table else None
            yield [{"index": choice["index"], "text": piece, "logprobs": part, "finish_reason": None}]
        yield [{"index": choice["index"], "text": "", "logprobs": None, "finish_reason": choice["finish_reason"]}]


def _responses_events(reply: dict[str, Any]) -> Iterator[bytes]:
    def event(name: str, **fields: Any) -> bytes:
        return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()

    yield event("response.created", response={**reply, "status": "in_progress", "output": []})
    for item in reply["output"]:
        for part in item.get("content") or []:
            kind = "response.output_text.delta" if part["type"] == "output_text" else "response.reasoning_text.delta"
            for piece in tokens_of(part.get("text", "")):
                yield event(kind, delta=piece)
    yield event(f"response.{reply['status']}", response=reply)
