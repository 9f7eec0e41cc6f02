"""WinoGrande: which of two names fills the gap? Asked in words, or decided by log-likelihood.

Source: Sakaguchi et al., "WinoGrande: An Adversarial Winograd Schema Challenge at Scale" (2020), the validation split,
whose answers are public. `winogrande_loglikelihood` compares how likely the rest of the sentence is after each name;
its scores are not comparable with those of `winogrande`.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest, preferred
from nel.scoring import ScorerInput, likeliest_option, multichoice_regex

DATA = "hf://allenai/winogrande?config=winogrande_xl&split=validation"
PROMPT = """\
Which option belongs in the place of "_"? End with one line of the form "Answer: X", where X is A or B.

{sentence}

A. {choices[0]}
B. {choices[1]}"""


def with_options(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its options by letter, and as two beginnings of the sentence with one end."""
    options = [row["option1"], row["option2"]]
    gold = ["1", "2"].index(str(row["answer"]))
    before, gap, after = row["sentence"].partition("_")
    if not gap:
        raise ValueError('the sentence has no "_"')
    return {
        **row,
        "choices": options,
        "gold": "AB"[gold],
        "index": gold,
        "option_contexts": [before + option for option in options],
        "options": [after.rstrip(), after.rstrip()],
    }


ROWS = [
    {"sentence": f"The {a} beat the {b} since the _ was {what}.", "option1": a, "option2": b, "answer": answer}
    for a, b, what, answer in (
        ("cat", "dog", "quick", "1"),
        ("cup", "jug", "weak", "2"),
        ("team", "club", "good", "1"),
        ("car", "van", "slow", "2"),
    )
]


@benchmark(
    name="winogrande",
    dataset=DATA,
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_options,
    self_test=SelfTest(rows=ROWS, answer=lambda problem: f"Answer: {problem.expected_answer}", chance=0.5),
)
@scorer
def winogrande(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply chose the letter of the right option."""
    return multichoice_regex(sample, letters="AB")


def likelier(problem: Any, reply: str) -> Any:
    """The response of a model that finds the end likelier after the option `reply`."""
    choices = problem.metadata["choices"]
    as_options = type(problem)(prompt=problem.prompt, metadata={"options": choices})
    return preferred(as_options, reply)


@benchmark(
    name="winogrande_loglikelihood",
    dataset=DATA,
    prompt="{sentence}",
    endpoint_type="loglikelihood",
    target_field="index",
    prepare_row=with_options,
    self_test=SelfTest(
        rows=ROWS,
        answer=lambda problem: problem.metadata["choices"][problem.expected_answer],
        model_response=likelier,
        chance=0.5,
    ),
)
@scorer
def winogrande_loglikelihood(sample: ScorerInput) -> dict[str, Any]:
    """Whether the end of the sentence is likelier after the right option."""
    return likeliest_option(sample)
