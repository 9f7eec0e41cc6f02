"""Instructions on form, checked by small programs: one word, a JSON object, three bullets, ..."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput


def one_word(text: str) -> bool:
    """One word, with or without a full stop."""
    return re.fullmatch(r"[^\W\d_]+[.!]?", text) is not None


def one_sentence(text: str) -> bool:
    """One sentence that ends as sentences do."""
    return re.fullmatch(r"[^.!?\n]+[.!?]", text) is not None


def only_number(text: str) -> bool:
    """A whole number and nothing else."""
    return re.fullmatch(r"-?\d+\.?", text) is not None


def upper_case(text: str) -> bool:
    """Letters, none of them small."""
    return text.isupper()


def lower_case(text: str) -> bool:
    """Letters, none of them capital."""
    return text.islower()


def bullets(text: str, count: int) -> bool:
    """Exactly `count` lines that begin with `-`, `*` or `+`; a rule (`---`) is none."""
    return len(re.findall(r"(?m)^\s*[-*+][ \t]+\S", text)) == count


def numbered(text: str, count: int) -> bool:
    """A list numbered from 1 to `count`."""
    return re.findall(r"(?m)^\s*(\d+)[.)][ \t]+\S", text) == [str(number) for number in range(1, count + 1)]


def json_object(text: str, keys: list[str]) -> bool:
    """A JSON object with exactly these keys; a code fence around it is allowed."""
    fenced = re.fullmatch(r"```(?:json)?\s*\n(.*?)\n?```", text, re.DOTALL)
    try:
        value = json.loads(fenced[1] if fenced else text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and sorted(value) == sorted(keys)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def mentions(text: str, words: list[str]) -> bool:
    """All of these words, as whole words."""
    return all(re.search(rf"(?i)(?<!\w){re.escape(word)}(?!\w)", text) for word in words)


def avoids(text: str, characters: str) -> bool:
    """Text without any of these characters."""
    return not set(characters) & set(text)


def at_most_words(text: str, count: int) -> bool:
    """No more than `count` words."""
    return len(text.split()) <= count


def begins_with(text: str, start: str) -> bool:
    """Text that begins so, case included."""
    return text.startswith(start)


def ends_with(text: str, end: str) -> bool:
    """Text that ends so, case included."""
    return text.endswith(end)


CHECKS: dict[str, Callable[..., bool]] = {
    check.__name__: check
    for check in (
        one_word,
        one_sentence,
        only_number,
        upper_case,
        lower_case,
        bullets,
        numbered,
        json_object,
        mentions,
        avoids,
        at_most_words,
        begins_with,
        ends_with,
    )
}


_EXAMPLES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": "one_word"}, "Otter."),
    ({"name": "one_sentence"}, "Rivers run to the sea."),
    ({"name": "only_number"}, "42"),
    ({"name": "upper_case"}, "ALL OF IT, LOUD"),
    ({"name": "bullets", "count": 2}, "- one\n- two"),
    ({"name": "numbered", "count": 2}, "1. one\n2. two"),
    ({"name": "json_object", "keys": ["name"]}, '{"name": "Ann"}'),
    ({"name": "mentions", "words": ["salt", "pepper"]}, "Pepper, and some salt"),
    ({"name": "begins_with", "start": "Dear"}, "Dear Ann, all is well"),
    ({"name": "ends_with", "end": "The end"}, "So it was. The end"),
)
"""Checks, each with a reply that passes it and none of the others."""


@benchmark(
    name="quickstart_format",
    dataset="data/quickstart_format.jsonl",
    prompt="{instruction}",
    target_field="check",
    category_field="kind",
    generation={"temperature": 0.0, "max_tokens": 64},
    self_test=SelfTest(
        rows=[{"instruction": f"Example {reply!r}", "check": check, "kind": "example"} for check, reply in _EXAMPLES],
        answer=lambda problem: next(reply for check, reply in _EXAMPLES if check == problem.expected_answer),
    ),
)
@scorer
def quickstart_format(sample: ScorerInput) -> dict[str, Any]:
    """Whether the reply passes the row's check: `{"name": ..., arguments}`. An empty reply passes none."""
    arguments = dict(sample.target)
    name = arguments.pop("name")
    text = sample.response.strip()
    if not text:
        return {"correct": False, "method": name, "failure_category": "empty_response"}
    return {"correct": CHECKS[name](text, **arguments), "extracted": text[:200], "method": name}
