"""IFEval: each of the 25 kinds of instruction tells a reply that follows it from one that does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nel.benchmarks.ifeval import forms, ifeval
from nel.benchmarks.instructions import CHECKS, check
from nel.scoring import ScorerInput

CASES = [
    ("keywords:existence", {"keywords": ["alpha", "beta"]}, "Alpha then BETA", "alpha alone"),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "a category", "the cat sat"),
    ("keywords:frequency", {"keyword": "go", "frequency": 2, "relation": "at least"}, "go, go!", "go"),
    ("keywords:frequency", {"keyword": "go", "frequency": 2, "relation": "less than"}, "go", "go go"),
    ("keywords:letter_frequency", {"letter": "q", "let_frequency": 2, "let_relation": "at least"}, "Qq", "q"),
    (
        "language:response_language",
        {"language": "de"},
        "Das ist nicht die Antwort auf der Seite",
        "This is not it and the",
    ),
    ("language:response_language", {"language": "hi"}, "यह उत्तर है", "This is the answer"),
    ("language:response_language", {"language": "ja"}, "これは答えです", "Das ist es"),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}, "One. Two.", "A. B. C."),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "one two three", "one two"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo", "one\n\ntwo"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
        "First.\n\nThen, second.",
        "First.\n\nSecond.",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] at [place]", "[name] only"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Text\nP.S. more", "Text without"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Text\nP.P.S more", "Text\nP.S. more"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n* b\n* c"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "Perhaps."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*one* and *two*", "*one* and two"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\na\nSECTION 2\nb",
        "a",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    ("detectable_format:title", {}, "<<A>>\ntext", "<<>>\ntext"),
    ("combination:two_responses", {}, "one\n******\ntwo", "same\n******\nsame"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say this."}, "say this. And more", "Saying this."),
    ("startend:end_checker", {"end_phrase": "That is all."}, "Text. That is all.", "That is all. Not."),
    ("startend:quotation", {}, '"quoted"', '"half'),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "NASA and ESA",
        "NASA",
    ),
    ("change_case:english_capital", {}, "THE END IS NEAR", "The end is near"),
    ("change_case:english_lowercase", {}, "the end is near", "The end is near"),
    ("punctuation:no_comma", {}, "none here", "one, here"),
]


def test_every_kind_of_instruction_is_here():
    assert len(CHECKS) == 25
    assert {name for name, *_ in CASES} == set(CHECKS)


@pytest.mark.parametrize(("name", "arguments", "follows", "fails"), CASES)
def test_a_reply_that_follows_is_told_from_one_that_does_not(name, arguments, follows, fails):
    assert check(name, follows, arguments)
    assert not check(name, fails, arguments)
    assert not check(name, " \n", arguments)


@given(st.text(max_size=300))
def test_every_check_is_total(reply):
    for name, arguments, *_ in CASES:
        assert check(name, reply, arguments) in {True, False}


def sample(reply, *names):
    known = {name: arguments for name, arguments, *_ in CASES}
    metadata = {"instruction_id_list": list(names), "arguments": [known[name] for name in names], "prompt": "p"}
    return ScorerInput(reply, metadata=metadata)


def test_a_prompt_is_right_only_with_all_its_instructions_and_instructions_are_counted_one_by_one():
    found = ifeval(sample("one, two three", "punctuation:no_comma", "length_constraints:number_words"))
    assert (found["correct"], found["instruction_strict"]) == (False, 0.5)
    assert found["followed"] == ["length_constraints:number_words"]


def test_loose_forgives_a_first_line_and_asterisks():
    found = ifeval(sample('Sure, here:\n"quoted"', "startend:quotation"))
    assert (found["correct"], found["prompt_loose"], found["instruction_loose"]) == (False, 1.0, 1.0)
    assert len(forms("a\nb\nc")) == 8
