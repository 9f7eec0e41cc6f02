"""The quickstart's own benchmarks: letters by log-probability, and form by small checkers."""

import math

import pytest

from nel.benchmarks.quickstart_choice import letter_logprobs, quickstart_choice
from nel.benchmarks.quickstart_format import CHECKS, quickstart_format
from nel.environments import get_environment
from nel.observability.records import ModelResponse, Outcome
from nel.scoring import ScorerInput


def reply(top, token="The"):
    return ModelResponse(
        content=token,
        logprobs=[
            {
                "token": token,
                "logprob": -0.1,
                "top_logprobs": [{"token": name, "logprob": logprob} for name, logprob in top.items()],
            }
        ],
    )


def test_the_likeliest_letter_is_the_choice_whatever_the_reply_says():
    sample = ScorerInput("The", "B", model_response=reply({"The": -0.1, "A": -3.0, " B": -2.0, "C": -4.0}))
    verdict = quickstart_choice(sample)
    assert verdict["correct"]
    assert verdict["extracted"] == "B"
    shares = {letter: math.exp(logprob) for letter, logprob in (("A", -3.0), ("B", -2.0), ("C", -4.0))}
    assert verdict["probability"] == pytest.approx(shares["B"] / sum(shares.values()))


def test_a_letter_with_and_without_a_space_is_one_letter():
    found = letter_logprobs(reply({"A": -3.0, " A": -1.0, "\u2581A": -2.0, "\u0120B": -5.0, "AB": -0.5}).logprobs[0])
    assert found == {"A": -1.0, "B": -5.0}


def test_no_letter_among_the_likely_tokens_is_a_wrong_answer():
    verdict = quickstart_choice(ScorerInput("The", "B", model_response=reply({"The": -0.1})))
    assert (verdict["correct"], verdict["failure_category"]) == (False, "no_answer")


@pytest.mark.parametrize("response", [None, ModelResponse(content="B")])
async def test_a_server_without_logprobs_leaves_the_answer_unscored(response):
    env = get_environment("quickstart_choice")
    verdict = await env.verify("B", "B", metadata={}, model_response=response)
    assert verdict.outcome is Outcome.UNSCORED
    assert verdict.reward is None
    assert "log-probabilities" in verdict.scoring_details["reason"]


async def test_the_probability_of_the_answer_is_a_metric_of_its_own():
    env = get_environment("quickstart_choice")
    verdict = await env.verify("", "A", metadata={}, model_response=reply({"A": -1.0}))
    assert verdict.reward == 1.0
    assert verdict.metrics["probability"].value == 1.0


def test_the_choice_asks_for_what_it_reads():
    assert get_environment("quickstart_choice").generation == {
        "temperature": 0.0,
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": 20,
    }


@pytest.mark.parametrize(
    ("check", "passes", "fails"),
    [
        ({"name": "one_word"}, ["Dog", "dog.", "Étoile"], ["a dog", "", "42", "dog, cat"]),
        ({"name": "one_sentence"}, ["A dog runs.", "Is it?"], ["One. Two.", "no end", "a\nb."]),
        ({"name": "only_number"}, ["7", "-3", "12."], ["seven", "2 + 2 = 4", "7 days"]),
        ({"name": "upper_case"}, ["HELLO!", "A B"], ["Hello", "123"]),
        ({"name": "lower_case"}, ["paris", "the moon."], ["Paris", "7"]),
        (
            {"name": "bullets", "count": 2},
            ["- a\n- b", "+ a\n+ b", "x:\n* a\n* b"],
            ["- a\n- b\n---\n- c", "- a", "-a\n-b"],
        ),
        ({"name": "bullets", "count": 2}, ["- a\n- b\n---"], ["1. a\n2. b"]),
        ({"name": "numbered", "count": 2}, ["1. a\n2. b", "Here:\n1) a\n2) b"], ["1. a\n3. b", "1. a", "2. a\n1. b"]),
        (
            {"name": "json_object", "keys": ["a", "b"]},
            ['{"a": 1, "b": null}', '```json\n{"b": 2, "a": 1}\n```'],
            ['{"a": 1}', '{"a": NaN, "b": 1}', "[1]", '{"a": 1, "b": 2} done', "{'a': 1, 'b': 2}"],
        ),
        ({"name": "mentions", "words": ["art", "a.b"]}, ["Art and a.b!"], ["startle a.b", "art and axb"]),
        ({"name": "avoids", "characters": ",，"}, ["no comma"], ["a, b", "a，b"]),
        ({"name": "at_most_words", "count": 3}, ["one two three"], ["one two three four"]),
        ({"name": "begins_with", "start": "Once"}, ["Once upon"], ["once", "At Once"]),
        ({"name": "ends_with", "end": "?"}, ["Well?\n"], ["Well."]),
    ],
)
def test_a_checker_knows_right_from_wrong(check, passes, fails):
    for text in passes:
        assert quickstart_format(ScorerInput(text, check))["correct"], text
    for text in fails:
        assert not quickstart_format(ScorerInput(text, check))["correct"], text


async def test_every_check_of_the_data_exists_and_an_empty_reply_passes_none():
    env = get_environment("quickstart_format")
    await env.prepare()
    used = set()
    for idx in range(await env.dataset_size()):
        problem = await env.seed(idx)
        used.add(problem.expected_answer["name"])
        verdict = await env.verify(" ", problem.expected_answer, metadata=problem.metadata)
        assert (verdict.reward, verdict.failure_category) == (0.0, "empty_response")
    assert used == set(CHECKS)


async def test_the_right_answers_of_arithmetic_are_right():
    env = get_environment("quickstart_arithmetic")
    await env.prepare()
    for idx in range(await env.dataset_size()):
        problem = await env.seed(idx)
        question = problem.metadata["question"]
        value = eval(question.removeprefix("What is ").removesuffix("?").replace("×", "*"))
        assert problem.expected_answer == value
        assert (await env.verify(f"It is {value}.", problem.expected_answer, metadata=problem.metadata)).reward == 1.0


async def test_the_options_of_the_choice_are_balanced_and_distinct():
    env = get_environment("quickstart_choice")
    await env.prepare()
    problems = [await env.seed(idx) for idx in range(await env.dataset_size())]
    letters = [problem.expected_answer for problem in problems]
    assert {letter: letters.count(letter) for letter in "ABCD"} == dict.fromkeys("ABCD", 12)
    assert all(len(set(problem.metadata["choices"])) == 4 for problem in problems)
