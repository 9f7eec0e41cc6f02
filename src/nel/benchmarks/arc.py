"""ARC: grade-school science questions, easy and challenge; asked in words, or decided by log-likelihood.

Source: Clark et al., "Think you have Solved Question Answering? Try ARC, the AI2 Reasoning Challenge" (2018). The
variants ending in `_loglikelihood` go by the likelihood of each answer's text per byte; their scores are not
comparable with those of the ones that ask for a letter.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.benchmarks.options import LETTERS, REASONED, lettered
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest, preferred
from nel.scoring import ScorerInput, likeliest_option, multichoice_regex

EASY = "hf://allenai/ai2_arc?config=ARC-Easy&split=test"
CHALLENGE = "hf://allenai/ai2_arc?config=ARC-Challenge&split=test"
CONTINUED = "Question: {question}\nAnswer:"


def with_letters(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its options by letter (some rows number them) and the letter of the right one."""
    labels, options = row["choices"]["label"], row["choices"]["text"]
    gold = labels.index(row["answerKey"])
    return {**row, "choices": options, "lettered": lettered(options), "gold": LETTERS[gold]}


def with_continuations(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its options as continuations, and the index of the right one."""
    labels, options = row["choices"]["label"], row["choices"]["text"]
    return {**row, "options": [f" {option}" for option in options], "gold": labels.index(row["answerKey"])}


ROWS = [
    {
        "id": f"made-{number}",
        "question": f"Which of these is a {kind}?",
        "choices": {"text": list(options), "label": labels},
        "answerKey": labels[options.index(right)],
    }
    for number, (kind, options, right, labels) in enumerate(
        (
            ("metal", ("tin", "air", "oak", "ice"), "tin", ["A", "B", "C", "D"]),
            ("gas", ("tin", "air", "oak", "ice"), "air", ["1", "2", "3", "4"]),
            ("wood", ("tin", "air", "oak"), "oak", ["A", "B", "C"]),
            ("solid water", ("tin", "air", "oak", "ice", "sand"), "ice", ["A", "B", "C", "D", "E"]),
        )
    )
]
ASKED = SelfTest(rows=ROWS, answer=lambda problem: f"Thinking.\nAnswer: {problem.expected_answer}")
DECIDED = SelfTest(
    rows=ROWS,
    answer=lambda problem: problem.metadata["options"][problem.expected_answer].strip(),
    model_response=preferred,
    chance=0.3,
)


@benchmark(
    name="arc_easy",
    dataset=EASY,
    prompt=REASONED,
    target_field="gold",
    prepare_row=with_letters,
    id_field="id",
    self_test=ASKED,
)
@scorer
def arc_easy(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the gold letter."""
    return multichoice_regex(sample, letters=LETTERS[: len(sample.metadata["choices"])])


@benchmark(
    name="arc_challenge",
    dataset=CHALLENGE,
    prompt=REASONED,
    target_field="gold",
    prepare_row=with_letters,
    id_field="id",
    self_test=ASKED,
)
@scorer
def arc_challenge(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the gold letter."""
    return multichoice_regex(sample, letters=LETTERS[: len(sample.metadata["choices"])])


@benchmark(
    name="arc_easy_loglikelihood",
    dataset=EASY,
    prompt=CONTINUED,
    endpoint_type="loglikelihood",
    target_field="gold",
    prepare_row=with_continuations,
    id_field="id",
    self_test=DECIDED,
)
@scorer
def arc_easy_loglikelihood(sample: ScorerInput) -> dict[str, Any]:
    """Whether the likeliest answer, per byte, is the right one; `by_sum` goes by the plain sum."""
    return likeliest_option(sample, per_byte=True)


@benchmark(
    name="arc_challenge_loglikelihood",
    dataset=CHALLENGE,
    prompt=CONTINUED,
    endpoint_type="loglikelihood",
    target_field="gold",
    prepare_row=with_continuations,
    id_field="id",
    self_test=DECIDED,
)
@scorer
def arc_challenge_loglikelihood(sample: ScorerInput) -> dict[str, Any]:
    """Whether the likeliest answer, per byte, is the right one; `by_sum` goes by the plain sum."""
    return likeliest_option(sample, per_byte=True)
