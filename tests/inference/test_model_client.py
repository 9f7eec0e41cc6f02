"""What goes over the wire and what comes back, against a real HTTP server."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inference_help import PROTOCOLS, Client, client_of, settings_for
from openai_server import FakeOpenAI
from openai_wire import Answer

from nel.core.errors import ServiceError, UsageError
from nel.inference.cost import Prices
from nel.inference.failure import InferenceError
from nel.inference.request import ModelRequest

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "description": "of a city", "parameters": {"type": "object", "properties": {}}},
}
CALL = {"id": "call_7", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_comes_with_its_tokens_and_its_finish_reason(protocol: str, stream: bool) -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "reasoning_tokens": 3, "cached_tokens": 5}
    answer = Answer(content="forty-two", usage=usage, finish_reason="length")
    async with FakeOpenAI(lambda _: answer) as server, client_of(server, protocol, stream=stream) as client:
        (response,) = await client.generate(ModelRequest(prompt="6 x 7?"))
    assert (response.content, response.finish_reason, response.model) == ("forty-two", "length", "fake")
    assert (response.prompt_tokens, response.completion_tokens) == (11, 7)
    assert (response.reasoning_tokens, response.cached_tokens) == (3, 5)
    assert response.tries == 1
    assert not response.cached


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_tells_the_time_to_the_first_token_and_says_the_same(protocol: str) -> None:
    async with (
        FakeOpenAI(lambda _: {"content": "a longer answer in pieces"}) as server,
        client_of(server, protocol) as client,
    ):
        (whole,) = await client.generate(ModelRequest(prompt="q", stream=False))
        (streamed,) = await client.generate(ModelRequest(prompt="q", stream=True))
    assert server.bodies[1]["stream"] is True
    assert "stream" not in server.bodies[0]
    assert whole.ttft_ms is None
    assert streamed.ttft_ms is not None
    assert 0 <= streamed.ttft_ms <= streamed.latency_ms
    assert (streamed.content, streamed.total_tokens) == (whole.content, whole.total_tokens)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["chat_completions", "responses"])
async def test_reasoning_is_kept_apart_from_the_answer(protocol: str, stream: bool, field: str) -> None:
    answer = Answer(content="7", reasoning="3 and 4 are 7", reasoning_field=field)
    async with FakeOpenAI(lambda _: answer) as server, client_of(server, protocol, stream=stream) as client:
        (response,) = await client.generate(ModelRequest(prompt="3 + 4?"))
    assert response.content == "7"
    assert response.reasoning_content == "3 and 4 are 7"
    assert response.reasoning_tokens == 4


async def test_a_reasoning_pattern_takes_thoughts_out_of_the_answer() -> None:
    async with (
        FakeOpenAI(lambda _: "<think>well,\nhm</think>\n\n42") as server,
        client_of(server, reasoning_pattern="<think>(.*?)</think>") as client,
    ):
        response = await client.complete("q")
    assert (response.content, response.reasoning_content) == ("42", "well,\nhm")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["chat_completions", "responses"])
async def test_tool_calls_have_one_shape_in_every_protocol(protocol: str, stream: bool) -> None:
    answer = Answer(content=None, tool_calls=[CALL])
    messages = [
        {"role": "user", "content": "Weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_7", "content": "rain"},
    ]
    async with FakeOpenAI(lambda _: answer) as server, client_of(server, protocol, stream=stream) as client:
        (response,) = await client.generate(ModelRequest(messages=messages, tools=[WEATHER]))
    assert response.tool_calls == [CALL]
    assert response.finish_reason == "tool_calls"
    body = server.bodies[0]
    if protocol == "responses":
        assert body["tools"] == [{"type": "function", **WEATHER["function"]}]
        assert body["input"][1] == {"type": "function_call", "call_id": "call_7", **CALL["function"]}
        assert body["input"][2] == {"type": "function_call_output", "call_id": "call_7", "output": "rain"}
    else:
        assert (body["tools"], body["messages"]) == ([WEATHER], messages)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_logprobs_have_one_shape_in_every_protocol(protocol: str, stream: bool) -> None:
    answer = Answer(content="A", top_logprobs={"A": -0.2, "B": -1.9, "C": -4.0})
    request = ModelRequest(prompt="A or B?", generation={"logprobs": True, "top_logprobs": 2})
    async with FakeOpenAI(lambda _: answer) as server, client_of(server, protocol, stream=stream) as client:
        (response,) = await client.generate(request)
    tops = [{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -1.9}]
    assert response.logprobs == [{"token": "A", "logprob": -0.125, "top_logprobs": tops}]


async def test_images_reach_the_wire_from_a_file_a_url_and_a_data_uri(tmp_path: Path) -> None:
    file = tmp_path / "dot.jpg"  # its name lies
    file.write_bytes(PNG)
    uri = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    request = ModelRequest(
        messages=[{"role": "system", "content": "Look."}, {"role": "user", "content": "What is it?"}],
        images=[str(file), "https://example.org/a.png", uri],
        image_detail="low",
    )
    async with FakeOpenAI() as server:
        for protocol in ("chat_completions", "responses"):
            async with client_of(server, protocol) as client:
                assert (await client.generate(request))[0].content == "What is it?"
    urls = [uri, "https://example.org/a.png", uri]
    chat, responses = server.bodies
    assert chat["messages"][1]["content"] == [
        *({"type": "image_url", "image_url": {"url": url, "detail": "low"}} for url in urls),
        {"type": "text", "text": "What is it?"},
    ]
    assert responses["input"][1]["content"] == [
        *({"type": "input_image", "image_url": url, "detail": "low"} for url in urls),
        {"type": "input_text", "text": "What is it?"},
    ]
    assert request.messages == [{"role": "system", "content": "Look."}, {"role": "user", "content": "What is it?"}]


@pytest.mark.parametrize(("name", "content"), [("missing.png", None), ("text.xyz", b"no picture")])
async def test_an_image_that_cannot_be_read_is_a_problem_that_cannot_be_rendered(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    async with FakeOpenAI() as server, client_of(server) as client:
        with pytest.raises(InferenceError, match=name) as caught:
            await client.generate(ModelRequest(prompt="q", images=[str(tmp_path / name)]))
    assert caught.value.category == "seed_error"
    assert server.count == 0


async def test_every_generation_parameter_reaches_the_wire_and_none_is_not_sent() -> None:
    service = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 100, "seed": None, "stop": ["\n"]}
    own = {
        "temperature": 0.0,
        "stop": None,
        "frequency_penalty": 0.5,
        "presence_penalty": -0.5,
        "top_k": 5,
        "min_p": 0.1,
    }
    sent = {"temperature": 0.0, "top_p": 0.9, "max_tokens": 100, "frequency_penalty": 0.5, "presence_penalty": -0.5}
    sent |= {"top_k": 5, "min_p": 0.1}
    request = ModelRequest(prompt="q", generation=own)
    async with FakeOpenAI() as server:
        for protocol, field in (("chat_completions", "messages"), ("completions", "prompt")):
            async with client_of(server, protocol, generation=service) as client:
                await client.generate(request)
                assert client.parameters(request) == sent
            body = server.bodies[-1]
            body.pop(field)
            assert body == {"model": "fake", **sent}


async def test_the_responses_protocol_has_its_own_names() -> None:
    schema = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    generation = {
        "max_tokens": 64,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": schema},
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "logprobs": True,
        "top_logprobs": 3,
    }
    async with FakeOpenAI() as server, client_of(server, "responses", generation=generation) as client:
        await client.chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}])
    assert server.requests[0].path == "/v1/responses"
    assert server.bodies[0] == {
        "model": "fake",
        "input": [
            {"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        ],
        "max_output_tokens": 64,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", **schema}},
        "tool_choice": {"type": "function", "name": "weather"},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 3,
    }


async def test_a_response_format_reaches_a_chat_service() -> None:
    async with FakeOpenAI() as server, client_of(server) as client:
        await client.complete("q", response_format={"type": "json_object"})
    assert server.bodies[0]["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("protocol", "request_", "what"),
    [
        ("responses", ModelRequest(prompt="q", generation={"stop": ["x"]}), "'stop'"),
        ("responses", ModelRequest(prompt="q", generation={"frequency_penalty": 1}), "'frequency_penalty'"),
        ("responses", ModelRequest(prompt="q", generation={"seed": 1}), "'seed'"),
        ("completions", ModelRequest(prompt="q", generation={"response_format": {}}), "'response_format'"),
        ("completions", ModelRequest(prompt="q", tools=[WEATHER]), "tools"),
        ("completions", ModelRequest(prompt="q", images=["a.png"]), "images"),
        ("completions", ModelRequest(messages=[{"role": "user", "content": "q"}]), "messages"),
        ("chat_completions", ModelRequest(), "an empty request"),
        ("chat_completions", ModelRequest(prompt="q", generation={"temprature": 1}), "did you mean 'temperature'"),
    ],
)
async def test_what_a_protocol_cannot_carry_is_refused_before_any_request(
    protocol: str, request_: ModelRequest, what: str
) -> None:
    async with FakeOpenAI() as server, client_of(server, protocol) as client:
        with pytest.raises(UsageError, match=what):
            client.check(request_)
        with pytest.raises(UsageError, match=what):
            await client.generate(request_)
    assert server.count == 0


async def test_a_parameter_of_none_is_no_parameter_for_any_protocol() -> None:
    async with FakeOpenAI() as server, client_of(server, "responses", generation={"stop": None}) as client:
        await client.complete("q", seed=None)
    assert server.bodies[0].keys() == {"model", "input"}


async def test_a_configured_seed_is_sent_as_seed_plus_repeat() -> None:
    async with FakeOpenAI() as server, client_of(server, generation={"seed": 40}) as client:
        await client.complete("q", repeat=0)
        await client.complete("q", repeat=2)
        await client.complete("q", repeat=2, seed=None)
    assert [body.get("seed") for body in server.bodies] == [40, 42, None]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", ["chat_completions", "completions"])
async def test_several_choices_count_the_prompt_once_and_share_the_answer_tokens(protocol: str, stream: bool) -> None:
    texts = iter(["one", "three and more", "two"])
    async with FakeOpenAI(lambda _: next(texts)) as server, client_of(server, protocol, stream=stream) as client:
        responses = await client.generate(ModelRequest(prompt="twelve chars", n=3))
    assert server.count == 1
    assert server.bodies[0]["n"] == 3
    assert [r.content for r in responses] == ["one", "three and more", "two"]
    assert [r.prompt_tokens for r in responses] == [3, 0, 0]
    assert sum(r.completion_tokens for r in responses) == 1 + 4 + 1
    assert responses[1].completion_tokens > responses[0].completion_tokens


async def test_several_answers_are_asked_one_by_one_where_each_is_its_own_request() -> None:
    async with FakeOpenAI() as server:
        async with client_of(server, generation={"seed": 5}) as client:
            assert len(await client.generate(ModelRequest(prompt="q", n=3, repeat=1))) == 3
        assert sorted(body["seed"] for body in server.bodies) == [6, 7, 8]
        async with client_of(server, "responses") as client:
            assert len(await client.generate(ModelRequest(prompt="q", n=2))) == 2
    assert server.count == 5
    assert not any("n" in body for body in server.bodies)


async def test_a_server_that_ignores_n_is_asked_for_the_rest() -> None:
    def one_choice(body: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"index": 0, "message": {"content": f"n={body.get('n')}"}, "finish_reason": "stop"}]}

    async with FakeOpenAI(one_choice) as server, client_of(server) as client:
        responses = await client.generate(ModelRequest(prompt="q", n=3))
    assert [r.content for r in responses] == ["n=3", "n=None", "n=None"]


async def test_extra_body_headers_and_the_key_reach_the_wire() -> None:
    async with (
        FakeOpenAI(api_key="sk-test-0123456789") as server,
        client_of(
            server,
            api_key="sk-test-0123456789",
            headers={"X-Team": "eval"},
            generation={"top_k": 3},
            extra_body={"chat_template_kwargs": {"enable_thinking": False}, "top_k": 7},
        ) as client,
    ):
        await client.complete("q")
    assert server.requests[0].headers["x-team"] == "eval"
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert server.bodies[0]["top_k"] == 7


async def test_a_response_carries_the_hashes_of_what_was_sent_and_received() -> None:
    async with FakeOpenAI() as server, client_of(server) as client:
        (response,) = await client.generate(ModelRequest(prompt="q", keep_raw=True))
        again = await client.complete("q")
        other = await client.complete("r")
    assert response.request_hash == hashlib.sha256(server.requests[0].raw).hexdigest()
    assert response.request_hash == again.request_hash != other.request_hash
    assert response.response_hash != other.response_hash
    assert response.raw_response is not None
    assert response.raw_response["choices"][0]["message"]["content"] == "q"
    assert again.raw_response is None


@pytest.mark.parametrize(("cached_price", "cost"), [(None, 0.0048), (0.1, 0.00309)])
async def test_cost_follows_the_price_table(cached_price: float | None, cost: float) -> None:
    usage = {"prompt_tokens": 1800, "cached_tokens": 900, "completion_tokens": 300}
    prices = Prices(input=2.0, output=4.0, cached_input=cached_price)
    async with FakeOpenAI(lambda _: Answer(content="x", usage=usage)) as server:
        async with client_of(server, prices=prices) as client:
            response = await client.complete("q")
        async with client_of(server) as client:
            assert (await client.complete("q")).cost is None
    assert response.cost == pytest.approx(cost)


@pytest.mark.parametrize("protocol", ["chat_completions", "responses"])
async def test_a_refusal_is_an_answer(protocol: str) -> None:
    answer = Answer(content=None, refusal="I cannot help with that")
    async with FakeOpenAI(lambda _: answer) as server, client_of(server, protocol) as client:
        response = await client.complete("q")
    assert (response.content, response.finish_reason) == ("I cannot help with that", "refusal")


async def test_models_are_listed_at_the_address_beside_the_endpoint() -> None:
    async with FakeOpenAI(models=["a", "b/c"], api_key="sk-test-0123456789") as server:
        for protocol in PROTOCOLS:
            async with client_of(server, protocol, api_key="sk-test-0123456789") as client:
                assert await client.list_models() == ["a", "b/c"]
        async with client_of(server, api_key="sk-wrong-0123456789") as client:
            with pytest.raises(ServiceError, match="auth_error") as caught:
                await client.list_models()
    assert "sk-wrong" not in str(caught.value)


async def test_listing_the_models_of_a_dead_server_says_so() -> None:
    async with FakeOpenAI() as server:
        settings = settings_for(server)
    async with Client(settings) as client:
        with pytest.raises(ServiceError, match="Is the server running"):
            await client.list_models()


async def test_a_proxy_of_the_environment_is_used_for_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with FakeOpenAI() as server, FakeOpenAI() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        async with client_of(server) as client:
            await client.complete("here")
        async with client_of(server, urls=["http://model.invalid/v1/chat/completions"]) as client:
            assert (await client.complete("there")).content == "there"
    assert (server.count, proxy.count) == (1, 1)


async def test_a_request_for_no_answers_is_refused() -> None:
    async with FakeOpenAI() as server, client_of(server) as client:
        with pytest.raises(UsageError, match="at least 1"):
            await client.generate(ModelRequest(prompt="q", n=0))


def test_the_client_loads_nothing_heavy_before_it_is_made() -> None:
    code = "import sys, nel.inference.client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "pydantic", "numpy", "rich", "jinja2"} & set(loaded)
