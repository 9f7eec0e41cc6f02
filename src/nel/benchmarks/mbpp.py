"""MBPP: short Python programs from a sentence and example assertions, checked by running all of its assertions.

Source: Austin et al., "Program Synthesis with Large Language Models" (2021); its test split is the tasks 11 to 510. The
assertions are shown, as the paper does, since they alone say what the function is called.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput
from nel.scoring.code_check import CODE_SPEC, code_sandbox

PROMPT = """\
{text}

Your code must pass these tests:

{shown}

Answer with one Python code block."""

_WRAPPERS = frozenset(
    {"set", "sorted", "list", "tuple", "len", "isclose", "abs", "round", "str", "int", "float", "dict"}
)


def with_tests(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with `tests`, `shown` and the `entry_point` that the assertions call."""
    tests = [*row["test_list"], *row.get("challenge_test_list", [])]
    if not tests:
        raise ValueError("test_list is empty")
    setup = row.get("test_setup_code") or ""
    return {
        **row,
        "shown": "\n".join(row["test_list"]),
        "tests": "\n".join([setup, *tests]),
        "entry_point": called(row["test_list"][0]),
    }


def called(assertion: str) -> str | None:
    """The function that an assertion is about; None where that cannot be told."""
    names = [found for found in re.findall(r"([A-Za-z_]\w*)\s*\(", assertion) if found not in _WRAPPERS | {"assert"}]
    return names[0] if names else None


@benchmark(
    name="mbpp",
    dataset="hf://google-research-datasets/mbpp?config=full&split=test",
    prompt=PROMPT,
    target_field="code",
    id_field="task_id",
    prepare_row=with_tests,
    extra={"time_limit": 30.0},
    sandbox=CODE_SPEC,
    self_test=SelfTest(
        rows=[
            {
                "task_id": number,
                "text": f"Write a function to {what}.",
                "code": f"def {name}(x):\n    return {body}",
                "test_list": [f"assert {name}({given!r}) == {wanted!r}"],
                "test_setup_code": "",
                "challenge_test_list": [],
            }
            for number, (name, what, body, given, wanted) in enumerate(
                (
                    ("double", "double a number", "2 * x", 4, 8),
                    ("shout", "put a text in upper case", "x.upper()", "ab", "AB"),
                    ("last", "find the last element of a list", "x[-1]", [1, 2, 3], 3),
                    ("count", "count the elements of a list", "len(x)", [4, 4], 2),
                )
            )
        ],
        answer=lambda problem: f"Here it is:\n```python\n{problem.expected_answer}\n```",
    ),
)
@scorer
async def mbpp(sample: ScorerInput) -> dict[str, Any]:
    """Whether the program passes every assertion of its problem."""
    row = sample.metadata
    return await code_sandbox(
        sample, tests=row["tests"], entry_point=row["entry_point"], time_limit=sample.config["time_limit"]
    )
