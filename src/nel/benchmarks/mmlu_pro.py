"""MMLU-Pro: multiple choice with up to ten options, zero-shot with reasoning; scores by discipline.

Source: Wang et al., "MMLU-Pro: A More Robust and Challenging Multi-Task Language Understanding Benchmark" (2024). Each
question is asked with the options that it has, 3 to 10: none is filled up.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.benchmarks.options import LETTERS, REASONED, lettered
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, multichoice_regex


def with_options(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row without options that are no text, with `lettered` and the letter `gold`."""
    options = [option for option in row["options"] if option not in {"", "N/A"}]
    gold = options.index(row["options"][row["answer_index"]])
    return {**row, "options": options, "lettered": lettered(options), "gold": LETTERS[gold]}


@benchmark(
    name="mmlu_pro",
    dataset="hf://TIGER-Lab/MMLU-Pro?split=test",
    prompt=REASONED,
    target_field="gold",
    prepare_row=with_options,
    category_field="category",
    id_field="question_id",
    self_test=SelfTest(
        rows=[
            {
                "question_id": number,
                "question": f"Which number is {number}?",
                "options": [str(other) for other in range(size)],
                "answer_index": number,
                "category": "math",
            }
            for number, size in ((0, 4), (9, 10), (5, 7), (2, 3))
        ],
        answer=lambda problem: f"Counting.\nAnswer: {problem.expected_answer}",
    ),
)
@scorer
def mmlu_pro(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the gold letter among those of its question."""
    options = sample.metadata["options"]
    return multichoice_regex(sample, letters=LETTERS[: len(options)], choices=options)
