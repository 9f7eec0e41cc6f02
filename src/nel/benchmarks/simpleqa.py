"""SimpleQA: short factual questions with one answer, graded correct, incorrect or not attempted by a judge.

Source: Wei et al., "Measuring short-form factuality in large language models" (2024). Its headline is the F-score, the
harmonic mean of how many answers are correct and how many of the attempted ones are; it stands in the bundle as
`f_score`. The grading instruction is our own wording of the paper's three classes.
"""

from __future__ import annotations

from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, judge_score, needs_judge

RUBRIC = """\
Compare the answer with the expected answer and choose one label.
correct: the answer contains the expected answer and contradicts it nowhere. Spelling, order, hedging and additional \
true details do not matter; a number must agree with the expected one to its last given digit.
incorrect: the answer states something that contradicts the expected answer, even if it is hedged.
not_attempted: the answer neither contains nor contradicts the expected answer, as when it says that it is not known."""
LABELS = {"correct": 1.0, "incorrect": 0.0, "not_attempted": 0.0}


def grade(prompt: str) -> str:
    """A right judge's reply, for the self-test."""
    answer = prompt.partition("--- ANSWER")[2].partition("--- END OF")[0]
    expected = prompt.partition("--- EXPECTED ANSWER")[2].partition("---\n")[2].partition("\n--- END OF")[0]
    if expected.strip() in answer:
        return "Verdict: correct"
    return "Verdict: incorrect" if "is" in answer else "Verdict: not_attempted"


@benchmark(
    name="simpleqa",
    dataset="hf://basicv8vc/SimpleQA?split=test",
    prompt="{problem}",
    target_field="answer",
    aggregates={"f_score": ("reward", "attempted")},
    self_test=SelfTest(
        rows=[
            {"problem": f"Who wrote book {number}?", "answer": name, "metadata": "{}"}
            for number, name in enumerate(("Ada Vale", "Bo Finch", "Cy Marsh", "Di Stone"))
        ],
        answer=lambda problem: f"It is {problem.expected_answer}.",
        judge=grade,
    ),
)
@scorer
def simpleqa(sample: ScorerInput) -> dict[str, Any]:
    """1 for a correct answer; `attempted` is 0 where the judge says that none was given."""
    if not sample.response.strip():
        return {"correct": False, "attempted": 0.0, "grade": "not_attempted", "failure_category": "empty_response"}
    verdict = judge_score(sample)
    if verdict is None:
        return needs_judge(rubric=RUBRIC, labels=LABELS)
    return {
        "correct": verdict.label == "correct",
        "attempted": float(verdict.label != "not_attempted"),
        "grade": verdict.label,
        "method": "judge",
    }
