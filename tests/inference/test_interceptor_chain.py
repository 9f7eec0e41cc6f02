"""Interceptors inside the client: order, changes, answers of their own, errors, identity."""

from __future__ import annotations

from typing import Any

import pytest
from inference_help import client_of
from openai_faults import Fault
from openai_server import FakeOpenAI

from nel.core.errors import AttemptError, UsageError
from nel.inference.chain import AdapterRequest, AdapterResponse, BaseInterceptor, Chain, InterceptContext
from nel.inference.failure import InferenceError
from nel.inference.request import ModelRequest


class Trace(BaseInterceptor):
    """Notes where a request and its response pass."""

    changes = False

    def __init__(self, name: str, log: list[str]) -> None:
        self.label = name
        self.log = log

    async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterRequest:
        self.log.append(f"{self.label} request")
        return request

    async def on_response(self, ctx: InterceptContext, response: AdapterResponse) -> AdapterResponse:
        self.log.append(f"{self.label} response {response.status}")
        return response


class SystemMessage(BaseInterceptor):
    """Puts a system message first, in place."""

    name = "system_message"

    def __init__(self, text: str) -> None:
        self.text = text

    async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterRequest:
        request.body["messages"].insert(0, {"role": "system", "content": self.text})
        request.headers["X-Touched"] = "yes"
        return request

    def settings(self) -> dict[str, Any]:
        return {"text": self.text}


class Loud(BaseInterceptor):
    """Writes answers in capitals."""

    name = "loud"

    async def on_response(self, ctx: InterceptContext, response: AdapterResponse) -> AdapterResponse:
        message = response.body["choices"][0]["message"]
        message["content"] = message["content"].upper()
        return response


class Canned(BaseInterceptor):
    """Answers by itself."""

    name = "canned"

    async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterResponse:
        return AdapterResponse(200, {}, {"choices": [{"message": {"content": "canned"}, "finish_reason": "stop"}]})


class Broken(BaseInterceptor):
    name = "broken"

    def __init__(self, *, best_effort: bool = False) -> None:
        self.best_effort = best_effort
        self.changes = not best_effort

    async def on_response(self, ctx: InterceptContext, response: AdapterResponse) -> AdapterResponse:
        raise KeyError("choices")


async def test_requests_pass_in_order_and_responses_in_reverse() -> None:
    log: list[str] = []
    chain = Chain([Trace("outer", log), Trace("inner", log)])
    async with FakeOpenAI() as server, client_of(server, chain=chain) as client:
        assert (await client.complete("q")).content == "q"
    assert log == ["outer request", "inner request", "inner response 200", "outer response 200"]


async def test_changes_reach_the_wire_and_the_answer_but_not_the_caller() -> None:
    messages = [{"role": "user", "content": "hello"}]
    chain = Chain([SystemMessage("Be brief."), Loud()])
    async with FakeOpenAI() as server, client_of(server, chain=chain, api_key="sk-0123456789abcdef") as client:
        response = await client.chat(messages)
    assert server.bodies[0]["messages"] == [{"role": "system", "content": "Be brief."}, *messages]
    assert server.requests[0].headers["x-touched"] == "yes"
    assert server.requests[0].headers["authorization"] == "Bearer sk-0123456789abcdef"
    assert response.content == "HELLO"
    assert response.prompt_tokens == 2
    assert messages == [{"role": "user", "content": "hello"}]


async def test_interceptors_see_the_context_and_no_credentials() -> None:
    seen: list[Any] = []

    class Spy(BaseInterceptor):
        async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterRequest:
            ctx.state["mark"] = 7
            seen.append(
                (ctx.service, ctx.protocol, ctx.model, ctx.session, ctx.repeat, request.path, dict(request.headers))
            )
            return request

        async def on_response(self, ctx: InterceptContext, response: AdapterResponse) -> AdapterResponse:
            seen.append(ctx.state["mark"])
            return response

    async with (
        FakeOpenAI() as server,
        client_of(server, chain=Chain([Spy()]), api_key="sk-0123456789abcdef", headers={"A": "b"}) as client,
    ):
        await client.generate(ModelRequest(prompt="q", session="s-1", repeat=3))
    headers = {"Content-Type": "application/json", "User-Agent": "nel", "A": "b"}
    assert seen == [("svc", "chat_completions", "fake", "s-1", 3, "/v1/chat/completions", headers), 7]


async def test_a_changed_path_is_where_the_request_goes() -> None:
    class Elsewhere(BaseInterceptor):
        async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterRequest:
            return AdapterRequest("/v2/none", request.headers, request.body)

    async with FakeOpenAI() as server, client_of(server, chain=Chain([Elsewhere()])) as client:
        with pytest.raises(InferenceError) as caught:
            await client.complete("q")
    assert caught.value.status == 404
    assert server.count == 0


