"""Solved examples stand before the question: never the question itself, the same in every run, and part of what is asked."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.errors import ConfigError, DataError, UsageError
from nel.engine.identity import Identities
from nel.environments import BenchmarkDefinition, ByobEnvironment, FewShot, get_environment
from nel.environments.base import SeedResult

ROWS = [{"q": f"{n}+{n}=", "a": str(2 * n), "topic": "odd" if n % 2 else "even"} for n in range(6)]
SOLVED = [{"q": f"{n}-1=", "a": str(n - 1), "topic": "odd" if n % 2 else "even"} for n in range(1, 9)]


async def prepared(**arguments):
    definition = {"name": "sums", "dataset": ROWS, "prompt": "{q}", "target_field": "a", "num_fewshot": 2} | arguments
    env = ByobEnvironment(BenchmarkDefinition(**definition))
    await env.prepare()
    return env


async def prompts(env):
    return [(await env.seed(idx)).prompt for idx in range(await env.dataset_size())]


async def test_examples_stand_before_the_question_through_the_same_prompt_with_their_answers():
    env = await prepared(fewshot=FewShot(rows=SOLVED, choice="first"))
    assert await prompts(env) == [f"1-1= 0\n\n2-1= 1\n\n{row['q']}" for row in ROWS]


async def test_the_answer_and_what_stands_between_can_be_said():
    few = FewShot(rows=SOLVED, choice="first", answer="so it is {a}.", between="\nA: ", separator="\n---\n")
    env = await prepared(fewshot=few, num_fewshot=1)
    assert (await env.seed(0)).prompt == "1-1=\nA: so it is 0.\n---\n0+0="


async def test_as_turns_the_examples_are_an_earlier_part_of_the_conversation():
    env = await prepared(fewshot=FewShot(rows=SOLVED, choice="first", style="turns"), system_prompt="Add.")
    problem = await env.seed(3)
    assert problem.messages == [
        {"role": "user", "content": "1-1="},
        {"role": "assistant", "content": "0"},
        {"role": "user", "content": "2-1="},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "3+3="},
    ]
    assert (problem.prompt, problem.system) == ("3+3=", "Add.")


@pytest.mark.parametrize("choice", ["first", "random"])
async def test_a_row_is_never_its_own_example_even_where_it_stands_there_several_times(choice):
    env = await prepared(dataset=ROWS, fewshot=FewShot(rows=[*ROWS, ROWS[0], ROWS[0]], choice=choice), num_fewshot=5)
    for idx, row in enumerate(ROWS):
        *examples, asked = (await env.seed(idx)).prompt.split("\n\n")
        assert asked == row["q"]
        assert len(examples) == 5
        assert not any(example.startswith(row["q"]) for example in examples)


async def test_random_examples_depend_on_the_question_and_the_seed_alone():
    few = FewShot(rows=SOLVED)
    plain = await prompts(await prepared(fewshot=few))
    assert await prompts(await prepared(fewshot=few)) == plain
    moved = await prepared(fewshot=few, dataset=[{"q": "new", "a": "x", "topic": "odd"}, *ROWS])
    assert (await prompts(moved))[1:] == plain
    assert await prompts(await prepared(fewshot=few, row_seed=7)) != plain
    assert len({text.rsplit("\n\n", 1)[0] for text in plain}) > 1


async def test_examples_may_be_of_the_same_subject():
    env = await prepared(fewshot=FewShot(rows=SOLVED, same="topic"))
    for idx, row in enumerate(ROWS):
        *examples, _ = (await env.seed(idx)).prompt.split("\n\n")
        assert {int(example[0]) % 2 for example in examples} == {int(row["topic"] == "odd")}


async def test_examples_go_through_prepare_row_and_field_mapping():
    env = await prepared(
        dataset=[{"question": "x", "key": "1"}, {"question": "y", "key": "2"}],
        field_mapping={"question": "q"},
        prepare_row=lambda row, idx, rng: {**row, "a": f"<{row['key']}>"},
        fewshot=FewShot(rows=[{"question": "z", "key": "3"}]),
        num_fewshot=1,
    )
    assert (await env.seed(0)).prompt == "z <3>\n\nx"


async def test_option_contexts_get_the_examples_too():
    rows = [{"q": "Ann", "a": "x", "options": [" b", " c"], "option_contexts": ["Ann b", "Ann c"]} for _ in range(2)]
    few = FewShot(rows=SOLVED, choice="first")
    env = await prepared(dataset=rows, fewshot=few, num_fewshot=1, endpoint_type="loglikelihood")
    assert (await env.seed(0)).metadata["option_contexts"] == ["1-1= 0\n\nAnn b", "1-1= 0\n\nAnn c"]


async def test_the_examples_are_recorded_and_change_what_is_asked():
    env = await prepared(fewshot=FewShot(rows=SOLVED))
    recorded = env.data_identity()["fewshot"]
    assert (recorded["num_fewshot"], recorded["rows"]) == (2, 8)
    assert len(recorded["sha256"]) == 64
    none = await prepared(fewshot=FewShot(rows=SOLVED), num_fewshot=0)
    assert "fewshot" not in none.data_identity()
    identities = Identities({}, {})
    assert identities.content(await env.seed(0)) != identities.content(await none.seed(0))


BENCH = """
from nel import FewShot, benchmark, scorer
from nel.scoring import exact_match

