"""A simple solver sends the problem as it stands: prompts, parameters and images all reach the wire."""

import base64

import pytest
from openai_server import FakeOpenAI

from nel.core.errors import UsageError
from nel.environments.base import SeedResult
from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings
from nel.solvers.simple import ChatSolver, CompletionSolver, VLMSolver, simple_solver

PATHS = {"chat_completions": "/v1/chat/completions", "completions": "/v1/completions", "responses": "/v1/responses"}


def client_of(server, protocol="chat_completions", **options):
    return ModelClient(
        ServiceSettings(name="fake", urls=[server.url + PATHS[protocol]], protocol=protocol, model="fake", **options)
    )


async def solve(task, *, protocol="chat_completions", service=None, **options):
    """The result of one attempt, and the body that the server saw."""
    async with FakeOpenAI() as server:
        client = client_of(server, protocol, **(service or {}))
        result = await simple_solver(client, **options).solve(task)
        await client.close()
        return result, server.requests[-1].body


async def test_the_solver_s_system_prompt_replaces_the_benchmark_s():
    task = SeedResult(prompt="Q", system="benchmark")
    _, body = await solve(task)
    assert body["messages"] == [{"role": "system", "content": "benchmark"}, {"role": "user", "content": "Q"}]
    result, body = await solve(task, system_prompt="mine")
    assert body["messages"] == [{"role": "system", "content": "mine"}, {"role": "user", "content": "Q"}]
    assert result.messages == body["messages"]


async def test_the_system_prompt_is_sent_also_when_the_problem_is_a_conversation():
    messages = [
        {"role": "system", "content": "theirs"},
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": "C"},
    ]
    _, body = await solve(SeedResult(prompt="C", messages=messages), system_prompt="mine")
    assert body["messages"] == [{"role": "system", "content": "mine"}, *messages[1:]]


async def test_the_solver_s_parameters_win_over_the_service_s_one_by_one():
    result, body = await solve(
        SeedResult(prompt="Q"),
        service={"generation": {"temperature": 0.2, "top_p": 0.9}},
        generation={"temperature": 0.8},
    )
    assert (body["temperature"], body["top_p"]) == (0.8, 0.9)
    assert result.request == {"temperature": 0.8, "top_p": 0.9}


@pytest.mark.parametrize("protocol", list(PATHS))
async def test_each_protocol_answers(protocol):
    result, body = await solve(SeedResult(prompt="hello"), protocol=protocol, generation={"max_tokens": 9})
    assert result.response == "hello"
    assert 9 in body.values()


async def test_a_completion_solver_puts_the_system_prompt_in_front():
    result, body = await solve(SeedResult(prompt="Q", system="S"), protocol="completions")
    assert body["prompt"] == result.prompt == "S\n\nQ"


async def test_images_are_sent_and_the_record_names_them_by_reference(tmp_path):
    image = tmp_path / "dot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    result, body = await solve(SeedResult(prompt="What?", images=[str(image)]), images=True, image_detail="low")
    picture, text = body["messages"][0]["content"]
    assert text == {"type": "text", "text": "What?"}
    assert picture["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(image.read_bytes()).decode()
    assert picture["image_url"]["detail"] == "low"
    assert result.messages[0]["content"][0]["image_url"]["url"] == str(image)


async def test_images_are_sent_even_where_nobody_said_there_would_be_any(tmp_path):
    image = tmp_path / "dot.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    _, body = await solve(SeedResult(prompt="What?", images=[str(image)]))
    assert body["messages"][0]["content"][0]["type"] == "image_url"


async def test_the_kind_follows_protocol_and_images():
    async with FakeOpenAI() as server:
        chat, text = client_of(server), client_of(server, "completions")
        assert type(simple_solver(chat)) is ChatSolver
        assert type(simple_solver(chat, images=True)) is VLMSolver
        assert type(simple_solver(text)) is CompletionSolver
        assert ChatSolver(chat).identity() == VLMSolver(chat).identity()
        assert ChatSolver(chat).identity() != VLMSolver(chat, image_detail="low").identity()
        await chat.close()
        await text.close()


async def test_what_a_text_completion_cannot_carry_is_refused():
    with pytest.raises(UsageError, match="cannot carry"):
        await solve(SeedResult(prompt="Q", messages=[{"role": "user", "content": "Q"}]), protocol="completions")


async def test_n_and_seed_do_not_go_together():
    async with FakeOpenAI() as server:
        client = client_of(server)
        with pytest.raises(UsageError, match="share their seed"):
            simple_solver(client, choices=2, generation={"seed": 1})
        assert simple_solver(client, choices=4).identity() == simple_solver(client).identity()
        await client.close()
