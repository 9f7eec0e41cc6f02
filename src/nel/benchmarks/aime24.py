"""AIME 2024: 30 problems of the American Invitational Mathematics Examination; each answer is an integer, 0 to 999."""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, numeric_match

PROMPT = r"""Solve this problem step by step. The answer is an integer from 0 to 999; put it into \boxed{{}}.

{problem}"""

SELF_TEST = SelfTest(
    rows=[
        {"id": number, "problem": f"What is {number}?", "answer": f"{number:03d}"} for number in (0, 7, 42, 204, 999)
    ],
    answer=lambda problem: rf"Hence \boxed{{{problem.expected_answer}}}.",
)


def as_integer(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its answer as an integer, which it must be."""
    answer = int(str(row["answer"]).strip())
    if not 0 <= answer <= 999:
        raise ValueError(f"the answer {answer} is not between 0 and 999")
    return {**row, "gold": answer}


@benchmark(
    name="aime24",
    dataset="hf://HuggingFaceH4/aime_2024?split=train",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=as_integer,
    id_field="id",
    self_test=SELF_TEST,
)
@scorer
def aime24(sample: ScorerInput) -> dict[str, Any]:
    """Whether the stated integer is the expected one."""
    return numeric_match(sample)
