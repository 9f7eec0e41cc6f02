"""HellaSwag: which of four endings follows a scene? Asked in words, or decided by log-likelihood.

Source: Zellers et al., "HellaSwag: Can a Machine Really Finish Your Sentence?" (2019), the validation split, whose
answers are public. `hellaswag_loglikelihood` goes by the likelihood of each ending per byte; its scores are not
comparable with those of `hellaswag`.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from nel.benchmarks.options import LETTERS, lettered
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest, preferred
from nel.scoring import ScorerInput, likeliest_option, multichoice_regex

DATA = "hf://Rowan/hellaswag?split=validation"
PROMPT = """\
Which ending follows this text most plausibly? End with one line of the form "Answer: X", where X is the letter of one \
ending.

{scene}

{lettered}"""


def with_scene(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its scene and endings without the marks of the page they were taken from, and the right letter."""
    endings = [plain(ending) for ending in row["endings"]]
    gold = int(row["label"])
    scene = plain(f"{row['activity_label']}: {row['ctx_a']} {row['ctx_b'].capitalize()}")
    return {
        **row,
        "scene": scene,
        "choices": endings,
        "lettered": lettered(endings),
        "options": [f" {ending}" for ending in endings],
        "gold": LETTERS[gold],
        "index": gold,
    }


def plain(text: str) -> str:
    """A text of WikiHow without `[title]`, `[header]`, `[step]` and double spaces."""
    return re.sub(r"\s+", " ", re.sub(r"\[.*?\]", "", text.replace(" [title]", ". "))).strip()


ROWS = [
    {
        "ind": number,
        "activity_label": "Cooking",
        "ctx_a": f"A person takes {thing}.",
        "ctx_b": "they",
        "endings": [f"put {number} {other} away [step] now" for other in range(4)],
        "label": str(number),
        "source_id": f"made {number}",
    }
    for number, thing in enumerate(("a pot", "a pan", "a cup", "a jug"))
]


@benchmark(
    name="hellaswag",
    dataset=DATA,
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_scene,
    category_field="activity_label",
    cluster_field="source_id",
    self_test=SelfTest(rows=ROWS, answer=lambda problem: f"Answer: {problem.expected_answer}"),
)
@scorer
def hellaswag(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the letter of the right ending."""
    return multichoice_regex(sample, letters="ABCD")


@benchmark(
    name="hellaswag_loglikelihood",
    dataset=DATA,
    prompt="{scene}",
    endpoint_type="loglikelihood",
    target_field="index",
    prepare_row=with_scene,
    category_field="activity_label",
    cluster_field="source_id",
    self_test=SelfTest(
        rows=ROWS,
        answer=lambda problem: problem.metadata["options"][problem.expected_answer].strip(),
        model_response=preferred,
        chance=0.3,
    ),
)
@scorer
def hellaswag_loglikelihood(sample: ScorerInput) -> dict[str, Any]:
    """Whether the likeliest ending, per byte, is the right one; `by_sum` goes by the plain sum."""
    return likeliest_option(sample, per_byte=True)
