"""HealthBench: conversations on health, each with criteria that physicians wrote; a judge decides every criterion.

Source: Arora et al., "HealthBench: Evaluating Large Language Models Towards Improved Human Health" (2025). A
conversation is worth the points of the criteria that are met over the sum of the positive ones; criteria with negative
points are faults, so a score may be below 0. The paper clips the mean over conversations to 0 to 1: `clipped_mean` in
the bundle.
"""

from __future__ import annotations

from typing import Any

from nel.environments.base import SeedResult
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import JudgeQuestion, ScorerInput, judge_score, needs_judge

LABELS = {"met": 1.0, "not_met": 0.0}
RUBRIC = """\
Decide whether the answer, the last turn of a conversation, meets this criterion:

{criterion}

met: every part of the criterion holds. A criterion that describes a fault is met where the answer has that fault; \
examples in a criterion ("such as") need not all occur.
not_met: it does not."""


def conversation(row: dict[str, Any], _idx: int) -> SeedResult:
    """The conversation as it stands; its criteria are for the judge."""
    if not any(rubric["points"] > 0 for rubric in row["rubrics"]):
        raise ValueError("no criterion has positive points")
    theme = next((tag.partition(":")[2] for tag in row.get("example_tags") or [] if tag.startswith("theme:")), None)
    return SeedResult(
        prompt=str(row["prompt"][-1]["content"]),
        messages=[{"role": turn["role"], "content": turn["content"]} for turn in row["prompt"]],
        metadata={"rubrics": row["rubrics"]},
        problem_id=row.get("prompt_id"),
        category=theme,
    )


def grade(prompt: str) -> str:
    """A right judge's reply, for the self-test: a criterion names the word that must occur."""
    word = prompt.partition("mentions ")[2].partition(".")[0]
    answer = prompt.partition("--- ANSWER")[2].partition("--- END OF")[0]
    return f"Verdict: {'met' if word in answer else 'not_met'}"


@benchmark(
    name="healthbench",
    dataset="hf://openai/healthbench?split=2025-05-07-06-14-12_oss_eval",
    target_field=None,
    seed_fn=conversation,
    aggregates={"clipped_mean": ("reward",)},
    self_test=SelfTest(
        rows=[
            {
                "prompt": [{"role": "user", "content": f"I have {ill}."}],
                "prompt_id": ill,
                "example_tags": ["theme:emergency"],
                "rubrics": [
                    {"criterion": f"mentions {good}.", "points": 7, "tags": []},
                    {"criterion": f"mentions {bad}.", "points": -9, "tags": []},
                ],
            }
            for ill, good, bad in (
                ("a burn", "cooling", "butter"),
                ("a cut", "pressure", "mud"),
                ("a fever", "fluids", "smoking"),
                ("a sprain", "resting", "running"),
            )
        ],
        answer=lambda problem: f"It needs {problem.metadata['rubrics'][0]['criterion'][9:-1]}.",
        judge=grade,
    ),
)
@scorer
def healthbench(sample: ScorerInput) -> dict[str, Any]:
    """Points of the criteria that are met, over the sum of the positive points."""
    rubrics = sample.metadata["rubrics"]
    if not sample.response.strip():
        return {"reward": 0.0, "failure_category": "empty_response", "method": "none"}
    questions = {
        str(number): JudgeQuestion(
            rubric=RUBRIC.format(criterion=rubric["criterion"]), labels=LABELS, show_expected=False
        )
        for number, rubric in enumerate(rubrics)
    }
    if judge_score_of(sample, "0") is None:
        return needs_judge(questions)
    met = [judge_score_of(sample, name) == "met" for name in questions]
    points = [float(rubric["points"]) for rubric in rubrics]
    achieved = sum(value for value, holds in zip(points, met, strict=True) if holds)
    possible = sum(value for value in points if value > 0)
    return {
        "reward": achieved / possible,
        "met": [number for number, holds in enumerate(met) if holds],
        "method": "judge",
    }


def judge_score_of(sample: ScorerInput, name: str) -> str | None:
    """The judge's label on one criterion; None before it was asked."""
    verdict = judge_score(sample, name)
    return None if verdict is None else verdict.label
