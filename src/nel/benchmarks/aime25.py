"""AIME 2025: 30 problems of the American Invitational Mathematics Examination; each answer is an integer, 0 to 999."""

from __future__ import annotations

from typing import Any

from nel.benchmarks.aime24 import PROMPT, SELF_TEST, as_integer
from nel.environments.decorators import benchmark, scorer
from nel.scoring import ScorerInput, numeric_match


@benchmark(
    name="aime25",
    dataset="hf://math-ai/aime25?split=test",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=as_integer,
    id_field="id",
    self_test=SELF_TEST,
)
@scorer
def aime25(sample: ScorerInput) -> dict[str, Any]:
    """Whether the stated integer is the expected one."""
    return numeric_match(sample)
