"""GPQA Diamond: 198 graduate-level science questions, zero-shot with reasoning; scores by domain.

Source: Rein et al., "GPQA: A Graduate-Level Google-Proof Q&A Benchmark" (2023). The data are gated: their authors ask
not to show the questions in plain text on the web. The options' order is drawn for each question from its content and
`row_seed`, so it is the same in every run.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.benchmarks.options import LETTERS, REASONED, lettered
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, multichoice_regex


def shuffled(row: dict[str, Any], _idx: int, rng: Random) -> dict[str, Any]:
    """The row with its four answers in a drawn order, and the letter of the right one."""
    right = row["Correct Answer"].strip()
    options = [right, *(row[f"Incorrect Answer {number}"].strip() for number in (1, 2, 3))]
    order = [0, 1, 2, 3]
    rng.shuffle(order)
    return {
        **row,
        "question": row["Question"].strip(),
        "choices": [options[at] for at in order],
        "lettered": lettered([options[at] for at in order]),
        "gold": LETTERS[order.index(0)],
    }


@benchmark(
    name="gpqa",
    dataset="hf://Idavidrein/gpqa?config=gpqa_diamond&split=train",
    prompt=REASONED,
    target_field="gold",
    prepare_row=shuffled,
    category_field="High-level domain",
    self_test=SelfTest(
        rows=[
            {
                "Question": f"What is {number} + 1?",
                "Correct Answer": f"{number + 1}",
                **{f"Incorrect Answer {wrong}": f"{number - wrong}" for wrong in (1, 2, 3)},
                "High-level domain": "Physics",
            }
            for number in range(12)
        ],
        answer=lambda problem: f"I add.\nAnswer: {problem.expected_answer}",
        chance=0.5,
    ),
)
@scorer
def gpqa(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the letter of the right answer."""
    return multichoice_regex(sample, letters="ABCD")
