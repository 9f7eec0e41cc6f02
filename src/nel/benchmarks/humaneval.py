"""HumanEval: a Python function from its signature and docstring, checked by running its tests.

Source: Chen et al., "Evaluating Large Language Models Trained on Code" (2021). The prompt asks a chat model for the
whole function; a reply that only continues the given head counts as well.
"""

from __future__ import annotations

from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput
from nel.scoring.code_check import CODE_SPEC, code_sandbox

PROMPT = """\
Complete this Python function. Answer with the whole function in one Python code block.

```python
{prompt}
```"""


@benchmark(
    name="humaneval",
    dataset="hf://openai/openai_humaneval?split=test",
    prompt=PROMPT,
    target_field="canonical_solution",
    id_field="task_id",
    extra={"time_limit": 30.0},
    sandbox=CODE_SPEC,
    self_test=SelfTest(
        rows=[
            {
                "task_id": f"Made/{name}",
                "prompt": f'def {name}(a: int, b: int) -> int:\n    """{what} of a and b."""\n',
                "canonical_solution": f"    return a {sign} b\n",
                "test": f"def check(candidate):\n    for a, b in ((7, 3), (0, 5)):\n"
                f"        assert candidate(a, b) == a {sign} b\n",
                "entry_point": name,
            }
            for name, what, sign in (
                ("add", "The sum", "+"),
                ("subtract", "The difference", "-"),
                ("multiply", "The product", "*"),
                ("modulo", "The remainder", "%"),
            )
        ],
        answer=lambda problem: f"```python\n{problem.metadata['prompt']}{problem.expected_answer}```",
    ),
)
@scorer
async def humaneval(sample: ScorerInput) -> dict[str, Any]:
    """Whether the function passes the tests of its problem."""
    row = sample.metadata
    return await code_sandbox(
        sample,
        tests=f"{row['test']}\ncheck({row['entry_point']})\n",
        entry_point=row["entry_point"],
        prefix=row["prompt"],
        time_limit=sample.config["time_limit"],
    )
