r"""MATH-500: competition mathematics with answers in LaTeX, zero-shot; scores by subject.

Source: 500 problems of Hendrycks et al., "Measuring Mathematical Problem Solving With the MATH Dataset" (2021), as
chosen by Lightman et al., "Let's Verify Step by Step" (2023). An answer is right when it equals the expected one as
mathematics, whatever its notation.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, check_gold, math_match

PROMPT = r"""Solve this problem step by step. Put the final answer, and nothing else, into \boxed{{}}.

{problem}"""


def checked(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row, whose answer can be read; and whether the order of its members counts."""
    check_gold(row["answer"])
    return {**row, "ordered": row["answer"].lstrip().startswith((r"\left(", "("))}


@benchmark(
    name="math500",
    dataset="hf://HuggingFaceH4/MATH-500?split=test",
    prompt=PROMPT,
    target_field="answer",
    prepare_row=checked,
    category_field="subject",
    id_field="unique_id",
    self_test=SelfTest(
        rows=[
            {"problem": problem, "answer": answer, "subject": "Algebra", "level": 1, "unique_id": problem}
            for problem, answer in (
                ("Half of one?", r"\frac{1}{2}"),
                ("The root of eight?", r"2\sqrt{2}"),
                ("Where is the point?", r"\left( 3, \frac{\pi}{2} \right)"),
                ("Between one and two, two included?", "(1,2]"),
                ("The line?", "y = 2x + 3"),
            )
        ],
        answer=lambda problem: rf"So it is \boxed{{{problem.expected_answer}}}.",
    ),
)
@scorer
async def math500(sample: ScorerInput) -> dict[str, Any]:
    """Whether the boxed answer equals the expected one."""
    return await asyncio.to_thread(math_match, sample, ordered=bool(sample.metadata["ordered"]))
