"""Replies that evaluators are known to have scored wrongly, with the right verdict."""

import pytest

from nel.scoring import (
    ScorerInput,
    answer_line,
    exact_match,
    extract_choice,
    extract_number,
    fuzzy_match,
    multichoice_regex,
    numeric_match,
)

RIGHT, WRONG = True, False


@pytest.mark.parametrize(
    ("reply", "gold", "verdict"),
    [
        ("The answer is $18.00", "18", RIGHT),
        ("He pays 18 dollars...", "18", RIGHT),
        ("So the total is 1 080.", "1080", RIGHT),
        ("So the total is 1\u202f080.", "1080", RIGHT),
        ("So the total is 1\u00a0080\u00a0000.", "1080000", RIGHT),
        ("The answer is 1,080.", "1080", RIGHT),
        ("Range 5-10", "10", RIGHT),
        ("Range 5\u201310", "10", RIGHT),
        ("#### $18", "18", RIGHT),
        ("####18", "18", RIGHT),
        ("#### 18 or maybe 20\n#### 20", "20", RIGHT),
        ("#### 18 or maybe 20\n#### 20", "18", WRONG),
        ("The answer is 18", "18", RIGHT),
        ("The answer is \\boxed{18}.", "18", RIGHT),
        ("\\boxed{5} is wrong, it must be \\boxed{18}", "18", RIGHT),
        ("\\boxed{1\\,000}", "1000", RIGHT),
        ("It costs 18%.", "18", RIGHT),
        ("total 1000", "1", WRONG),
        ("total 10", "100", WRONG),
        ("I don't know", "0", WRONG),
        ("", "0", WRONG),
        ("The answer is **18**.", "18", RIGHT),
        ("**Answer:** 18", "18", RIGHT),
        ("**Answer**: $18$", "18", RIGHT),
        ("Answer (in dollars): 18", "18", RIGHT),
        ("The answer to the question is 18 apples", "18", RIGHT),
        ("Answer:\n\n18", "18", RIGHT),
        ("<answer>18</answer> from 3 terms", "18", RIGHT),
        ("18 dollars", "18", RIGHT),
        ("$18.00", "18", RIGHT),
        ("The answer is 18. So he has 18 apples and 2 pears.", "18", RIGHT),
        ("The unboxed item count is 5", "5", RIGHT),
        ("The answer is 16 - 3 - 4 = 9 dollars.", "9", RIGHT),
        ("The answer is not 5 but 10", "10", RIGHT),
        ("It is 10, not 20.", "10", RIGHT),
        ("#### Step 1: take 3\nThe total is 18", "18", RIGHT),
        ("#### 2. Add them\nthe total is 18", "18", RIGHT),
        ("-5", "5", WRONG),
        ("−5", "-5", RIGHT),
        ("The answer is -$5", "-5", RIGHT),
        ("1,5", "15", WRONG),
        ("3.5", "35", WRONG),
        ("112341", "112340", WRONG),
        ("1e3", "1000", RIGHT),
        ("1.5 × 10^3", "1500", RIGHT),
        ("Answer: 1/2", "0.5", RIGHT),
        ("It takes 2 1/2 hours", "2.5", RIGHT),
        ("a glass of H2O", "2", WRONG),
        ("42.00", 42, RIGHT),
        ("0.1", 0.1, RIGHT),
    ],
)
def test_a_number_is_read_as_a_person_reads_it(reply, gold, verdict):
    assert numeric_match(ScorerInput(reply, gold))["correct"] is verdict


def test_number_words_count_where_they_are_allowed():
    assert not numeric_match(ScorerInput("eighteen", 18))["correct"]
    assert numeric_match(ScorerInput("eighteen", 18), words=True)["correct"]
    assert numeric_match(ScorerInput("one hundred and five", 105), words=True)["correct"]
    assert numeric_match(ScorerInput("minus two thousand", -2000), words=True)["correct"]


def test_a_decimal_comma_counts_under_a_declared_locale_only():
    assert not numeric_match(ScorerInput("1.234,50", "1234.5"))["correct"]
    assert numeric_match(ScorerInput("1.234,50", 1234.5), decimal=",")["correct"]
    assert numeric_match(ScorerInput("1.234,50", "1234,5"), decimal=",")["correct"]


