"""TriviaQA: trivia questions without context, each with all the aliases of its answer.

Source: Joshi et al., "TriviaQA: A Large Scale Distantly Supervised Challenge Dataset for Reading Comprehension" (2017),
the validation split of `rc.nocontext`, whose answers are public.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.fewshot import FewShot
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, alias_match

PROMPT = """\
Answer with a name, a number or a few words, nothing else.

Question: {question}
Answer:"""


def with_aliases(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with its answer's value as `gold` and every other name of it as `aliases`, in a fixed order."""
    answer = row["answer"]
    names = [*(answer.get("aliases") or []), *(answer.get("normalized_aliases") or [])]
    return {**row, "gold": answer["value"], "aliases": sorted(set(names) - {answer["value"]})}


@benchmark(
    name="triviaqa",
    dataset="hf://mandarjoshi/trivia_qa?config=rc.nocontext&split=validation",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_aliases,
    id_field="question_id",
    fewshot=FewShot(rows={"split": "train"}, answer="{gold}"),
    self_test=SelfTest(
        rows=[
            {
                "question_id": name,
                "question": f"Which city is also called {other}?",
                "answer": {"value": name, "aliases": [name, other], "normalized_aliases": [name.lower()]},
            }
            for name, other in (
                ("New York", "The Big Apple"),
                ("Paris", "City of Light"),
                ("Rome", "The Eternal City"),
                ("Chicago", "The Windy City"),
            )
        ],
        answer=lambda problem: problem.metadata["aliases"][0],
    ),
)
@scorer
def triviaqa(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply names the answer, by any of its aliases, as whole words."""
    return alias_match(sample)
