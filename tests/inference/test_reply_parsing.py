"""Replies as such: whatever a server says is a list of answers or a typed failure."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai_wire import REPLIES, Answer, stream_events
from virtual_clock import VirtualClock

from nel.inference.failure import RETRIED_STATUSES, Failure, of_status
from nel.inference.protocols import PROTOCOLS, chat_completions, completions, responses
from nel.inference.sse import EventStream
from nel.inference.transport import Reply
from nel.observability.failures import CATEGORIES
from nel.observability.records import ModelResponse

MODULES = [chat_completions, completions, responses]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
# the words of the protocols with anything behind them: bodies that come close to a reply
WORDS = [
    "choices",
    "message",
    "content",
    "text",
    "finish_reason",
    "logprobs",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "reasoning",
    "reasoning_content",
    "refusal",
    "error",
    "code",
    "type",
    "status",
    "output",
    "summary",
    "incomplete_details",
    "reason",
    "input_tokens",
    "output_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "completion_tokens_details",
    "top_logprobs",
    "token",
    "logprob",
    "tokens",
    "token_logprobs",
    "model",
    "call_id",
    "object",
    "detail",
    "delta",
    "response",
]
SAYINGS = [
    "message",
    "output_text",
    "reasoning",
    "function_call",
    "content_filter",
    "length",
    "stop",
    "incomplete",
    "failed",
]
near_replies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.sampled_from(SAYINGS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=25,
)


def assert_typed(outcome: Any) -> None:
    if isinstance(outcome, Failure):
        assert outcome.category in CATEGORIES
        assert isinstance(outcome.detail, str)
    else:
        assert outcome
        for response in outcome:
            assert isinstance(response, ModelResponse)
            again = msgspec.json.decode(msgspec.json.encode(response), type=ModelResponse)
            assert again == response, "an answer can be stored and read again"


@pytest.mark.parametrize("module", MODULES)
@given(
    body=json_values
    | near_replies
    | near_replies.map(lambda v: {"choices": [v]})
    | near_replies.map(lambda v: {"output": [v]})
)
@example(body={"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 2**63}})
@example(body={"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 10**400}})
@example(body={"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}}]})
@example(body={"choices": [{"text": "x", "logprobs": {"tokens": ["x"], "token_logprobs": [10**400]}}]})
@settings(deadline=None, max_examples=100)
def test_any_json_value_is_answers_or_a_failure(module: ModuleType, body: Any) -> None:
    data = json.dumps(body).encode()
    assert_typed(module.parse(data, RETRIED_STATUSES))
    assert_typed(of_status(Reply(400, {}, data), RETRIED_STATUSES))


@pytest.mark.parametrize("module", MODULES)
@example(body=rb'{"choices": [{"message": {"content": "\ud800"}, "text": "\ud800"}], "output": []}')
@example(body=rb'{"choices": [{"text": "x", "logprobs": {"tokens": ["x"], "token_logprobs": [1e999]}}]}')
@given(body=st.binary(max_size=60) | st.integers(0, 3000).map(lambda depth: b"[" * depth))
@settings(deadline=None, max_examples=100)
def test_any_bytes_are_answers_or_a_failure(module: ModuleType, body: bytes) -> None:
    assert_typed(module.parse(body, RETRIED_STATUSES))
    assert_typed(of_status(Reply(500, {}, body), RETRIED_STATUSES))


@pytest.mark.parametrize("module", MODULES)
@given(events=st.lists(near_replies | near_replies.map(lambda v: {"choices": [v]}), max_size=5), done=st.booleans())
@settings(deadline=None, max_examples=70)
def test_any_stream_is_answers_or_a_failure(module: ModuleType, events: list[Any], done: bool) -> None:
    stream = EventStream(module.stream(), VirtualClock())
    lines = [b"data: " + json.dumps(event).encode() for event in events] + ([b"data: [DONE]"] if done else [])
    stream.feed(b"\n\n".join(lines) + b"\n\n")
    whole = stream.reply()
    assert_typed(module.parse(whole, RETRIED_STATUSES) if isinstance(whole, bytes) else whole)


answers = st.builds(
    Answer,
    content=st.text(max_size=30),
    reasoning=st.none() | st.text(min_size=1, max_size=20),
    reasoning_field=st.sampled_from(["reasoning_content", "reasoning"]),
    tool_calls=st.none()
    | st.lists(
        st.fixed_dictionaries(
            {
                "id": st.uuids().map(str),
                "type": st.just("function"),
                "function": st.fixed_dictionaries(
                    {"name": st.text(min_size=1, max_size=5), "arguments": st.text(max_size=10)}
                ),
            }
        ),
        min_size=1,
        max_size=2,
        unique_by=lambda call: call["id"],
    ),
    finish_reason=st.sampled_from([None, "stop", "length"]),
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(answer=answers, cuts=st.lists(st.integers(1, 40), max_size=30), newline=st.sampled_from([b"\n", b"\r\n"]))
@settings(deadline=None, max_examples=80)
def test_a_stream_says_the_same_as_the_whole_reply_wherever_it_is_cut(
    protocol: str, answer: Answer, cuts: list[int], newline: bytes
) -> None:
    if protocol == "completions":
        answer.reasoning, answer.tool_calls = None, None
    wire = PROTOCOLS[protocol]
    path = f"/v1{wire.SUFFIX}"
    body = {"stream_options": {"include_usage": True}, "logprobs": 2 if protocol == "completions" else True}
    body |= {"top_logprobs": 2}
    reply = REPLIES[path](body, [answer], 1)
    data = b"".join(stream_events(path, body, reply)).replace(b"\n", newline)
    stream = EventStream(wire.stream(), VirtualClock())
    done = False
    for cut in [*cuts, len(data)]:
        done = stream.feed(data[:cut]) or done
        data = data[cut:]
    assert done
    streamed = stream.reply()
    assert isinstance(streamed, bytes)
    from_stream = wire.parse(streamed, RETRIED_STATUSES)
    whole = wire.parse(json.dumps(reply).encode(), RETRIED_STATUSES)
    assert isinstance(whole, list)
    for response in whole:
        response.logprobs = response.logprobs or None
    assert from_stream == whole


def test_events_of_several_lines_comments_and_other_fields_are_read_by_the_standard() -> None:
    stream = EventStream(chat_completions.stream(), VirtualClock())
    stream.feed(b": keep-alive\n\nevent: x\nid: 3\nretry: 10\n")
    stream.feed(
        b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "hi"},\ndata:"finish_reason": "stop"}]}\n\n'
    )
    assert stream.feed(b"data: [DONE]\n\ndata: {broken\n\n")
    whole = stream.reply()
    assert isinstance(whole, bytes)
    (response,) = chat_completions.parse(whole, RETRIED_STATUSES)
    assert response.content == "hi"


def test_a_content_of_parts_is_their_text_with_the_thinking_apart() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    body = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    (response,) = chat_completions.parse(json.dumps(body).encode(), RETRIED_STATUSES)
    assert (response.content, response.reasoning_content) == ("ab", "hm")


def test_logprobs_of_the_chat_shape_in_text_completions_are_read() -> None:
    rows = [{"token": "A", "logprob": -0.5, "top_logprobs": [{"token": "A", "logprob": -0.5}]}]
    body = {"choices": [{"text": "A", "logprobs": {"content": rows}}]}
    (response,) = completions.parse(json.dumps(body).encode(), RETRIED_STATUSES)
    assert response.logprobs == rows
