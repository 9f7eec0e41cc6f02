"""MMLU: multiple choice over 57 subjects, zero-shot with reasoning; scores by subject."""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, multichoice_regex

LETTERS = "ABCD"

PROMPT = """\
Answer this multiple-choice question. Think step by step, then end with one line of the form "Answer: X", where X is \
one of A, B, C, D.

{question}

A. {choices[0]}
B. {choices[1]}
C. {choices[2]}
D. {choices[3]}"""


def with_letter(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its answer, an index or already a letter, as the letter `gold`."""
    answer = row["answer"]
    letter = str(answer) if str(answer) in LETTERS else LETTERS[int(answer)]
    return {**row, "gold": letter}


@benchmark(
    name="mmlu",
    dataset="hf://cais/mmlu?config=all&split=test&revision=c30699e8356da336a370243923dbaf21066bb9fe",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_letter,
    category_field="subject",
    self_test=SelfTest(
        rows=[
            {"question": "Which is a metal?", "subject": "s", "choices": ["tin", "ice", "air", "oak"], "answer": 0},
            {"question": "Which is a gas?", "subject": "s", "choices": ["tin", "air", "ice", "oak"], "answer": 1},
            {"question": "Which is a wood?", "subject": "s", "choices": ["tin", "air", "oak", "ice"], "answer": 2},
            {"question": "Which is cold?", "subject": "s", "choices": ["tin", "air", "oak", "ice"], "answer": 3},
        ],
        answer=lambda problem: f"Let me think.\nAnswer: {problem.expected_answer}",
    ),
)
@scorer
def mmlu(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the gold letter."""
    return multichoice_regex(sample, letters=LETTERS)
