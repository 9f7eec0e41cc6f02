"""Common knowledge with short answers; the reply must name the answer, or one of its other names, as whole words."""

from __future__ import annotations

from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, fuzzy_match


@benchmark(
    name="quickstart_facts",
    dataset="data/quickstart_facts.jsonl",
    prompt="{question} Answer in one short sentence.",
    target_field="answers",
    category_field="topic",
    generation={"temperature": 0.0, "max_tokens": 32},
    self_test=SelfTest(
        rows="data/quickstart_facts.jsonl", answer=lambda problem: f"It is {problem.expected_answer[-1]}."
    ),
)
@scorer
def quickstart_facts(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply names one of the accepted answers."""
    return fuzzy_match(sample)
