"""The pool bounds work in progress, repeats what may be repeated, and never waits in a slot."""

import asyncio

import pytest

from nel.core.pool import Pool, RetryPolicy

QUICK = RetryPolicy(max_retries=2, base=0.001, longest=0.002)


async def _nothing(*_):
    raise AssertionError("gave up on a unit that should have succeeded")


def test_every_unit_is_attempted_and_no_more_than_size_at_once():
    running, most, seen = 0, 0, []

    async def attempt(unit, _tries):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        seen.append(unit)

    asyncio.run(Pool(7, attempt, _nothing).run(range(100)))
    assert sorted(seen) == list(range(100))
    assert most == 7


def test_units_are_taken_one_at_a_time_as_slots_become_free():
    taken = 0
    gate = asyncio.Event()

    def units():
        nonlocal taken
        for unit in range(1000):
            taken += 1
            yield unit

    async def attempt(_unit, _tries):
        await gate.wait()

    async def main():
        task = asyncio.create_task(Pool(3, attempt, _nothing).run(units()))
        for _ in range(10):
            await asyncio.sleep(0)
        assert taken == 3
        gate.set()
        await task
        assert taken == 1000

    asyncio.run(main())


def test_a_failure_is_repeated_with_its_try_number_and_then_given_up():
    tries_of, given_up = {}, []

    async def attempt(unit, tries):
        tries_of.setdefault(unit, []).append(tries)
        if unit == "bad" or (unit == "flaky" and tries < 3):
            raise RuntimeError(unit)

    async def give_up(unit, error, tries):
        given_up.append((unit, str(error), tries))

    pool = Pool(2, attempt, give_up, QUICK)
    asyncio.run(pool.run(["good", "flaky", "bad"]))
    assert tries_of == {"good": [1], "flaky": [1, 2, 3], "bad": [1, 2, 3]}
    assert given_up == [("bad", "bad", 3)]
    assert pool.retries == 4


def test_an_error_that_cannot_get_better_is_not_repeated():
    attempts, given_up = [], []

    async def attempt(unit, _tries):
        attempts.append(unit)
        raise ValueError

    async def give_up(unit, *_):
        given_up.append(unit)

    policy = RetryPolicy(retryable=lambda error: not isinstance(error, ValueError))
    asyncio.run(Pool(1, attempt, give_up, policy).run(["x"]))
    assert attempts == given_up == ["x"]


def test_a_unit_that_waits_for_its_retry_leaves_its_slot_to_others():
    order = []

    async def attempt(unit, tries):
        order.append(unit)
        if unit == 0 and tries == 1:
            raise RuntimeError

    asyncio.run(Pool(1, attempt, _nothing, RetryPolicy(base=0.02)).run(range(20)))
    assert order == [*range(20), 0]


def test_an_outage_keeps_what_waits_for_a_retry_bounded():
    taken = 0
    given_up = []

    def units():
        nonlocal taken
        for unit in range(200):
            taken += 1
            yield unit

    async def attempt(_unit, tries):
        if tries == 1:
            assert taken - len(given_up) <= 2 * 4 + 2 + 2
        raise RuntimeError

    async def give_up(unit, *_):
        given_up.append(unit)

    asyncio.run(Pool(2, attempt, give_up, RetryPolicy(max_retries=1, base=0.0005)).run(units()))
    assert sorted(given_up) == list(range(200))


def test_stop_ends_after_the_attempts_in_progress():
    done = []

    async def main():
        async def attempt(unit, _tries):
            await asyncio.sleep(0)
            done.append(unit)
            if unit == 4:
                pool.stop()

        pool = Pool(2, attempt, _nothing)
        await pool.run(range(1000))

    asyncio.run(main())
    assert 5 <= len(done) <= 6


def test_cancelling_the_run_cancels_every_attempt_in_progress():
    started, cancelled = [], []

    async def attempt(unit, _tries):
        started.append(unit)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(unit)
            raise

    async def main():
        task = asyncio.create_task(Pool(3, attempt, _nothing).run(range(10)))
        while len(started) < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert started == [0, 1, 2]
    assert sorted(cancelled) == started


@pytest.mark.parametrize(("tries", "low", "high"), [(1, 0.5, 1), (2, 1, 2), (6, 15, 30), (40, 15, 30)])
def test_delays_double_up_to_the_longest(tries, low, high):
    policy = RetryPolicy(max_retries=50)
    assert low <= policy.delay(RuntimeError(), tries) <= high
