"""A built-in scorer is known by its version, so its code may not change under one.

When a test here fails: if some reply may now get another verdict, raise the scorer's version in
`nel.scoring.versions.VERSIONS`; in either case pin the new code with
`UPDATE_PINS=1 pytest tests/scoring/test_scorer_versions.py`.
"""

import json
import os
from pathlib import Path

import pytest
from source_digest import source_digest

from nel.scoring import (
    choice,
    code,
    code_check,
    extract,
    json_schema,
    likelihood,
    math_equality,
    math_parse,
    math_value,
    math_worker,
    numbers,
    overlap,
    scorers,
    text,
    verdicts,
)
from nel.scoring.versions import VERSIONS

PINS = Path(__file__).with_name("scorer_pins.json")

_SHARED = (text, verdicts)
_READING = (extract, numbers, *_SHARED)
CODE = {
    "exact_match": (scorers.exact_match, scorers._same_tokens, *_READING),
    "fuzzy_match": (scorers.fuzzy_match, scorers._affirms, *_SHARED),
    "multichoice_regex": (scorers.multichoice_regex, scorers._gold_letter, choice, *_READING),
    "answer_line": (scorers.answer_line, scorers._same_answer, scorers._same_tokens, *_READING),
    "numeric_match": (scorers.numeric_match, scorers._gold_number, scorers._parsed_gold, *_READING),
    "math_match": (math_equality, math_parse, math_value, math_worker, *_READING),
    "token_f1": (overlap.token_f1, overlap._f1, *_READING),
    "alias_match": (overlap.alias_match, overlap._names, *_READING),
    "drop_match": (overlap, *_READING),
    "bleu": (overlap.bleu, overlap._measured, *_READING),
    "chrf": (overlap.chrf, overlap._measured, *_READING),
    "rouge": (overlap.rouge, overlap._rouge, overlap._measured, *_READING),
    "json_schema_match": (json_schema, *_SHARED),
    "extract_json": (json_schema.extract_json, json_schema._values, json_schema._decoded),
    "extract_code": (code,),
    "likeliest_option": (likelihood,),
    "code_sandbox": (code_check, code),
}


def pins():
    return {name: {"version": VERSIONS[name], "code": source_digest(*code)} for name, code in CODE.items()}


if os.environ.get("UPDATE_PINS"):
    PINS.write_text(json.dumps(pins(), indent=2) + "\n")


def test_every_scorer_has_a_version_and_a_pin():
    assert set(VERSIONS) == set(CODE) == set(json.loads(PINS.read_text()))


@pytest.mark.parametrize("name", CODE)
def test_the_code_of_a_version_does_not_change(name):
    assert json.loads(PINS.read_text())[name] == pins()[name], __doc__


def test_a_comment_is_no_change_and_a_condition_is(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for number, source in enumerate(
        [
            'def f(x):\n    """Doc."""\n    return x > 1\n',
            "def f(x):\n    # why\n    return x > 1\n",
            "def f(x):\n    return x >= 1\n",
        ]
    ):
        (tmp_path / f"pinned_{number}.py").write_text(source)
        digests.append(source_digest(__import__(f"pinned_{number}")))
    assert digests[0] == digests[1] != digests[2]
