"""No reply makes a scorer slow: every pattern is linear, and the windows are bounded."""

import time

import pytest

from nel.scoring import ScorerInput, answer_line, exact_match, fuzzy_match, multichoice_regex, numeric_match

MEGABYTE = 1_000_000
PIECES = [
    "\\boxed{",
    "{",
    "the answer is ",
    "answer to ",
    "answer (",
    "1",
    "1 ",
    "1 111 ",
    "1,",
    "1/",
    "x10^",
    "not Paris ",
    "not ",
    "*$",
    "#### ",
    "#### 5",
    "Option A ",
    "A or ",
    "A\n",
    "(A) ",
    "choose (((((((((((( ",
    "<answer>",
    "\u200b",
    " ",
    "é",
    "...",
    "U.S.",
    "巴黎",
    "don't ",
    "\\text{",
    "eighteen and ",
]
CALLS = {
    "exact": lambda reply: exact_match(ScorerInput(reply, "Paris")),
    "fuzzy": lambda reply: fuzzy_match(ScorerInput(reply, ["Paris", "1 1", "not"])),
    "choice": lambda reply: multichoice_regex(ScorerInput(reply, "A", {"choices": ["Paris", "Rome", "A", "not"]})),
    "line": lambda reply: answer_line(ScorerInput(reply, "Paris")),
    "number": lambda reply: numeric_match(ScorerInput(reply, "7"), words=True),
}


HARDEST = ["\\boxed{", "answer to ", "1 ", "1/", "not Paris ", "巴黎"]


@pytest.mark.parametrize(("pieces", "size", "limit"), [(PIECES, MEGABYTE // 10, 0.3), (HARDEST, MEGABYTE, 1.0)])
@pytest.mark.parametrize("call", CALLS)
def test_a_reply_of_any_kind_is_scored_in_time_linear_in_its_length(call, pieces, size, limit):
    slow = {}
    for piece in pieces:
        reply = (piece * (size // len(piece) + 1))[:size]
        begin = time.process_time()
        CALLS[call](reply)
        seconds = time.process_time() - begin
        if seconds > limit:
            slow[piece] = seconds
    assert slow == {}


def test_what_is_kept_of_a_giant_answer_is_short():
    verdict = exact_match(ScorerInput("x" * MEGABYTE, "y"))
    assert len(verdict["extracted"]) <= 1000
