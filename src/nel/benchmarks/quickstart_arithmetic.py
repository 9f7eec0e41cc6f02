"""Easy sums: small enough that a model of a hundred million parameters gets some of them right."""

from __future__ import annotations

from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, numeric_match


@benchmark(
    name="quickstart_arithmetic",
    dataset="data/quickstart_arithmetic.jsonl",
    prompt="{question} Reply with the number alone.",
    target_field="answer",
    category_field="kind",
    generation={"temperature": 0.0, "max_tokens": 24},
    self_test=SelfTest(rows="data/quickstart_arithmetic.jsonl", answer=lambda problem: f"{problem.expected_answer}."),
)
@scorer
def quickstart_arithmetic(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply's number equals the answer exactly."""
    return numeric_match(sample)
