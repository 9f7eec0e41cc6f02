"""Slots, rates and the adaptive limit of a service, on a clock that only the test moves."""

from __future__ import annotations

import asyncio
from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_clock import VirtualClock, settle

from nel.inference.limits import AdaptiveLimit, Limits, Permit, TokenBucket, Verdict


def limits_of(clock: VirtualClock | None = None, **options: object) -> Limits:
    return Limits(**{"max_concurrent": 4, "adaptive": False, "clock": clock or VirtualClock(), **options})  # type: ignore[arg-type]


async def test_no_more_than_the_slots_are_in_flight_and_waiters_go_first_come_first_served() -> None:
    limits = limits_of(max_concurrent=2)
    served: list[int] = []

    async def use(number: int) -> None:
        permit = await limits.acquire()
        served.append(number)
        assert limits.in_flight <= 2
        await settle()
        limits.release(permit)

    await asyncio.gather(*(use(number) for number in range(20)))
    assert served == list(range(20))
    assert limits.in_flight == 0


async def test_a_newcomer_does_not_pass_a_waiter() -> None:
    limits = limits_of(max_concurrent=1)
    held = await limits.acquire()
    waiter = asyncio.create_task(limits.acquire())
    await settle()
    limits.release(held)  # the slot is the waiter's now, though it has not run yet
    newcomer = asyncio.create_task(limits.acquire())
    await settle()
    assert waiter.done()
    assert not newcomer.done()
    limits.release(waiter.result())
    await settle()
    limits.release(newcomer.result())
    assert limits.in_flight == 0


async def test_a_cancelled_waiter_takes_no_slot() -> None:
    limits = limits_of(max_concurrent=1)
    held = await limits.acquire()
    first, second = asyncio.create_task(limits.acquire()), asyncio.create_task(limits.acquire())
    await settle()
    first.cancel()
    await settle()
    limits.release(held)
    await settle()
    assert first.cancelled()
    limits.release(second.result())
    assert (limits.in_flight, limits.waiting) == (0, 0)


async def test_a_waiter_that_is_cancelled_just_as_it_is_served_passes_its_slot_on() -> None:
    limits = limits_of(max_concurrent=1)
    held = await limits.acquire()
    first, second = asyncio.create_task(limits.acquire()), asyncio.create_task(limits.acquire())
    await settle()
    limits.release(held)  # serves `first`, which has not run yet
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.done()
    limits.release(second.result())
    assert limits.in_flight == 0


@given(
    st.lists(st.sampled_from(["ask", "release", "cancel", "settle"]), min_size=1, max_size=60),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=60)
def test_no_order_of_asking_releasing_and_cancelling_leaks_a_slot(
    actions: list[str], slots: int, source: object
) -> None:
    async def run() -> None:
        limits = limits_of(max_concurrent=slots)
        tasks: list[asyncio.Task[Permit]] = []
        released: set[asyncio.Task[Permit]] = set()

        def holders() -> list[asyncio.Task[Permit]]:
            return [t for t in tasks if t.done() and not t.cancelled() and t not in released]

        for action in actions:
            waiting = [task for task in tasks if not task.done()]
            if action == "ask":
                tasks.append(asyncio.create_task(limits.acquire()))
            elif action == "cancel" and waiting:
                source.choice(waiting).cancel()  # type: ignore[attr-defined]
            elif action == "release" and holders():
                task = source.choice(holders())  # type: ignore[attr-defined]
                released.add(task)
                limits.release(task.result())
            elif action == "settle":
                await settle()
                assert len(holders()) == limits.in_flight
                assert limits.in_flight == slots or all(task.done() for task in tasks), "a slot is idle while one waits"
            assert limits.in_flight <= slots
        while True:
            await settle()
            if not holders():
                break
            for task in holders():
                released.add(task)
                limits.release(task.result())
        assert limits.in_flight == 0
        assert all(task.done() for task in tasks)

    asyncio.run(run())


# rates


@given(st.integers(1, 300), st.lists(st.floats(0, 20), max_size=40))
@settings(deadline=None, max_examples=30)
def test_no_minute_sees_more_requests_than_allowed(per_minute: int, pauses: list[float]) -> None:
    clock = VirtualClock()
    bucket = TokenBucket(per_minute, clock)
    taken: list[float] = []
    for pause in [*pauses, *([0.0] * 3 * per_minute)][:600]:
        clock.now += pause
        clock.now += bucket.delay(1)
        assert bucket.delay(1) == 0, "the promised wait is enough"
        bucket.take(1)
        taken.append(clock.now)
    for at, start in enumerate(taken):
        assert bisect_left(taken, start + 60 - 1e-6) - at <= per_minute


@given(st.integers(1, 600))
@settings(deadline=None, max_examples=30)
def test_a_rate_is_used_and_not_only_kept(per_minute: int) -> None:
    clock = VirtualClock()
    bucket = TokenBucket(per_minute, clock)
    count = 0
    while clock.now < 600:
        clock.now += bucket.delay(1)
        bucket.take(1)
        count += 1
    assert count >= 0.9 * 10 * per_minute


