"""Four options, decided by which of their letters the model finds most likely as the next token.

Nothing of the reply's text is read: a model too small to follow an instruction still has preferences. The server must
return log-probabilities; where it does not, the answer is unscored.
"""

from __future__ import annotations

import math
from typing import Any

from nel.environments.base import SeedResult
from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.observability.records import ModelResponse
from nel.scoring import ScorerInput

LETTERS = "ABCD"

PROMPT = """\
Question: {question}
A. {choices[0]}
B. {choices[1]}
C. {choices[2]}
D. {choices[3]}
Answer:"""


def likeliest(_problem: SeedResult, letter: str) -> ModelResponse:
    """The response of a model that finds `letter` the likeliest next token."""
    options = [{"token": f" {option}", "logprob": -0.5 if option == letter else -2.5} for option in LETTERS]
    return ModelResponse(content=letter, logprobs=[{"token": letter, "logprob": -0.5, "top_logprobs": options}])


@benchmark(
    name="quickstart_choice",
    dataset="data/quickstart_choice.jsonl",
    prompt=PROMPT,
    target_field="answer",
    category_field="topic",
    generation={"temperature": 0.0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20},
    self_test=SelfTest(
        rows="data/quickstart_choice.jsonl",
        answer=lambda problem: str(problem.expected_answer),
        model_response=likeliest,
    ),
)
@scorer
def quickstart_choice(sample: ScorerInput) -> dict[str, Any]:
    """Whether the most likely letter is the answer; `probability` is the answer's share among the four letters."""
    reply = sample.model_response.logprobs if sample.model_response is not None else None
    if not reply:
        return {"outcome": "unscored", "reason": "the server returned no log-probabilities (logprobs, top_logprobs)"}
    likely = letter_logprobs(reply[0])
    if not likely:
        return {"correct": False, "probability": 0.0, "method": "next_token", "failure_category": "no_answer"}
    chosen = max(likely, key=lambda letter: likely[letter])
    top = likely[chosen]
    shares = {letter: math.exp(logprob - top) for letter, logprob in likely.items()}
    return {
        "correct": chosen == sample.target,
        "probability": shares.get(sample.target, 0.0) / sum(shares.values()),
        "extracted": chosen,
        "method": "next_token",
        "logprobs": likely,
    }


def letter_logprobs(position: dict[str, Any]) -> dict[str, float]:
    """The log-probability of each option letter at one position; of ` A` and `A` the likelier one counts."""
    found: dict[str, float] = {}
    for candidate in (position, *(position.get("top_logprobs") or [])):
        letter = str(candidate["token"]).strip(" \u2581\u0120")  # how tokenizers write a leading space
        if letter in LETTERS and len(letter) == 1:
            found[letter] = max(found.get(letter, -math.inf), float(candidate["logprob"]))
    return found
