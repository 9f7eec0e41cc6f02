"""A scorer is called so that it does not stall the loop, and is known by its code."""

import asyncio
import threading
import time
from functools import partial

import pytest

from nel.core.loading import load_file
from nel.environments.grading import SLOW_SECONDS, ScorerCall, ScorerCode
from nel.scoring import VERSIONS, ScorerInput, exact_match, multichoice_regex

SAMPLE = ScorerInput("x", "x")


async def test_a_quick_scorer_runs_in_place():
    threads = set()

    def quick(sample):
        threads.add(threading.get_ident())
        return True

    call = ScorerCall(quick)
    for _ in range(5):
        assert await call(SAMPLE) is True
    assert threads == {threading.get_ident()}


async def test_a_slow_scorer_stalls_the_loop_once():
    loop_thread = threading.get_ident()
    threads = []

    def slow(sample):
        threads.append(threading.get_ident())
        deadline = time.perf_counter() + 1.5 * SLOW_SECONDS
        while time.perf_counter() < deadline:
            pass
        return True

    call = ScorerCall(slow)
    assert await asyncio.gather(*(call(SAMPLE) for _ in range(4))) == [True] * 4
    assert threads[0] == loop_thread
    assert loop_thread not in threads[1:]


async def test_an_async_scorer_is_awaited_and_errors_come_through():
    async def later(sample):
        await asyncio.sleep(0)
        return sample.response

    class Callable:
        async def __call__(self, sample):
            return sample.target

    def broken(sample):
        raise KeyError("rubric")

    assert await ScorerCall(later)(SAMPLE) == "x"
    assert await ScorerCall(Callable())(SAMPLE) == "x"
    assert await ScorerCall(partial(later))(SAMPLE) == "x"
    with pytest.raises(KeyError, match="rubric"):
        await ScorerCall(broken)(SAMPLE)


def scorer_in(tmp_path, text, name="s"):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return getattr(load_file(path), name)


def test_a_users_scorer_is_known_by_the_content_of_its_file(tmp_path):
    first = ScorerCode(scorer_in(tmp_path, "def s(sample):\n    return True\n")).identity()
    again = ScorerCode(scorer_in(tmp_path, "def s(sample):\n    return True\n")).identity()
    other = ScorerCode(scorer_in(tmp_path, "def s(sample):\n    return False\n")).identity()
    assert first == again
    assert first["code"] != other["code"]
    assert str(tmp_path) not in str(first)


def test_the_built_in_scorers_that_a_file_names_count_with_their_versions(tmp_path):
    text = "from nel.scoring import exact_match, numeric_match\ndef s(sample):\n    return exact_match(sample)\n"
    assert ScorerCode(scorer_in(tmp_path, text)).identity()["built_in"] == {
        name: VERSIONS[name] for name in ("exact_match", "numeric_match")
    }


def test_a_built_in_scorer_is_known_by_its_version_alone():
    identity = ScorerCode(exact_match).identity()
    assert "code" not in identity
    assert identity["built_in"]["exact_match"] == VERSIONS["exact_match"]


def test_bound_arguments_are_part_of_what_a_scorer_is():
    five, six = (ScorerCode(partial(multichoice_regex, letters=letters)).identity() for letters in ("ABCDE", "ABCDEF"))
    assert five != six
    assert five["built_in"]["multichoice_regex"] == VERSIONS["multichoice_regex"]


def test_a_scorer_without_a_file_is_known_by_what_it_does():
    def made(text):
        place = {}
        exec(text, place)
        return ScorerCode(place["s"]).identity()["code"]

    one = "def s(sample):\n    return [x > 1 for x in (1, 2)]\n"
    assert made(one) == made(one)
    assert made(one) != made(one.replace("> 1", "> 2"))
