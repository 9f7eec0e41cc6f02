"""BIG-Bench Hard: 27 tasks of reasoning, zero-shot; scores by task.

Source: Suzgun et al., "Challenging BIG-Bench Tasks and Whether Chain-of-Thought Can Solve Them" (2022). The paper's
three examples with reasoning for each task are not given here, so scores are below its few-shot ones. How an answer is
compared follows from its form: a letter in brackets, a number, brackets to close, or words.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from nel.benchmarks.options import LETTERS
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, answer_line, extract_line, multichoice_regex, numeric_match

TASKS = (
    "boolean_expressions",
    "causal_judgement",
    "date_understanding",
    "disambiguation_qa",
    "dyck_languages",
    "formal_fallacies",
    "geometric_shapes",
    "hyperbaton",
    "logical_deduction_five_objects",
    "logical_deduction_seven_objects",
    "logical_deduction_three_objects",
    "movie_recommendation",
    "multistep_arithmetic_two",
    "navigate",
    "object_counting",
    "penguins_in_a_table",
    "reasoning_about_colored_objects",
    "ruin_names",
    "salient_translation_error_detection",
    "snarks",
    "sports_understanding",
    "temporal_sequences",
    "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_three_objects",
    "web_of_lies",
    "word_sorting",
)
PROMPT = """\
{input}

Think step by step, then end with one line of the form "Answer: ...", with the answer alone in the form that the task \
asks for."""

_LETTER = re.compile(r"\(?([A-Z])\)?")
_BRACKETS = re.compile(r"[\[\](){}<>\s]+")


def with_form(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with the form of its answer: `letter`, `number`, `brackets` or `words`."""
    target = str(row["target"]).strip()
    form = "words"
    if _LETTER.fullmatch(target) and f"({_LETTER.fullmatch(target)[1]})" in row["input"]:  # type: ignore[index]
        form, target = "letter", _LETTER.fullmatch(target)[1]  # type: ignore[index]
    elif re.fullmatch(r"-?\d+", target):
        form = "number"
    elif target and _BRACKETS.fullmatch(target):
        form = "brackets"
    return {**row, "target": target, "form": form, "task": row.get("config", "")}


@benchmark(
    name="bbh",
    dataset=f"hf://lukaemon/bbh?config={','.join(TASKS)}&split=test",
    prompt=PROMPT,
    target_field="target",
    prepare_row=with_form,
    category_field="task",
    self_test=SelfTest(
        rows=[
            {"config": task, "input": question, "target": target}
            for task, question, target in (
                ("boolean_expressions", "not ( True ) and True is", "False"),
                ("causal_judgement", "Did she cause it?\nOptions:\n- Yes\n- No", "Yes"),
                ("date_understanding", "Which day?\nOptions:\n(A) 1 May\n(B) 2 May", "(B)"),
                ("dyck_languages", "Complete: [ < (", ") > ]"),
                ("formal_fallacies", "Is it deductively valid or invalid?", "invalid"),
                ("multistep_arithmetic_two", "((-3 - 4) * 2) =", "-14"),
                ("word_sorting", "Sort: pear apple fig", "apple fig pear"),
            )
        ],
        answer=lambda problem: f"I think.\nAnswer: {problem.expected_answer}",
    ),
)
@scorer
def bbh(sample: ScorerInput) -> dict[str, Any]:
    """Whether the stated answer is the expected one, compared by its form."""
    form = sample.metadata["form"]
    if form == "letter":
        return multichoice_regex(sample, letters=LETTERS, choices=[])
    if form == "number":
        return numeric_match(sample)
    if form == "brackets":
        found = extract_line(sample.response)
        said = re.sub(r"[^\[\](){}<>]", "", found.text) if found else ""
        return {"correct": said == re.sub(r"\s", "", sample.target), "extracted": said, "method": "brackets"}
    return answer_line(sample)