def test_a_gold_answer_that_is_no_number_is_a_fault_of_the_data():
    for gold in ("many", "", "2 or 3", None, True):
        with pytest.raises(ValueError, match="expected answer"):
            numeric_match(ScorerInput("2", gold))


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The answer is **C**.", "C"),
        ("$\\boxed{C}$", "C"),
        ("Answer: $\\boxed{\\text{(C)}}$", "C"),
        ("Answer: C", "C"),
        ("The answer is:\n\nC", "C"),
        ("the answer is option C", "C"),
        ("Answer: Based on the text, C", "C"),
        ("Choice (B), not (A).", "B"),
        ("Answer: **C** ; ANSWER: c", "C"),
        ("Because of this, D is right.", "D"),
        ("C", "C"),
        ("(c)", "C"),
        ("C) Rome", "C"),
        ("**Answer:** (C) Rome", "C"),
        ("Answer: c) rome", "C"),
        ("Answer: A because it is", "A"),
        ("The answer is not A but C", "C"),
        ("A. Paris\nB. Rome\n\nC", "C"),
        ("I choose (D)", "D"),
        ("Option A is wrong. Option B is correct.", "B"),
        ("Answer: C. Option A is wrong because of B", "C"),
        ("The correct option is B, since A fails", "B"),
        ("Both A and B are plausible, but the best choice is B.", "B"),
        ("so **B** it is", "B"),
        ("<answer>B</answer>", "B"),
        ("A is correct", "A"),
        ("Answer: A\nWait. Answer: D", "D"),
        # nothing was chosen
        ("", None),
        ("Because", None),
        ("I think", None),
        ("A car hits a bee", None),
        ("Answer: A car", None),
        ("answer: a dog", None),
        ("A or B", None),
        ("The answer is A or B", None),
        ("Answer: C/D", None),
        ("Answer: A-D", None),
        ("Answer: E", None),
    ],
)
def test_a_letter_is_an_option_only_where_one_was_chosen(reply, letter):
    found = extract_choice(reply)
    assert (found.text if found else None) == letter


@pytest.mark.parametrize(
    ("reply", "choices", "letter"),
    [
        ("1000", ["1", "10", "100", "1000"], "D"),
        ("It is not alpha, it is beta. Unlike alpha", ["alpha", "beta", "gamma", "delta"], "B"),
        ("The answer is New York City", ["New York", "New York City", "Boston", "Rome"], "B"),
        ("It is in Paris or Rome.", ["Paris", "Rome", "Oslo", "Bonn"], None),
        ("a comparison", ["Paris", "Rome", "Oslo", "Bonn"], None),
    ],
)
def test_an_option_may_be_named_by_its_text(reply, choices, letter):
    found = extract_choice(reply, choices=choices)
    assert (found.text if found else None) == letter


def test_choices_of_the_row_and_a_gold_text_are_understood():
    row = {"choices": ["Paris", "Rome", "Oslo", "Bonn"]}
    assert multichoice_regex(ScorerInput("It must be Rome.", "B", row))["correct"]
    assert multichoice_regex(ScorerInput("Answer: B", "Rome", row))["correct"]
    with pytest.raises(ValueError, match="none of the options"):
        multichoice_regex(ScorerInput("Answer: B", "Lima", row))


def test_a_pattern_of_ones_own_takes_its_last_match():
    verdict = multichoice_regex(ScorerInput("Final=A ... Final=B", "B"), r"final=([A-D])")
    assert verdict["correct"]
    assert verdict["rule"] == "pattern"


def test_more_options_than_four_are_declared():
    assert multichoice_regex(ScorerInput("Answer: J", "J"), letters="ABCDEFGHIJ")["correct"]
    with pytest.raises(ValueError, match="letters="):
        multichoice_regex(ScorerInput("Answer: J", "J"), letters="abcdefghij")


