"""A judge's reply is read strictly: a verdict on the scale or a reason, never an exception, never a guess."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nel.core.errors import UsageError
from nel.scoring.judging.parsing import LONGEST, Reading, Unreadable, read_verdict
from nel.scoring.judging.scale import Scale

STARS = Scale(low=1, high=5)
LABELS = Scale.of_labels({"CORRECT": 1, "INCORRECT": 0, "NOT_ATTEMPTED": 0})


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 4}', 4),
        ('```json\n{"reasoning": "ok", "score": 4}\n```', 4),
        ('{"score": "4"}', 4),
        ('{"score": 3.5, "reasoning": "between"}', 3.5),
        ('First I thought {"score": 2}. No: {"score": 4}', 4),
        ('{"a": {"score": 1}} is no verdict, {"score": 4, "parts": {"score": 2}} is', 4),
        ("It deserves four.\nScore: 4", 4),
        ("**Final score: 4/5**", 4),
        ("- Rating: 4 out of 5.", 4),
        ("### Score: **4**", 4),
        ("[[4]]", 4),
        ("My score: [[4]]", 4),
        ('{"score": 4}\nScore: 4', 4),
        ('Broken { "score": \n{"score": 4}', 4),
    ],
)
def test_a_score_that_is_said_explicitly_is_read(reply, score):
    assert read_verdict(reply, STARS) == Reading(score)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        "4",
        "I would give it 4 of 5.",
        "The score is 4.",
        "A solid 4/5",
        "Score: high",
        "Score: 6",
        "Score: 0",
        "Score: 8/10",
        "Score: 4/10",
        "Score: 4 or 5",
        "Score: 4 because it is good",
        "Score: 4\nBut on second thoughts it is worse.",
        '{"score": 9}',
        '{"score": 2} ... {"score": 7}',
        '{"score": true}',
        '{"score": null}',
        '{"score": [4]}',
        '{"score": "four"}',
        '{"score": NaN}',
        '{"score": 1e999}',
        '{"score": 5, "score": 1}',
        '{"score": 2}\nScore: 5',
        '{"points": 4}',
        "Score: ٤",
    ],
)
def test_anything_else_is_unreadable(reply):
    assert isinstance(read_verdict(reply, STARS), Unreadable)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"verdict": "correct"}', "CORRECT"),
        ("Verdict: INCORRECT", "INCORRECT"),
        ("**Grade:** `NOT_ATTEMPTED`", "NOT_ATTEMPTED"),
        ("[[correct]]", "CORRECT"),
        ("It is INCORRECT, as CORRECT would need a date.", None),
        ("CORRECT", None),
        ('{"verdict": "mostly correct"}', None),
        ('{"verdict": "CORRECT"} or {"verdict": "maybe"}', None),
        ('{"verdict": 1}', None),
        ("Verdict: CORRECT or INCORRECT", None),
    ],
)
def test_a_label_is_read_whole_or_not_at_all(reply, label):
    found = read_verdict(reply, LABELS)
    assert (found.label if isinstance(found, Reading) else None) == label


def test_structured_output_is_one_object_and_nothing_else():
    assert read_verdict(' {"reasoning": "r", "score": 2}\n', STARS, whole=True) == Reading(2)
    for reply in ('Well: {"score": 2}', "[2]", "Score: 2", '{"reasoning": "r"}', "2"):
        assert isinstance(read_verdict(reply, STARS, whole=True), Unreadable)


texts = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from(
            [
                '{"score": ',
                "{",
                "}",
                '"',
                "4",
                "9",
                "Score: ",
                "\n",
                "[[",
                "]]",
                "NaN",
                ",",
                ":",
                "é",
                "\0",
                "\ud800",
                "\\",
            ]
        ),
        max_size=40,
    ).map("".join),
)


@settings(deadline=None, max_examples=400)
@given(texts, st.sampled_from([STARS, LABELS, Scale(low=-1, high=1)]), st.booleans())
@example('{"score": ' + "9" * 5000 + "}", STARS, False)
@example("{" * 5000, STARS, False)
@example('{"a":' * 20_000, STARS, True)
def test_any_text_gives_a_verdict_on_the_scale_or_a_reason(text, scale, whole):
    found = read_verdict(text, scale, whole=whole)
    if isinstance(found, Reading):
        assert scale.low <= found.score <= scale.high
        assert 0 <= scale.value(found.score) <= 1
        assert (found.label is None) == (scale.labels is None)
    else:
        assert found.reason


words = st.sampled_from(
    [
        "I",
        "would",
        "give",
        "this",
        "answer",
        "a",
        "score",
        "of",
        "between",
        "and",
        "out",
        "stars",
        "points",
        "because",
        "it",
        "is",
        "right",
        "out",
    ]
)
numbers = st.one_of(st.integers(0, 10).map(str), st.floats(0, 10).map(lambda x: f"{x:.1f}"), st.just("4/5"))


@settings(deadline=None, max_examples=300)
@given(st.lists(st.one_of(words, numbers), min_size=1, max_size=30), st.sampled_from([" ", "\n", ", "]))
def test_prose_with_numbers_in_it_is_no_verdict(parts, between):
    assert isinstance(read_verdict(between.join(parts), STARS), Unreadable)


@settings(deadline=None, max_examples=200)
@given(
    st.floats(1, 5).map(lambda x: round(x, 3)),
    st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=200),
    st.sampled_from(["", "\n", "\n\n", "```", " "]),
)
def test_what_stands_before_a_verdict_does_not_change_it(score, before, after):
    reply = f"{before}\n{json.dumps({'reasoning': before, 'score': score})}{after}"
    assert read_verdict(reply, STARS) == Reading(score)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 20_000,
        ('{"a":[' + "1," * 20) * 2000,
        "{" * LONGEST,
        '{"score":4}' * 9000,
        "Score: " + "4" * 90_000,
        "[[" * 50_000,
        '{"score": 4, "score": 4}' * 4000,
        "x" * 1_000_000,
    ],
)
def test_the_worst_replies_take_no_time(text):
    begin = time.process_time()
    read_verdict(text, STARS)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: Scale(low=5, high=1),
        lambda: Scale(low=0, high=float("inf")),
        lambda: Scale.of_labels({"yes": 1, "no": 1}),
        lambda: Scale.of_labels({}),
        lambda: Scale.of_labels({"yes": 1, "YES ": 0}),
        lambda: Scale(low=0, high=1, labels={"yes": 2.0, "no": 0.0}),
    ],
)
def test_a_scale_that_is_none_is_refused(make):
    with pytest.raises(UsageError):
        make()


def test_a_scale_goes_from_0_to_1():
    assert [STARS.value(score) for score in (1, 3, 5)] == [0, 0.5, 1]
    assert LABELS.schema()["properties"]["verdict"] == {"type": "string", "enum": list(LABELS.labels)}
