"""DROP: reading passages that ask to add, count, sort or compare; F1 over spans, with passages as clusters.

Source: Dua et al., "DROP: A Reading Comprehension Benchmark Requiring Discrete Reasoning Over Paragraphs" (2019). The
usual number of examples is three; each has its passage, its question and its answer. `params: {mode: official}` scores
exactly as the published script does, whose faults (`-5` is 5) our own mode does not share.
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.fewshot import FewShot
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, drop_match

PROMPT = """\
Passage: {passage}
Question: {question}
Answer with the number, the date or the words that the question asks for, after "Answer:"; separate several with commas.
Answer:"""


def with_answers(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with the spans of its answer as the target, and as a text for examples."""
    spans = [str(span) for span in row["answers_spans"]["spans"]]
    if not spans:
        raise ValueError("answers_spans is empty")
    unique = list(dict.fromkeys(spans))
    return {**row, "gold": [unique], "said": ", ".join(unique)}


@benchmark(
    name="drop",
    dataset="hf://ucinlp/drop?split=validation",
    prompt=PROMPT,
    target_field="gold",
    prepare_row=with_answers,
    cluster_field="section_id",
    id_field="query_id",
    extra={"mode": "nel"},
    fewshot=FewShot(rows={"split": "train"}, answer="{said}"),
    num_fewshot=3,
    self_test=SelfTest(
        rows=[
            {
                "section_id": f"passage {number}",
                "query_id": str(number),
                "passage": f"They kicked {number} goals.",
                "question": "What was kicked?",
                "answers_spans": {"spans": spans, "types": ["span"] * len(spans)},
            }
            for number, spans in enumerate((["12"], ["Tom Brady"], ["3.5"], ["4 March 1901"]))
        ],
        answer=lambda problem: f"Answer: {problem.metadata['said']}",
        params=({}, {"mode": "official"}),
        chance=0.2,
    ),
)
@scorer
def drop(sample: ScorerInput) -> dict[str, Any]:
    """F1 of the answer's spans with the expected ones, aligned one to one."""
    mode = sample.config["mode"]
    if mode not in {"nel", "official"}:
        raise ValueError(f"params.mode is {mode!r}; nel or official is expected")
    return drop_match(sample, official=mode == "official")