@benchmark(name="sums", dataset="rows.jsonl", prompt="{q}", target_field="a",
           fewshot=FewShot(rows="solved.jsonl", choice="first"), num_fewshot=1)
@scorer
def sums(sample):
    return exact_match(sample)
"""


@pytest.fixture
def bench(tmp_path):
    (tmp_path / "bench.py").write_text(BENCH)
    for name, rows in (("rows", ROWS), ("solved", SOLVED), ("other", [{"q": "o", "a": "O", "topic": "odd"}])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "bench.py")


async def first_prompt(bench, **options):
    env = get_environment(bench, **options)
    await env.prepare()
    return (await env.seed(0)).prompt


async def test_a_config_sets_how_many_and_from_where(bench, tmp_path):
    assert await first_prompt(bench) == "1-1= 0\n\n0+0="
    assert await first_prompt(bench, num_fewshot=0) == "0+0="
    assert await first_prompt(bench, params={"num_fewshot": 3}) == "1-1= 0\n\n2-1= 1\n\n3-1= 2\n\n0+0="
    assert await first_prompt(bench, params={"fewshot_dataset": str(tmp_path / "other.jsonl")}) == "o O\n\n0+0="


@pytest.mark.parametrize("params", [{"num_fewshot": -1}, {"num_fewshot": "two"}, {"fewshot_dataset": 3}])
def test_params_that_make_no_sense_are_refused(bench, params):
    with pytest.raises(ConfigError, match=rf"params\.{next(iter(params))}"):
        get_environment(bench, params=params)


async def test_too_few_examples_are_told_before_the_first_request(bench):
    env = get_environment(bench, num_fewshot=9)
    with pytest.raises(DataError, match=r"9 examples are wanted, and solved\.jsonl has 8 others") as caught:
        await env.prepare()
    assert "num_fewshot" in caught.value.hint
    with pytest.raises(DataError, match="'topic'"):
        await prepared(fewshot=FewShot(rows=SOLVED[:3], same="topic"))


async def test_a_row_that_is_no_example_is_named():
    with pytest.raises(DataError, match=r"row 2: no column 'a' \(target_field\)"):
        await prepared(fewshot=FewShot(rows=[SOLVED[0], {"q": "?"}]))
    with pytest.raises(DataError, match=r"row 1: no column 'kind' \(FewShot.same\)"):
        await prepared(fewshot=FewShot(rows=SOLVED, same="kind"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"fewshot": None}, "num_fewshot without examples"),
        ({"num_fewshot": -1}, "must be 0 or more"),
        ({"endpoint_type": "completions", "fewshot": FewShot(rows=SOLVED, style="turns")}, "have no turns"),
        ({"target_field": None}, "needs an `answer`"),
        ({"prompt": "", "seed_fn": lambda row, idx: SeedResult(prompt="x")}, "takes no `fewshot`"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(arguments, said):
    settings = {"name": "s", "dataset": ROWS, "prompt": "{q}", "fewshot": FewShot(rows=SOLVED), "num_fewshot": 1}
    with pytest.raises(UsageError, match=said):
        BenchmarkDefinition(**settings | arguments)


def test_a_style_or_choice_that_there_is_not_is_refused():
    with pytest.raises(UsageError, match="style is 'turn'"):
        FewShot(rows=SOLVED, style="turn")
    with pytest.raises(UsageError, match="choice is 'last'"):
        FewShot(rows=SOLVED, choice="last")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=20), st.integers(1, 3), st.sampled_from(["random", "first"]))
def test_examples_are_always_other_questions(numbers, count, choice):
    import asyncio

    rows = [{"q": f"<{n}>", "a": str(n)} for n in numbers]

    async def check():
        env = ByobEnvironment(
            BenchmarkDefinition(
                name="n",
                dataset=rows,
                prompt="{q}",
                target_field="a",
                fewshot=FewShot(rows=rows, choice=choice, separator="|", between=":"),
                num_fewshot=count,
            )
        )
        if any(sum(other != n for other in numbers) < count for n in numbers):
            with pytest.raises(DataError, match="others"):
                await env.prepare()
            return
        await env.prepare()
        for idx, row in enumerate(rows):
            *examples, asked = (await env.seed(idx)).prompt.split("|")
            assert asked == row["q"]
            assert len(examples) == count
            assert all(not example.startswith(asked) for example in examples)

    asyncio.run(check())
