"""What holds for every reply: a verdict exists, decoration does not change it, nothing scores by accident."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from nel.scoring import ScorerInput, answer_line, exact_match, fuzzy_match, multichoice_regex, numeric_match

fast = settings(deadline=None, max_examples=60)

words = st.text(string.ascii_lowercase, min_size=2, max_size=10).filter(
    lambda word: (
        word not in {"an", "the", "not", "nor", "st", "dr", "mr", "mrs", "ms", "jr", "sr", "no", "vs", "co", "mt"}
    )
)
names = st.lists(words, min_size=1, max_size=3).map(" ".join)
integers = st.integers(min_value=-(10**9), max_value=10**9)
letters = st.sampled_from("ABCD")
wrappers = st.sampled_from(
    ["{}", "**{}**", "  {}\n\n", "\\boxed{{{}}}", "${}$", "`{}`", '"{}"', "{}.", "\\text{{{}}}", "***{}***"]
)
statements = st.sampled_from(["The answer is {}", "Answer: {}", "So, the final answer is: {}", "**Answer:** {}"])
endings = st.sampled_from(["", ".", "\n", "\n\nI hope this helps!", "\nLet me know if you need more."])

SCORERS = {
    exact_match: "Paris",
    fuzzy_match: "Paris",
    answer_line: "Paris",
    numeric_match: "18",
    multichoice_regex: "B",
}


@fast
@given(st.text(max_size=300))
def test_every_reply_gets_a_verdict(reply):
    for scorer, gold in SCORERS.items():
        verdict = scorer(ScorerInput(reply, gold, {"choices": ["Rome", "Paris", "Oslo", "Bonn"]}))
        assert verdict["correct"] in {True, False}
        assert verdict["method"] == scorer.__name__
        if verdict["extracted"] is None:
            assert verdict["failure_category"] in {"no_answer", "empty_response"}


@fast
@given(st.text(" \n\t\u200b\u00a0\u3000", max_size=20), names)
def test_an_empty_reply_is_never_correct(reply, gold):
    for scorer in (exact_match, fuzzy_match, answer_line):
        assert not scorer(ScorerInput(reply, gold))["correct"]
        assert not scorer(ScorerInput(reply, ""))["correct"]
    assert not numeric_match(ScorerInput(reply, 0))["correct"]
    assert not multichoice_regex(ScorerInput(reply, "A"))["correct"]


@fast
@given(names, wrappers)
def test_a_wrapper_does_not_change_a_right_name(name, wrapper):
    for scorer in (exact_match, fuzzy_match, answer_line):
        assert scorer(ScorerInput(wrapper.format(name), name))["correct"], scorer


@fast
@given(integers, wrappers, statements, endings)
def test_a_stated_number_keeps_its_verdict_however_it_is_wrapped(value, wrapper, statement, ending):
    reply = statement.format(wrapper.format(value).strip()) + ending
    assert numeric_match(ScorerInput(reply, value))["correct"]
    assert not numeric_match(ScorerInput(reply, value + 1))["correct"]
    assert answer_line(ScorerInput(reply, str(value)))["correct"]


@fast
@given(letters, letters, wrappers, statements, endings)
def test_a_stated_letter_keeps_its_verdict_however_it_is_wrapped(letter, gold, wrapper, statement, ending):
    reply = statement.format(wrapper.format(letter).strip()) + ending
    assert multichoice_regex(ScorerInput(reply, gold))["correct"] is (letter == gold)


@fast
@given(names, wrappers, statements, endings)
def test_a_stated_name_keeps_its_verdict_however_it_is_wrapped(name, wrapper, statement, ending):
    reply = statement.format(wrapper.format(name).strip()) + ending
    assert answer_line(ScorerInput(reply, name))["correct"]


@fast
@given(integers, integers)
def test_numbers_are_equal_exactly_when_their_values_are(one, other):
    for scorer in (numeric_match, exact_match, answer_line):
        assert scorer(ScorerInput(str(one), str(other)))["correct"] is (one == other)


@fast
@given(integers)
def test_separators_and_trailing_zeros_do_not_change_a_number(value):
    for text in (f"{value:,}", f"{value}.00", f"{value:,}".replace(",", "\u202f"), f"{value:,}".replace(",", " ")):
        assert numeric_match(ScorerInput(f"The answer is {text}.", value))["correct"], text


@fast
@given(words, words, words)
def test_a_part_of_a_word_is_no_mention(before, gold, after):
    assert not fuzzy_match(ScorerInput(f"{before}{gold}{after}", gold))["correct"]
    assert not fuzzy_match(ScorerInput(gold[:-1], gold))["correct"]


@fast
@given(names, names)
def test_the_last_stated_answer_wins(first, last):
    reply = f"Answer: {first}\nWait.\nAnswer: {last}"
    assert answer_line(ScorerInput(reply, last))["correct"]
