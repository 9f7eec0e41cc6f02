"""GSM8K: grade-school maths word problems, zero-shot with reasoning."""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, numeric_match

PROMPT = """\
Solve this problem step by step. End with one line of the form "The answer is N.", where N is a number alone.

{question}"""


def with_gold(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with the number after `####` of its worked answer as `gold`."""
    _, marker, gold = row["answer"].rpartition("####")
    if not marker:
        raise ValueError("the answer has no `####` line")
    return {**row, "gold": gold.strip()}


@benchmark(
    name="gsm8k",
    dataset="hf://openai/gsm8k?config=main&split=test&revision=e53f048856ff4f594e959d75785d2c2d37b678ee",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_gold,
    self_test=SelfTest(
        rows=[
            {
                "question": f"Ann has {a} apples and buys {b}. How many?",
                "answer": f"{a}+{b}=<<{a}+{b}={n}>>{n}\n#### {n:,}",
            }
            for a, b in ((2, 3), (40, 2), (600, 500), (7, 0))
            for n in (a + b,)
        ],
        answer=lambda problem: f"Adding them up.\nThe answer is {problem.expected_answer}.",
    ),
)
@scorer
def gsm8k(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply's last stated number equals the gold one."""
    return numeric_match(sample)
