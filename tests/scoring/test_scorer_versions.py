"""A built-in scorer is known by its version, so its code may not change under one.

When a test here fails: if some reply may now get another verdict, raise the scorer's version in
`nel.scoring.scorers.VERSIONS`; in either case pin the new code with
`UPDATE_PINS=1 pytest tests/scoring/test_scorer_versions.py`.
"""

import json
import os
from pathlib import Path

import pytest
from source_digest import source_digest

from nel.scoring import choice, extract, likelihood, numbers, scorers, text

PINS = Path(__file__).with_name("scorer_pins.json")

_SHARED = (text, scorers._targets, scorers._verdict, scorers._shortened)
CODE = {
    "exact_match": (scorers.exact_match, scorers._same_tokens, *_SHARED),
    "fuzzy_match": (scorers.fuzzy_match, scorers._affirms, *_SHARED),
    "multichoice_regex": (scorers.multichoice_regex, scorers._gold_letter, choice, extract, numbers, *_SHARED),
    "answer_line": (scorers.answer_line, scorers._same_answer, scorers._same_tokens, extract, numbers, *_SHARED),
    "likeliest_option": (likelihood,),
    "numeric_match": (scorers.numeric_match, scorers._gold_number, extract, numbers, *_SHARED),
}


def pins():
    return {name: {"version": scorers.VERSIONS[name], "code": source_digest(*code)} for name, code in CODE.items()}


if os.environ.get("UPDATE_PINS"):
    PINS.write_text(json.dumps(pins(), indent=2) + "\n")


def test_every_scorer_has_a_version_and_a_pin():
    assert set(scorers.VERSIONS) == set(CODE) == set(json.loads(PINS.read_text()))


@pytest.mark.parametrize("name", CODE)
def test_the_code_of_a_version_does_not_change(name):
    assert json.loads(PINS.read_text())[name] == pins()[name], __doc__


def test_a_comment_is_no_change_and_a_condition_is(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for number, code in enumerate(
        [
            'def f(x):\n    """Doc."""\n    return x > 1\n',
            "def f(x):\n    # why\n    return x > 1\n",
            "def f(x):\n    return x >= 1\n",
        ]
    ):
        (tmp_path / f"pinned_{number}.py").write_text(code)
        digests.append(source_digest(__import__(f"pinned_{number}")))
    assert digests[0] == digests[1] != digests[2]
