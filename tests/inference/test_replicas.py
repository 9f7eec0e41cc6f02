"""Several URLs of one service."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter

import pytest
from inference_help import Client, settings_for
from openai_faults import Fault
from openai_server import FakeOpenAI
from virtual_clock import VirtualClock

from nel.inference.failure import InferenceError
from nel.inference.replicas import Replicas


def test_the_replica_with_the_fewest_requests_is_asked_and_equals_take_turns() -> None:
    replicas = Replicas(["a", "b", "c"], VirtualClock())
    first = [replicas.take() for _ in range(6)]
    assert Counter(replica.url for replica in first) == {"a": 2, "b": 2, "c": 2}
    for replica in first:
        if replica.url == "b":
            replicas.put(replica, unreachable=False)
    assert [replicas.take().url for _ in range(2)] == ["b", "b"]


def test_a_replica_that_cannot_be_reached_rests_ever_longer_and_comes_back() -> None:
    clock = VirtualClock()
    replicas = Replicas(["a", "b"], clock)
    fail_next(replicas, "a")
    assert {taken(replicas) for _ in range(4)} == {"b"}
    clock.now = 5.0
    assert {taken(replicas) for _ in range(4)} == {"a", "b"}
    fail_next(replicas, "a")
    clock.now = 14.0
    assert {taken(replicas) for _ in range(4)} == {"b"}
    clock.now = 15.0
    assert {taken(replicas) for _ in range(4)} == {"a", "b"}


def test_when_all_rest_the_one_that_wakes_first_is_asked() -> None:
    clock = VirtualClock()
    replicas = Replicas(["a", "b"], clock)
    fail_next(replicas, "b")
    assert replicas.another_awake()
    clock.now = 1.0
    fail_next(replicas, "a")
    assert not replicas.another_awake()
    assert taken(replicas) == "b"


def taken(replicas: Replicas) -> str:
    replica = replicas.take()
    replicas.put(replica, unreachable=False) if replica.failures == 0 else release(replica)
    return replica.url


def release(replica) -> None:
    replica.in_flight -= 1


def fail_next(replicas: Replicas, url: str) -> None:
    while True:
        replica = replicas.take()
        replicas.put(replica, unreachable=replica.url == url)
        if replica.url == url:
            return


async def test_requests_spread_over_the_replicas_and_each_answer_names_its_own() -> None:
    async with FakeOpenAI(lambda _: "one") as one, FakeOpenAI(lambda _: "two") as two:
        settings = settings_for(one, urls=[one.chat_url.replace("//", "//user:secret-password@"), two.chat_url])
        async with Client(settings) as client:
            responses = await asyncio.gather(*(client.complete(str(at)) for at in range(8)))
    assert (one.count, two.count) == (4, 4)
    assert {(r.content, r.replica) for r in responses} == {("one", one.chat_url), ("two", two.chat_url)}


async def test_a_dead_replica_costs_a_try_but_no_wait_and_no_answer() -> None:
    with socket.socket() as taken_port:
        taken_port.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken_port.getsockname()[1]}/v1/chat/completions"
        async with FakeOpenAI() as alive, Client(settings_for(alive, urls=[dead, alive.chat_url])) as client:
            responses = [await client.complete(str(at)) for at in range(6)]
    assert [r.content for r in responses] == [str(at) for at in range(6)]
    assert sum(r.tries for r in responses) == 7
    assert client.clock.waits == []


async def test_a_refusal_of_one_replica_does_not_rest_it() -> None:
    async with FakeOpenAI() as one, FakeOpenAI() as two:
        one.script([Fault(status=503)])
        two.script([Fault(status=503)])
        async with Client(settings_for(one, urls=[one.chat_url, two.chat_url])) as client:
            for at in range(4):
                await client.complete(str(at))
    assert one.count == two.count == 3


async def test_when_all_replicas_are_dead_the_request_ends() -> None:
    async with FakeOpenAI() as one, FakeOpenAI() as two:
        settings = settings_for(one, urls=[one.chat_url, two.chat_url], max_retries=3)
    async with Client(settings) as client:
        with pytest.raises(InferenceError) as caught:
            await client.complete("hello")
    assert (caught.value.category, caught.value.tries) == ("connection_error", 4)
