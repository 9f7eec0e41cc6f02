"""No reply breaks a scorer, none takes long, and nothing that a reply holds is executed."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.scoring import (
    ScorerInput,
    alias_match,
    answer_line,
    bleu,
    chrf,
    drop_match,
    exact_match,
    extract_code,
    extract_json,
    fuzzy_match,
    json_schema_match,
    math_equal,
    math_match,
    multichoice_regex,
    numeric_match,
    rouge,
    token_f1,
)

GOLD = "7"
SCORERS = {
    "exact": lambda reply: exact_match(ScorerInput(reply, GOLD)),
    "fuzzy": lambda reply: fuzzy_match(ScorerInput(reply, GOLD)),
    "alias": lambda reply: alias_match(ScorerInput(reply, GOLD)),
    "line": lambda reply: answer_line(ScorerInput(reply, GOLD)),
    "choice": lambda reply: multichoice_regex(ScorerInput(reply, "A", {"choices": ["x", "7", "a b", "the"]})),
    "number": lambda reply: numeric_match(ScorerInput(reply, GOLD), words=True),
    "comma": lambda reply: numeric_match(ScorerInput(reply, GOLD), decimal=","),
    "math": lambda reply: math_match(ScorerInput(reply, GOLD), timeout=5),
    "f1": lambda reply: token_f1(ScorerInput(reply, GOLD)),
    "drop": lambda reply: drop_match(ScorerInput(reply, [["7", "Rome"]])),
    "drop official": lambda reply: drop_match(ScorerInput(reply, GOLD), official=True),
    "bleu": lambda reply: bleu(ScorerInput(reply, GOLD)),
    "chrf": lambda reply: chrf(ScorerInput(reply, GOLD)),
    "rouge": lambda reply: rouge(ScorerInput(reply, GOLD)),
    "schema": lambda reply: json_schema_match(ScorerInput(reply, {"type": "string"})),
}
FRAGMENTS = [
    "{", "}", "\\boxed{", "\\frac{", "\\sqrt[", "^", "^{", "9", "9" * 50, "**", "(", ")", "[", "]", ",", ", ", ":", "=", "<", "≤",
    "±", "%", "\\%", "$", "$$", "\\(", "\\)", "\\[", "\\]", "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", "\\text{", "and", " or ",
    "!", "\\infty", "\\cup", "x", "i", "e", "\u202e", "\u200f", "\0", "\ud800", "\udfff", "é", "７", "½", "²", "\n", " ", "```",
    "####", "Answer: ", "the answer is ", "答案是", "<answer>", "</think>", "<think>", '"', "'", "not ", "A", "B.", "-", "−", ".", "/", "\\left", "_",
]  # fmt: skip
adversarial = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)
HUGE = {
    "nested braces": "\\boxed{" + "{" * 500_000 + "7" + "}" * 500_000 + "}",
    "a million digits": "Answer: " + "9" * 1_000_000,
    "a tower of powers": "\\boxed{" + "9^{" * 30_000 + "9" + "}" * 30_000 + "}",
    "short tower": "\\boxed{9^{9^{9^{9}}}}",
    "plain tower": "The answer is 9**9**9**9**9",
    "factorials": "\\boxed{" + "9" + "!" * 1000 + "}",
    "giant factorial": "\\boxed{99999999!}",
    "giant binomial": "\\boxed{\\binom{99999999}{4999999}}",
    "expanded power": "\\boxed{(x+y+z+1)^{999999}}",
    "right to left": "\u202e" * 300_000 + "7",
    "NUL": "\0" * 1_000_000,
    "surrogates": "\ud800" * 500_000,
    "many boxes": "\\boxed{7}, " * 90_000,
    "many dollars": "$" * 1_000_000,
    "fractions": "\\boxed{" + "\\frac{1}{" * 20_000 + "7" + "}" * 20_000 + "}",
    "a code": "Answer: __import__('os').system('false')",
    "commas": "\\boxed{" + "7," * 499_000 + "}",
    "matrix": "\\boxed{\\begin{pmatrix}" + "7&" * 300_000 + "\\end{pmatrix}}",
    "one word": "a" * 1_000_000,
    "signs": "-" * 1_000_000 + "7",
    "words": "seventy " * 125_000,
    "spaces": "Answer:" + " " * 999_000 + "7",
    "quotes": "“" * 300_000,
}


@settings(deadline=None, max_examples=120)
@given(adversarial | st.text(max_size=200))
def test_every_reply_gets_a_verdict_in_range(reply):
    for name, score in SCORERS.items():
        verdict = score(reply)
        value = verdict["correct"] if "correct" in verdict else verdict["reward"]
        assert 0 <= value <= 1, name
        extract_code(reply, "f")
        extract_json(reply)


@pytest.mark.parametrize("name", SCORERS)
def test_no_reply_of_a_megabyte_takes_long(name):
    slow = {}
    for what, reply in HUGE.items():
        begin = time.perf_counter()
        SCORERS[name](reply)
        if (seconds := time.perf_counter() - begin) > 6:
            slow[what] = seconds
    assert slow == {}


@settings(deadline=None, max_examples=80)
@given(adversarial)
def test_equality_is_total_and_reflexive(text):
    math_equal(text, "7", timeout=5)
    if text.strip() and len(text) < 500:
        assert math_equal("7", "7")


def test_a_giant_answer_leaves_a_short_record():
    for name, score in SCORERS.items():
        verdict = score("Answer: " + "9" * 1_000_000)
        assert len(str(verdict)) < 3000, name
