"""Answers in many languages and scripts, in reasoning, and wrapped in whatever models wrap them in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.observability.records import ModelResponse
from nel.scoring import ScorerInput, answer_line, extract_number, math_match, multichoice_regex, numeric_match

fast = settings(deadline=None, max_examples=60)

STATEMENTS = {
    "en": ["The answer is {}.", "Answer: {}", "So the final answer is {}"],
    "de": ["Die Antwort ist {}.", "Antwort: {}", "Die richtige Antwort lautet {}."],
    "fr": ["La réponse est {}.", "Réponse : {}", "La réponse finale est : {}"],
    "es": ["La respuesta es {}.", "Respuesta: {}", "La respuesta final es {}"],
    "ru": ["Ответ: {}", "Ответ — {}.", "Правильный ответ: {}"],
    "zh": ["答案是{}。", "答案：{}", "所以答案是：{}"],
    "ja": ["答えは{}です。", "答え：{}"],
    "th": ["คำตอบคือ {}", "คำตอบ: {}"],
    "sw": ["Jibu ni {}.", "Jibu: {}", "Jibu la mwisho ni {}"],
    "bn": ["উত্তর হল {}।", "উত্তর: {}"],
    "te": ["సమాధానం {}.", "సమాధానం: {}"],
}
CASES = [(language, form) for language, forms in STATEMENTS.items() for form in forms]
SCRIPTS = ["0123456789", "０１２３４５６７８９", "০১২৩৪৫৬৭৮৯", "౦౧౨౩౪౫౬౭౮౯", "๐๑๒๓๔๕๖๗๘๙", "٠١٢٣٤٥٦٧٨٩", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"]


@pytest.mark.parametrize(("language", "form"), CASES)
@pytest.mark.parametrize("wrapped", ["{}", "**{}**", "$\\boxed{{{}}}$", "{} €"])
def test_a_stated_number_is_found_in_every_language(language, form, wrapped):
    reply = "7 and 3.\n" + form.format(wrapped.format(18)) + "\n2"
    assert numeric_match(ScorerInput(reply, 18))["correct"]
    assert not numeric_match(ScorerInput(reply, 2))["correct"]


@pytest.mark.parametrize(("language", "form"), CASES)
def test_a_stated_letter_is_found_in_every_language(language, form):
    assert multichoice_regex(ScorerInput(form.format("C"), "C"))["correct"]


@fast
@given(st.integers(-(10**9), 10**9), st.sampled_from(SCRIPTS), st.sampled_from(CASES))
def test_digits_of_every_script_have_their_value(value, digits, case):
    written = str(value).translate(str.maketrans("0123456789", digits))
    assert numeric_match(ScorerInput(case[1].format(written), value))["correct"]


@pytest.mark.parametrize("minus", "−‐‑–﹣－")
def test_every_minus_is_one(minus):
    assert extract_number(f"{minus}5").value == -5
    assert extract_number(f"7{minus}5").value == 5


@pytest.mark.parametrize("currency", ["$", "€", "£", "¥", "₹", "₽", "₩", "฿", "৳", "US$", "\\$"])
def test_currency_does_not_count(currency):
    assert numeric_match(ScorerInput(f"The answer is {currency}1,080.50", "1080.5"))["correct"]


def with_reasoning(text, reasoning):
    return ScorerInput(text, 18, model_response=ModelResponse(content=text, reasoning_content=reasoning))


def test_the_final_text_comes_before_the_reasoning():
    verdict = numeric_match(with_reasoning("The answer is 18.", "The answer is 5."))
    assert verdict["correct"]
    assert "from" not in verdict


def test_an_answer_that_only_the_reasoning_states_is_used_and_flagged():
    verdict = numeric_match(with_reasoning("", "I add them. The answer is 18."))
    assert (verdict["correct"], verdict["from"]) == (True, "reasoning")


def test_a_number_that_the_reasoning_merely_mentions_is_none():
    verdict = numeric_match(with_reasoning("", "Perhaps 18"))
    assert not verdict["correct"]
    assert verdict["failure_category"] == "empty_response"


@pytest.mark.parametrize(
    ("reply", "correct", "source"),
    [
        ("<think>The answer is 5.</think>The answer is 18.", True, None),
        ("The answer is 5.</think>\n\n18", True, None),
        ("<think>The answer is 18.</think>", True, "reasoning"),
        ("<think>The answer is 18. But wait", True, "reasoning"),
        ("<think>18</think>I cannot say.", False, None),
    ],
)
def test_reasoning_inside_the_text_is_told_apart(reply, correct, source):
    verdict = numeric_match(ScorerInput(reply, 18))
    assert (verdict["correct"], verdict.get("from")) == (correct, source)
    if source is None and correct:
        assert reply[slice(*verdict["span"])] == "18"


WRAPPERS = ["{}", "**{}**", "$\\boxed{{{}}}$", "\\boxed{{{}}}", "${}$", "\\( {} \\)", "  {}\n\n", "`{}`", "$${}$$"]
FORMS = ["{}", "The answer is {}.", "Answer: {}", "**Final answer**\n\n{}", "So, {} it is.\n\n#### 1\n\nAnswer: {}"]
TAILS = ["", "\n", "\n\nI hope this helps!", " "]
MATH = ["18", "-3", "0.25", r"\frac{1}{2}", r"2\sqrt{3}", "(1, 3)", "x+1", r"\{1, 2\}", "75\\%", r"\pi", "1,000"]


@fast
@given(
    st.sampled_from(MATH),
    st.sampled_from(MATH),
    st.sampled_from(WRAPPERS),
    st.sampled_from(FORMS[1:]),
    st.sampled_from(TAILS),
)
def test_wrapping_a_mathematical_answer_keeps_its_verdict(answer, gold, wrapper, form, tail):
    reply = form.replace("{}", wrapper.format(answer).strip()) + tail
    assert math_match(ScorerInput(reply, gold))["correct"] is (answer == gold)


@fast
@given(st.sampled_from(MATH), st.sampled_from(WRAPPERS), st.sampled_from(TAILS[:2]))
def test_a_mathematical_answer_may_be_the_whole_reply(answer, wrapper, tail):
    assert math_match(ScorerInput(wrapper.format(answer) + tail, answer))["correct"]


@fast
@given(
    st.sampled_from(["", " ", "\n\u200b", "I do not know.", "Sorry", "Let me think about it", "?", "$$", "\\boxed{}"]),
    st.sampled_from(MATH),
)
def test_an_empty_or_unrelated_reply_is_never_correct(reply, gold):
    assert not math_match(ScorerInput(reply, gold))["correct"]
    assert not answer_line(ScorerInput(reply, gold))["correct"]
