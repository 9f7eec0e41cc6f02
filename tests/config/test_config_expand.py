"""Variables of the environment in texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.config.expand import ExpansionError, escape, expand

ENV = {"A": "x", "B": "${A}", "EMPTY": "", "MY_KEY": "k"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain $A $ {", "plain $A $ {"),
        ("${A}", "x"),
        ("<${A}${A}>", "<xx>"),
        ("${EMPTY}", ""),
        ("${NONE:-d}", "d"),
        ("${NONE:-}", ""),
        ("${A:-d}", "x"),
        ("${EMPTY:-d}", "d"),
        ("${NONE:-${A}!}", "x!"),
        ("${NONE:-${ALSO:-${A}}}", "x"),
        ("${A:-${NONE}}", "x"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$${A}${A}", "${A}x"),
        ("${A}$${A}", "x${A}"),
        ("$$A", "$$A"),
        ("${B}", "${A}"),
        ("{${A}}", "{x}"),
    ],
)
def test_a_variable_is_put_in(text, expanded):
    assert expand(text, ENV) == expanded


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("${NONE}", "environment variable NONE is not set", "${NONE:-...}"),
        ("${MY_KEX}", "MY_KEX is not set", "Did you mean MY_KEY?"),
        ("${}", "neither", "$${"),
        ("${A-b}", "neither", "$${"),
        ("${A%%.*}", "neither", "$${"),
        ("${1}", "neither", "$${"),
        ("${A", "no closing brace", "$${"),
        ("${A:-${B}", "no closing brace", "$${"),
    ],
)
def test_what_cannot_be_put_in_is_refused(text, reason, hint):
    with pytest.raises(ExpansionError) as caught:
        expand(text, ENV)
    assert reason in str(caught.value)
    assert hint in caught.value.hint


pieces = st.lists(st.sampled_from(["$", "{", "}", "${", "$${", "A", ":-", "x"]), max_size=12).map("".join)


@settings(deadline=None, max_examples=200)
@given(pieces | st.text())
def test_an_escaped_text_expands_to_itself(text):
    assert expand(escape(text), ENV) == text


@settings(deadline=None, max_examples=100)
@given(st.text(), st.text(), st.text())
def test_expansion_changes_nothing_around_a_variable(before, value, after):
    text = escape(before) + " ${X} " + escape(after)
    assert expand(text, {"X": value}) == f"{before} {value} {after}"


@settings(deadline=None, max_examples=200)
@given(pieces)
def test_any_text_expands_or_is_refused_with_a_hint(text):
    try:
        result = expand(text, ENV)
    except ExpansionError as error:
        result = error.hint
    assert isinstance(result, str)
