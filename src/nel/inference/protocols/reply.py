"""Parts of a reply that chat and text completions share: usage, tool calls, logprobs."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Annotated, Any

import msgspec

from nel.inference.failure import UNREADABLE, Failure, bad_response, of_error_body
from nel.observability.records import ModelResponse

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class CachedDetails(msgspec.Struct, gc=False):
    """What is told of the prompt's tokens."""

    cached_tokens: Count | None = None


class ReasoningDetails(msgspec.Struct, gc=False):
    """What is told of the answer's tokens."""

    reasoning_tokens: Count | None = None


class Usage(msgspec.Struct, gc=False):
    """Token counts of chat and text completions."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: CachedDetails | None = None
    completion_tokens_details: ReasoningDetails | None = None
    reasoning_tokens: Count | None = None
    """Where some servers put it."""

    def cached(self) -> int:
        """Prompt tokens that the server had cached."""
        details = self.prompt_tokens_details
        return (details.cached_tokens if details is not None else None) or 0

    def reasoning(self) -> int:
        """Completion tokens that are reasoning."""
        details = self.completion_tokens_details
        return (details.reasoning_tokens if details is not None else None) or self.reasoning_tokens or 0


def share_usage(responses: list[ModelResponse], usage: Usage) -> None:
    """Give the prompt's tokens to the first choice and the completion's to each by the length of its text."""
    first = responses[0]
    first.prompt_tokens = usage.prompt_tokens or 0
    first.cached_tokens = usage.cached()
    completion, reasoning = usage.completion_tokens or 0, usage.reasoning()
    if len(responses) == 1:
        first.completion_tokens, first.reasoning_tokens = completion, reasoning
        return
    sizes = [len(r.content) + len(r.reasoning_content or "") + 1 for r in responses]
    whole, seen, given, given_reasoning = sum(sizes), 0, 0, 0
    for response, size in zip(responses, sizes, strict=True):
        seen += size
        response.completion_tokens = completion * seen // whole - given
        response.reasoning_tokens = reasoning * seen // whole - given_reasoning
        given += response.completion_tokens
        given_reasoning += response.reasoning_tokens


def not_a_reply(body: bytes, error: Exception, retried: frozenset[int]) -> Failure:
    """The failure that an undecodable body of a 200 is: the error that it holds, else `bad_response`."""
    try:
        value = msgspec.json.decode(body)
    except UNREADABLE:
        return bad_response(f"no JSON: {error}: {_start(body)}")
    if isinstance(value, dict) and has_error(value):
        return of_error_body(value, retried)
    return bad_response(f"not the reply that the protocol promises: {error}: {_start(body)}")


def has_error(value: dict[str, Any]) -> bool:
    """Whether a body is an error: `{"error": ...}`, or the older `{"object": "error", "message": ...}`."""
    return bool(value.get("error")) or value.get("object") == "error"


def _start(body: bytes) -> str:
    return body[:300].decode("utf-8", "replace")


def tool_calls(values: Iterable[Any]) -> list[dict[str, Any]] | str:
    """Tool calls as the chat protocol gives them, or why they are none.

    Arguments stay the text that the model wrote (an object is written as JSON); an id that is missing or was used
    before is replaced, so that the results can be told apart.
    """
    calls: list[dict[str, Any]] = []
    used: set[str] = set()
    for at, value in enumerate(values):
        function = value.get("function") if isinstance(value, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str):
            return f"tool call {at} names no function"
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "{}" if arguments is None else msgspec.json.encode(arguments).decode()
        wanted = value.get("id") if isinstance(value.get("id"), str) and value["id"] else f"call_{at}"
        identifier = wanted if wanted not in used else f"{wanted}-{at}"
        used.add(identifier)
        calls.append({"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}})
    return calls


def chat_logprobs(rows: Any) -> list[dict[str, Any]] | None:
    """`[{token, logprob, top_logprobs}]` of the chat protocol's rows; None where there are none."""
    if not isinstance(rows, list):
        return None
    return [
        {
            "token": str(row.get("token", "")),
            "logprob": _number(row.get("logprob")),
            "top_logprobs": [
                {"token": str(top.get("token", "")), "logprob": _number(top.get("logprob"))}
                for top in _items(row.get("top_logprobs"))
            ],
        }
        for row in _items(rows)
    ]


def completion_logprobs(table: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The same shape from the parallel lists of text completions; None where there are none."""
    tokens = table.get("tokens")
    if not isinstance(tokens, list):
        return chat_logprobs(table.get("content"))
    values, tops = table.get("token_logprobs"), table.get("top_logprobs")
    values = values if isinstance(values, list) else []
    tops = tops if isinstance(tops, list) else []
    return [
        {
            "token": str(token),
            "logprob": _number(values[at]) if at < len(values) else None,
            "top_logprobs": _table(tops[at]) if at < len(tops) else [],
        }
        for at, token in enumerate(tokens)
    ]


def _table(tops: Any) -> list[dict[str, Any]]:
    if not isinstance(tops, dict):
        return []
    rows = [{"token": token, "logprob": _number(value)} for token, value in tops.items()]
    return sorted(rows, key=lambda row: inf if row["logprob"] is None else -row["logprob"])


def _items(rows: Any) -> list[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _number(value: Any) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else None
    )