@pytest.mark.parametrize(
    ("reply", "gold", "verdict"),
    [
        ("", "Paris", WRONG),
        ("The", "Paris", WRONG),
        ("i", "Paris", WRONG),
        ("I know nothing", "no", WRONG),
        ("comparison", "Paris", WRONG),
        ("I ate a pear", "ear", WRONG),
        ("not Paris but Rome", "Paris", WRONG),
        ("not Paris but Rome", "Rome", RIGHT),
        ("Paris, not Rome", "Rome", WRONG),
        ("Not only Paris", "Paris", RIGHT),
        ("I don't believe Paris is", "Paris", WRONG),
        ("It is Paris.", "Paris", RIGHT),
        ("The answer: **PARIS**!", "Paris", RIGHT),
        ("Washington, D.C. is", "Washington DC", RIGHT),
        ("180", "18", WRONG),
        ("18.5", "18", WRONG),
        ("-5", "5", WRONG),
        ("the total is 1,080", "1080", RIGHT),
        ("vitamin A is", "vitamin A", RIGHT),
        ("vitamin C", "vitamin A", WRONG),
        ("I use C++", "C", WRONG),
        ("答案是巴黎。", "巴黎", RIGHT),
        ("São Paulo", "Sa\u0303o Paulo", RIGHT),
    ],
)
def test_a_name_is_found_as_whole_words(reply, gold, verdict):
    assert fuzzy_match(ScorerInput(reply, gold))["correct"] is verdict


def test_any_of_several_answers_will_do():
    assert fuzzy_match(ScorerInput("Peking", "Beijing", {"correct_answers": ["Beijing", "Peking"]}))["correct"]
    assert exact_match(ScorerInput("Peking", ["Beijing", "Peking"]))["correct"]
    assert not fuzzy_match(ScorerInput("Shanghai", ["Beijing", "Peking"]))["correct"]


@pytest.mark.parametrize(
    ("reply", "gold", "verdict"),
    [
        ("", "the", WRONG),
        ("", "", WRONG),
        ("the", "The", RIGHT),
        ("The Paris.", "paris", RIGHT),
        ("-5", "5", WRONG),
        ("−5", "-5", RIGHT),
        ("-$5", "5", WRONG),
        ("3.5", "35", WRONG),
        ("1,5", "15", WRONG),
        ("1,500", "1500", RIGHT),
        ("42.00", "42", RIGHT),
        ("42", 42, RIGHT),
        ("007", "7", WRONG),
        ("10²", "102", WRONG),
        ("C++", "C", WRONG),
        ("Vitamin A", "vitamin", WRONG),
        ("**Paris**.", "Paris", RIGHT),
        ("\\boxed{\\text{Paris}}", "Paris", RIGHT),
        ("Paris, France", "Paris", WRONG),
    ],
)
def test_an_exact_answer_differs_in_nothing_that_counts(reply, gold, verdict):
    assert exact_match(ScorerInput(reply, gold))["correct"] is verdict


@pytest.mark.parametrize(
    ("reply", "gold", "verdict"),
    [
        ("Answer: 42.00", "42", RIGHT),
        ("Answer: **42**", "42", RIGHT),
        ("Answer: 42 apples", "42", RIGHT),
        ("Answer: 42 or 43", "42", WRONG),
        ("Answer: $\\boxed{5}$", "5", RIGHT),
        ("Let me think.\nParis", "Paris", RIGHT),
        ("Answer: Paris. I hope this helps.", "Paris", RIGHT),
        ("Answer: St. Louis. Bye.", "St. Louis", RIGHT),
        ("Answer: Rome\nNo. Answer: Paris", "Paris", RIGHT),
        ("Answer: Rome\nNo. Answer: Paris", "Rome", WRONG),
        ("Answer:\nParis", "Paris", RIGHT),
        ("", "0", WRONG),
    ],
)
def test_the_last_stated_answer_is_compared(reply, gold, verdict):
    assert answer_line(ScorerInput(reply, gold))["correct"] is verdict


def test_an_extraction_tells_what_it_took_from_where_and_by_which_rule():
    reply = "First 3, then 4.\nThe answer is **$1,080**."
    found = extract_number(reply)
    assert (found.text, found.rule, found.value) == ("$1,080", "answer", 1080)
    assert reply[found.start : found.end] == "$1,080"


def test_a_reply_without_an_answer_says_which_kind_it_is():
    assert numeric_match(ScorerInput(" \u200b\n", 1))["failure_category"] == "empty_response"
    assert numeric_match(ScorerInput("no idea", 1))["failure_category"] == "no_answer"
    assert multichoice_regex(ScorerInput("no idea", "A"))["failure_category"] == "no_answer"
    assert "failure_category" not in numeric_match(ScorerInput("2", 1))


def test_a_pattern_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no regular expression"):
        answer_line(ScorerInput("x", "x"), "(")