async def test_an_interceptor_that_answers_ends_the_way_there() -> None:
    log: list[str] = []
    chain = Chain([Trace("outer", log), Canned(), Trace("inner", log)])
    async with FakeOpenAI() as server, client_of(server, chain=chain) as client:
        assert (await client.complete("q")).content == "canned"
    assert server.count == 0
    assert log == ["outer request", "outer response 200"]


async def test_interceptors_see_the_last_refusal_and_the_error_stays_what_it_was() -> None:
    log: list[str] = []
    async with (
        FakeOpenAI(rule=lambda *_: Fault(status=503)) as server,
        client_of(server, chain=Chain([Trace("t", log)]), max_retries=2) as client,
    ):
        with pytest.raises(InferenceError) as caught:
            await client.complete("q")
    assert (caught.value.category, caught.value.status, caught.value.tries) == ("server_error", 503, 3)
    assert log == ["t request", "t response 503"]


@pytest.mark.parametrize("fault", [Fault.html(200), Fault.null_content(), Fault.reset(), Fault.wrong_shape([1])])
async def test_a_reply_that_is_none_has_the_same_category_with_a_chain(fault: Fault) -> None:
    categories = []
    async with FakeOpenAI() as server:
        for chain in (None, Chain([Trace("t", [])])):
            async with client_of(server, chain=chain, max_retries=0) as client:
                server.script([fault])
                with pytest.raises(InferenceError) as caught:
                    await client.complete("q")
                categories.append(caught.value.category)
    assert categories[0] == categories[1]


async def test_an_interceptor_may_turn_a_refusal_into_an_answer() -> None:
    class Forgive(BaseInterceptor):
        async def on_response(self, ctx: InterceptContext, response: AdapterResponse) -> AdapterResponse:
            assert response.status == 400
            return AdapterResponse(200, {}, {"choices": [{"message": {"content": "never mind"}}]})

    async with (
        FakeOpenAI(rule=lambda *_: Fault(status=400)) as server,
        client_of(server, chain=Chain([Forgive()])) as client,
    ):
        assert (await client.complete("q")).content == "never mind"


async def test_an_error_of_an_interceptor_names_it() -> None:
    async with FakeOpenAI() as server, client_of(server, chain=Chain([Broken()])) as client:
        with pytest.raises(AttemptError, match="interceptor broken, on_response: KeyError") as caught:
            await client.complete("q")
    assert caught.value.category == "solver_error"


async def test_a_refusal_by_an_interceptor_passes_as_it_is() -> None:
    class Budget(BaseInterceptor):
        async def on_request(self, ctx: InterceptContext, request: AdapterRequest) -> AdapterRequest:
            raise AttemptError("no turns left", category="budget_exceeded", permanent=True)

    async with FakeOpenAI() as server, client_of(server, chain=Chain([Budget()])) as client:
        with pytest.raises(AttemptError, match="no turns left") as caught:
            await client.complete("q")
    assert caught.value.category == "budget_exceeded"


async def test_errors_of_best_effort_interceptors_are_logged_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeOpenAI() as server, client_of(server, chain=Chain([Broken(best_effort=True)])) as client:
        assert (await client.complete("q")).content == "q"
    assert "interceptor broken" in caplog.text


def test_best_effort_is_refused_for_what_changes_something() -> None:
    interceptor = Broken(best_effort=True)
    interceptor.changes = True
    with pytest.raises(UsageError, match="broken"):
        Chain([interceptor])


async def test_only_what_changes_something_enters_identity() -> None:
    async with FakeOpenAI() as server:
        plain = client_of(server)
        traced = client_of(server, chain=Chain([Trace("t", [])]))
        changed = client_of(server, chain=Chain([SystemMessage("a"), Loud()]))
        other = client_of(server, chain=Chain([SystemMessage("b"), Loud()]))
    assert plain.identity() == traced.identity()
    assert changed.identity()["interceptors"] == [
        {"interceptor": "system_message", "version": "1", "text": "a"},
        {"interceptor": "loud", "version": "1"},
    ]
    assert changed.identity() != other.identity()


async def test_closing_the_client_closes_its_interceptors() -> None:
    closed = []

    class Holder(BaseInterceptor):
        async def close(self) -> None:
            closed.append(self)

    async with FakeOpenAI() as server, client_of(server, chain=Chain([Holder()])):
        pass
    assert len(closed) == 1