async def test_requests_wait_for_their_minute() -> None:
    clock = VirtualClock()
    limits = limits_of(clock, max_concurrent=100, requests_per_minute=60)
    done: list[float] = []

    async def use() -> None:
        limits.release(await limits.acquire())
        done.append(clock.now)

    tasks = [asyncio.create_task(use()) for _ in range(5)]
    await clock.advance(10)
    assert done == pytest.approx([0, 1, 2, 3, 4])
    await asyncio.gather(*tasks)


async def test_tokens_are_reserved_by_estimate_and_corrected_by_what_was_used() -> None:
    clock = VirtualClock()
    limits = limits_of(clock, max_concurrent=100, tokens_per_minute=12_000)  # 1,000 in the bucket, about 183 a second
    first = await limits.acquire(1_000)
    second = asyncio.create_task(limits.acquire(500))
    await clock.advance(1)
    assert not second.done()
    limits.release(first, used=100)  # 900 were not used
    await settle()
    assert second.done()
    limits.release(await second, used=3_000)  # far more than reserved
    third = asyncio.create_task(limits.acquire(100))
    await clock.advance(10)
    assert not third.done()
    await clock.advance(5)
    assert third.done()


async def test_a_request_larger_than_the_bucket_is_served_in_the_end() -> None:
    clock = VirtualClock()
    limits = limits_of(clock, tokens_per_minute=600)
    await limits.acquire(10_000)
    second = asyncio.create_task(limits.acquire(10_000))
    await clock.advance(600)
    assert not second.done()
    await clock.advance(600)
    assert second.done()


# the adaptive limit


def feed(limit: AdaptiveLimit, answers: int, in_flight: int | None = None) -> None:
    for _ in range(answers):
        load = limit.value if in_flight is None else in_flight
        limit.used(load)
        limit.answered(load)


def test_slow_start_doubles_each_round_until_the_ceiling() -> None:
    limit = AdaptiveLimit(50)
    seen = [limit.value]
    for _ in range(4):
        feed(limit, limit.value)
        seen.append(limit.value)
    assert seen == [8, 16, 32, 50, 50]


def test_after_the_first_overload_the_rise_is_gentle() -> None:
    limit = AdaptiveLimit(100)
    feed(limit, 8 + 16 + 32)
    assert limit.value == 64
    limit.overloaded(limit.epoch)
    assert limit.value == 51
    feed(limit, 51)
    assert limit.value == 52


def test_one_burst_of_refusals_cuts_once() -> None:
    limit = AdaptiveLimit(100)
    feed(limit, 8 + 16)
    sent_in = limit.epoch
    for _ in range(32):
        limit.overloaded(sent_in)
    assert limit.value == 25
    limit.overloaded(limit.epoch)
    assert limit.value == 20


def test_an_idle_limit_does_not_rise() -> None:
    limit = AdaptiveLimit(100)
    feed(limit, 1_000, in_flight=6)
    assert limit.value == 8
    feed(limit, 8, in_flight=7)
    assert limit.value == 16


def test_a_limit_that_fell_to_one_recovers() -> None:
    limit = AdaptiveLimit(64)
    for _ in range(40):
        limit.overloaded(limit.epoch)
    assert limit.value == 1
    feed(limit, 64 * 65)
    assert limit.value == 64


@given(st.integers(1, 200), st.lists(st.sampled_from(["answer", "idle", "overload", "old overload"]), max_size=400))
@settings(deadline=None, max_examples=100)
def test_the_adaptive_limit_keeps_its_promises(ceiling: int, events: list[str]) -> None:
    limit = AdaptiveLimit(ceiling)
    overloaded = False
    for event in events:
        before, epoch = limit.value, limit.epoch
        if event == "answer":
            feed(limit, 1)
            assert before <= limit.value <= (before + 1 if overloaded else 2 * before)
        elif event == "idle":
            limit.answered(1)
        elif event == "overload":
            limit.overloaded(epoch)
            overloaded = True
            assert limit.value == max(1, int(before * 0.8))
            assert limit.epoch == epoch + 1
        else:
            limit.overloaded(epoch - 1)
            assert limit.value == before
        assert 1 <= limit.value <= ceiling


async def test_refused_requests_lower_what_may_be_in_flight() -> None:
    limits = limits_of(max_concurrent=64, adaptive=True)
    permits = [await limits.acquire() for _ in range(8)]
    ninth = asyncio.create_task(limits.acquire())
    await settle()
    assert not ninth.done()
    for permit in permits:
        limits.release(permit, verdict=Verdict.OVERLOADED)
    await settle()
    assert limits.limit == 6
    limits.release(ninth.result(), verdict=Verdict.ANSWERED)
    assert limits.in_flight == 0
