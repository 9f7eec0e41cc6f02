"""The response cache: what is a hit, what is not, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inference_help import PROTOCOLS, Client, client_of, settings_for
from openai_faults import Fault
from openai_server import FakeOpenAI
from openai_wire import Answer

from nel.inference.cache import CacheKey, ResponseCache
from nel.inference.cost import Prices
from nel.inference.failure import InferenceError
from nel.inference.request import ModelRequest

ENDPOINT = {"url": "http://host/v1/chat/completions", "model": "m", "protocol": "chat_completions"}
BODY = {"model": "m", "messages": [{"role": "user", "content": "q"}], "temperature": 0.0, "stop": ["a", "b"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_equal_request_is_answered_without_a_request(tmp_path: Path, protocol: str) -> None:
    answer = Answer(content="42", usage={"prompt_tokens": 9})
    options = {"cache_dir": tmp_path, "prices": Prices(input=1.0, output=1.0)}
    async with FakeOpenAI(lambda _: answer) as server:
        async with client_of(server, protocol, **options) as client:
            first = await client.complete("q")
        async with client_of(server, protocol, **options) as client:
            again = await client.complete("q")
    assert server.count == 1
    assert (first.cached, again.cached) == (False, True)
    assert (again.content, again.prompt_tokens, again.latency_ms, again.cost) == ("42", 9, 0.0, 0.0)
    assert again.request_hash == first.request_hash


async def test_each_repeat_is_kept_for_itself_and_n_changes_nothing(tmp_path: Path) -> None:
    numbers = iter(range(100))
    async with FakeOpenAI(lambda _: str(next(numbers))) as server, client_of(server, cache_dir=tmp_path) as client:
        three = await client.generate(ModelRequest(prompt="q", n=3))
        second = await client.generate(ModelRequest(prompt="q", repeat=1))
        more = await client.generate(ModelRequest(prompt="q", repeat=2, n=2))
    assert server.count == 4
    assert second[0].content == three[1].content
    assert (more[0].content, more[0].cached, more[1].cached) == (three[2].content, True, False)


async def test_a_streamed_reply_is_a_hit_for_a_whole_one(tmp_path: Path) -> None:
    async with FakeOpenAI() as server, client_of(server, cache_dir=tmp_path) as client:
        await client.generate(ModelRequest(prompt="q", stream=True))
        (response,) = await client.generate(ModelRequest(prompt="q", stream=False))
    assert (server.count, response.content, response.cached) == (1, "q", True)


async def test_another_server_model_or_parameter_is_asked_again(tmp_path: Path) -> None:
    async with FakeOpenAI() as one, FakeOpenAI() as two:
        for server, options in (
            (one, {}),
            (two, {}),
            (one, {"model": "other"}),
            (one, {"generation": {"temperature": 0.1}}),
            (one, {"extra_body": {"top_k": 1}}),
        ):
            async with client_of(server, cache_dir=tmp_path, **options) as client:
                assert not (await client.complete("q")).cached
    assert (one.count, two.count) == (4, 1)


async def test_a_declared_identity_stands_for_the_address(tmp_path: Path) -> None:
    async with FakeOpenAI() as one, FakeOpenAI() as two:
        async with client_of(one, cache_dir=tmp_path, declared_identity="weights sha256:1") as client:
            await client.complete("q")
        async with client_of(two, cache_dir=tmp_path, declared_identity="weights sha256:1") as client:
            assert (await client.complete("q")).cached


async def test_images_are_part_of_the_key(tmp_path: Path) -> None:
    async with FakeOpenAI() as server, client_of(server, cache_dir=tmp_path) as client:
        for images in (None, ["https://example.org/a.png"], ["https://example.org/b.png"]):
            (response,) = await client.generate(ModelRequest(prompt="q", images=images))
            assert not response.cached


async def test_failures_are_not_kept(tmp_path: Path) -> None:
    async with FakeOpenAI() as server, client_of(server, cache_dir=tmp_path, max_retries=0) as client:
        server.script([Fault(status=500), Fault.null_content()])
        for _ in range(2):
            with pytest.raises(InferenceError):
                await client.complete("q")
        assert not (await client.complete("q")).cached
    assert server.count == 3


async def test_a_cache_that_cannot_be_written_costs_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    async with FakeOpenAI() as server, client_of(server, cache_dir=tmp_path / "file") as client:
        assert (await client.complete("q")).content == "q"
    assert "could not be kept" in caplog.text


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_a_torn_file_is_no_hit(data: st.DataObject) -> None:
    import tempfile

    key = CacheKey.of(ENDPOINT, BODY, 0)
    with tempfile.TemporaryDirectory() as folder:
        cache = ResponseCache(folder)
        asyncio.run(cache.put(key, b'{"choices": []}'))
        (file,) = Path(folder).glob("*/*")
        whole = file.read_bytes()
        damage = data.draw(st.sampled_from(["cut", "zero", "flip"]))
        at = data.draw(st.integers(0, len(whole) - 1))
        torn = {
            "cut": whole[:at],
            "zero": whole[:at] + bytes(len(whole) - at),
            "flip": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
        }[damage]
        file.write_bytes(torn)
        assert asyncio.run(cache.get(key)) in {None, b'{"choices": []}'}
        if b"choices" not in torn or damage == "cut":
            assert asyncio.run(cache.get(key)) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(["messages", "prompt", "stop", "seed", "temperature", "x"]), json_values)


@given(bodies, st.integers(0, 3), st.data())
@settings(deadline=None, max_examples=60)
def test_equal_requests_share_a_key_and_any_changed_field_has_another(
    body: dict[str, Any], repeat: int, data: st.DataObject
) -> None:
    key = CacheKey.of(ENDPOINT, body, repeat)
    shuffled = dict(reversed(body.items()))
    assert CacheKey.of(ENDPOINT, {**shuffled, "n": 4, "stream": True}, repeat) == key
    name = data.draw(st.sampled_from([*sorted(body), "new"]))
    value = data.draw(json_values)
    if name not in body or digest(body[name]) != digest(value):
        assert CacheKey.of(ENDPOINT, {**body, name: value}, repeat).digest != key.digest
    assert CacheKey.of(ENDPOINT, body, repeat + 1).digest != key.digest
    assert CacheKey.of({**ENDPOINT, "url": "http://other"}, body, repeat).digest != key.digest
    if body:
        missing = {k: v for k, v in body.items() if k != next(iter(body))}
        assert CacheKey.of(ENDPOINT, missing, repeat).digest != key.digest


def digest(value: Any) -> str:
    from nel.core.digest import digest_value

    return digest_value(value)


async def test_a_miss_names_the_part_that_differs_from_the_nearest_kept_request(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    assert "nothing is kept" in cache.explain_miss(CacheKey.of(ENDPOINT, BODY, 0))
    await cache.put(CacheKey.of(ENDPOINT, BODY, 0), b"{}")
    await cache.put(CacheKey.of(ENDPOINT, {**BODY, "model": "z", "temperature": 1.0, "stop": None}, 5), b"{}")

    def why(body: dict[str, Any] = BODY, repeat: int = 0, endpoint: dict[str, Any] = ENDPOINT) -> str:
        return cache.explain_miss(CacheKey.of(endpoint, body, repeat))

    assert why() == "it is kept: a hit"
    assert why({**BODY, "temperature": 0.7}) == "body.temperature: asked 0.7, kept 0.0"
    assert why(repeat=1) == "repeat: asked 1, kept 0"
    assert why({**BODY, "top_p": 0.9}) == "body.top_p: asked 0.9, kept nothing"
    assert why(endpoint={**ENDPOINT, "model": "n"}) == 'endpoint.model: asked "n", kept "m"'
    long = why({**BODY, "messages": [{"role": "user", "content": "x" * 500}]})
    assert long.startswith("body.messages: asked sha256:")
    (file,) = (path for path in tmp_path.glob("*/*") if path.stem == CacheKey.of(ENDPOINT, BODY, 0).digest)
    file.write_bytes(file.read_bytes()[:-1])
    assert why() == "the reply that was kept is torn"


async def test_the_client_explains_a_miss_of_a_request(tmp_path: Path) -> None:
    async with FakeOpenAI() as server, client_of(server, cache_dir=tmp_path) as client:
        await client.complete("q", temperature=0.0)
        asked = ModelRequest(prompt="q", generation={"temperature": 0.5})
        assert await client.explain_miss(asked) == "body.temperature: asked 0.5, kept 0.0"
        assert server.count == 1
        async with Client(settings_for(server)) as plain:
            assert await plain.explain_miss(asked) == "the service has no cache"
