"""IFEval: does the reply keep to instructions that a program can check? Strict and loose, by prompt and by instruction.

Source: Zhou et al., "Instruction-Following Evaluation for Large Language Models" (2023). Strict looks at the reply as
it is; loose also accepts it without its first line, its last line, or both, and without asterisks, as the paper does.
The reward is the strict verdict on the whole prompt.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.benchmarks.instructions import CHECKS, check
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput

ROWS = [
    ("Write in lower case.", "change_case:english_lowercase", {}, "all of it is small"),
    ("Write no comma.", "punctuation:no_comma", {}, "NO COMMA HERE."),
    ("Answer in JSON.", "detectable_format:json_format", {}, '```json\n{"A": 1}\n```'),
    ("Wrap it in double quotation marks.", "startend:quotation", {}, '"All, OF it"'),
    ("Use three bullet points.", "detectable_format:number_bullet_lists", {"num_bullets": 3}, "* A,\n* B\n* C"),
    ("Give a title in <<>>.", "detectable_format:title", {}, "<<A Title>>, then text"),
]


def checked(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row, all of whose instructions are known, each with its own arguments."""
    unknown = [name for name in row["instruction_id_list"] if name not in CHECKS]
    if unknown:
        raise ValueError(f"no check is known for the instruction {unknown[0]!r}")
    return {**row, "arguments": [{k: v for k, v in (given or {}).items() if v is not None} for given in row["kwargs"]]}


@benchmark(
    name="ifeval",
    dataset="hf://google/IFEval?split=train",
    prompt="{prompt}",
    target_field="instruction_id_list",
    prepare_row=checked,
    id_field="key",
    self_test=SelfTest(
        rows=[
            {"key": number, "prompt": prompt, "instruction_id_list": [name], "kwargs": [given], "said": said}
            for number, (prompt, name, given, said) in enumerate(ROWS)
        ],
        answer=lambda problem: problem.metadata["said"],
        chance=0.4,
    ),
)
@scorer
def ifeval(sample: ScorerInput) -> dict[str, Any]:
    """Whether every instruction was followed; further metrics are the loose verdict and the shares of instructions."""
    names, given = sample.metadata["instruction_id_list"], sample.metadata["arguments"]
    prompt = str(sample.metadata.get("prompt", ""))
    pairs = list(zip(names, given, strict=True))
    strict = [check(name, sample.response, arguments, prompt) for name, arguments in pairs]
    loose = [any(check(name, form, arguments, prompt) for form in forms(sample.response)) for name, arguments in pairs]
    return {
        "correct": all(strict),
        "prompt_loose": float(all(loose)),
        "instruction_strict": sum(strict) / len(strict),
        "instruction_loose": sum(loose) / len(loose),
        "followed": [name for name, holds in zip(names, strict, strict=True) if holds],
        "method": "ifeval",
    }


def forms(reply: str) -> list[str]:
    """The reply in the eight forms that the loose verdict accepts."""
    lines = reply.split("\n")
    cut = [reply, "\n".join(lines[1:]).strip(), "\n".join(lines[:-1]).strip(), "\n".join(lines[1:-1]).strip()]
    return [*cut, *(form.replace("*", "") for form in cut)]
