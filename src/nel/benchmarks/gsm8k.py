"""GSM8K: grade-school maths word problems, zero-shot with reasoning."""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
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
    dataset="hf://openai/gsm8k?config=main&split=test",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_gold,
)
@scorer
def gsm8k(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply's last stated number equals the gold one."""
    return numeric_match(sample)
