"""Mathematical answers: equal when they are, whatever their notation; never equal by rounding."""

import pytest

from nel.scoring import ScorerInput
from nel.scoring.math_equality import GoldError, check_gold, extract_math, math_equal, math_match

EQUAL = [
    (r"\frac{1}{4}", "0.25"),
    ("x/2", r"\frac{x}{2}"),
    ("1,000", "1000"),
    (r"1\,000", "1000"),
    ("1{,}000", "1000"),
    ("12,345,678", "12345678"),
    (r"\text{(C)}", "C"),
    ("A", "A"),
    (r"\frac12", r"\frac{1}{2}"),
    (r"\dfrac{3}{6}", "1/2"),
    (r"\boxed{5}", "5"),
    ("$5$", "5"),
    ("1 < x < 3", "(1,3)"),
    (r"x \in (1, 3)", "(1,3)"),
    (r"x \ge 3", r"[3,\infty)"),
    ("x > 3 or x < -1", r"(-\infty,-1)\cup(3,\infty)"),
    (r"(3,\infty) \cup (-\infty, -1)", r"(-\infty,-1)\cup(3,\infty)"),
    ("2, 3", "3, 2"),
    (r"\{3, 2\}", "2, 3"),
    ("2 and 3", "3, 2"),
    (r"2 \text{ or } 3", "2,3"),
    ("2x+4y-3=0", "y=-x/2+3/4"),
    ("y = -1/2*x + 3/4", "$2x+4y-3=0$"),
    ("e^{16}-1", "e^{16} - 1"),
    ("-1 + e^16", "e^{16}-1"),
    (r"50\%", "0.5"),
    ("50%", "50"),
    ("2 1/2", "2.5"),
    (r"2\frac{1}{2}", r"\frac{5}{2}"),
    ("2½", "2.5"),
    ("−5", "-5"),
    ("５", "5"),
    (r"5 \text{ cm}", "5"),
    (r"5\text{ cm}^2", "5"),
    ("18 dollars", r"\$18"),
    (r"90^\circ", "90"),
    (r"\sqrt{12}", r"2\sqrt{3}"),
    (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
    ("sqrt(8)", r"2\sqrt2"),
    (r"\frac{\sqrt{6}}{\sqrt{3}}", r"\sqrt 2"),
    (r"(1+i)^2", "2i"),
    (r"(x+1)^2", "x^2+2x+1"),
    (r"\frac{x^2-1}{x-1}", "x+1"),
    (r"10!", "3628800"),
    (r"\binom{10}{3}", "120"),
    (r"2 \cdot 3", "6"),
    (r"\pm 2", "2, -2"),
    ("x = 5", "5"),
    ("f(x) = x^2", "x^2"),
    ("(1, 2)", r"\left( 1, \frac{4}{2} \right)"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix}1&2\\3&\frac{8}{2}\end{bmatrix}"),
    ("[[1,2],[3,4]]", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    (r"\text{Monday}", "monday"),
    ("1:2", "1 : 2"),
    (r"\sqrt[3]{27}", "3"),
    (r"3^{-2}", r"\frac19"),
    (r"\frac{3\pi}{2}", "1.5π"),
    ("x_1 + x_2", "x_{2}+x_{1}"),
    ("", ""),
][:-1]

UNEQUAL = [
    (r"\frac{1}{2006!}", r"\frac{1}{2004!}"),
    (r"\frac{1}{2^{98}}", r"\frac{1}{2^{99}}"),
    ("n=1, 2, 3", "n=2, 3, 4"),
    ("D = (0, 1.5)", "D = (0, 1)"),
    (r"21, 36, \text{ and } 82", r"19, 46, \text{ and } 82"),
    (r"\frac{1}{3 \cdot 2^{2006}}", r"\frac{2^{2005}+1}{3 \cdot 2^{2006}}"),
    (r"1 + \frac{1}{\mathrm{e}}", r"1 - \frac{1}{\mathrm{e}}"),
    ("2021", r"\pm 2021"),
    ("1:00", "12:00"),
    (r"1, 3, 5, \ldots, 2n-1", r"1, 2, \ldots, n"),
    (r"1:4:9:\ldots", r"1:2:3:\ldots"),
    ("3x+4y+14=0", "3*x-1*y+13=0"),
    ("0.333", r"\frac{1}{3}"),
    ("1.414", r"\sqrt{2}"),
    ("3.14159", r"\pi"),
    ("(2, 1)", "(1, 2)"),
    ("[1, 3]", "(1, 3)"),
    ("1", "10"),
    ("10", "100"),
    ("2, 2, 3", "2, 3"),
    ("2", "2, 3"),
    ("x+1", "x-1"),
    ("5 cm", "5 mm"),
    ("", "0"),
    ("no idea", "0"),
    ("Paris", "A"),
    ("-5", "5"),
    ("x", "y"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
    ("9" * 1_000_00, "9"),
    ("2^{2^{2^{2^{2^{2^{2}}}}}}", "4"),
    ("9**9**9**9", "4"),
    ("{" * 5000, "4"),
    ("1/0", "0"),
    ("\ud800", "4"),
    ("\0", "4"),
    ("\u202e5\u202c2", "25"),
]

BY_ALGEBRA = [
    (r"\sin 2x", r"2\sin x\cos x", True),
    (r"\log_2 8", "3", True),
    (r"\sqrt[3]{2}", "2^{1/3}", True),
    (r"\sqrt{x^2+2x+1}", "|x+1|", True),
    (r"\sqrt{x^2}", "x", False),
    (r"\begin{pmatrix}\sin x\\2\end{pmatrix}", r"\begin{bmatrix}\sin x\\\frac{4}{2}\end{bmatrix}", True),
    (r"\cos x", r"\sin x", False),
    (r"\ln 2", r"\ln 2.0000001", False),
    (r"F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2}", r"F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}", False),
    (r"\{\sqrt[3]{2}, 1\}", r"\{1, 2^{1/3}\}", True),
    (r"\frac{x^2}{4}+\frac{y^2}{3}=1", r"3x^2+4y^2=12", True),
    (r"\frac{x^2}{16}+\frac{y^2}{12}=1", r"\frac{x^2}{4}+\frac{y^2}{3}=1", False),
]


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_notations_of_one_value_are_equal(answer, gold):
    assert math_equal(answer, gold)
    assert math_equal(gold, answer)


@pytest.mark.parametrize(("answer", "gold"), UNEQUAL)
def test_different_values_are_never_equal(answer, gold):
    assert not math_equal(answer, gold)
    if answer.strip() and len(answer) < 5000:
        assert not math_equal(gold, answer)


@pytest.mark.parametrize(("answer", "gold", "equal"), BY_ALGEBRA)
def test_what_exact_arithmetic_does_not_cover_goes_to_computer_algebra(answer, gold, equal):
    assert math_equal(answer, gold, timeout=30) is equal


def test_the_order_of_a_list_counts_where_the_task_says_so():
    assert math_equal("2, 3", "3, 2")
    assert not math_equal("2, 3", "3, 2", ordered=True)
    assert math_equal("2, 3", "2, 3", ordered=True)
    assert math_equal(r"\{2, 3\}", r"\{3, 2\}", ordered=True)


@pytest.mark.parametrize(
    "gold", ["A", "5", r"\frac{1}{2}", "(1,3)", r"\sin x", "even", r"\begin{pmatrix}1\\2\end{pmatrix}"]
)
def test_a_gold_answer_that_can_be_read_passes(gold):
    check_gold(gold)


@pytest.mark.parametrize("gold", ["", "  ", r"\frac{", r"]]\right", r"\unknowncommand{{"])
def test_an_unreadable_gold_answer_is_refused_when_data_are_loaded(gold):
    with pytest.raises(GoldError):
        check_gold(gold)


@pytest.mark.parametrize(
    ("reply", "answer", "rule"),
    [
        (r"The answer is $\frac12$.", r"\frac12", "answer"),
        (r"Answer: $\boxed{5}$", "5", "boxed"),
        (r"So \boxed{2} and \boxed{3}.", "2, 3", "boxed"),
        (r"Try \boxed{1}. No, it is \boxed{7}", "7", "boxed"),
        (r"Answer: \[ x = 5 \]", "x = 5", "answer"),
        (r"We get $x=3$. Therefore the area is $9\pi$.", r"9\pi", "last formula"),
        (r"\frac{1}{4}", r"\frac{1}{4}", "last line"),
        ("So all in all she has 5 apples left", "5", "last number"),
        ("**Final answer**\n\n$\\sqrt{2}$", r"\sqrt{2}", "answer"),
        ("#### 7", "7", "hashes"),
    ],
)
def test_the_mathematical_answer_of_a_reply_is_found(reply, answer, rule):
    found = extract_math(reply)
    assert (found.text, found.rule) == (answer, rule)


def test_a_verdict_says_what_was_taken():
    verdict = math_match(ScorerInput(r"I find $\frac{2}{4}$, so \boxed{0.5}.", r"\frac{1}{2}"))
    assert verdict["correct"]
    assert (verdict["extracted"], verdict["rule"]) == ("0.5", "boxed")
    assert math_match(ScorerInput("", "5"))["failure_category"] == "empty_response"
    assert math_match(ScorerInput("5", ["4", "5"]))["correct"]
