"""`${.a.b}` refers to another value of the same config."""

import pytest
from config_texts import minimal, refuse
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.config.positions import Place, node_of, plain
from nel.config.references import resolve_references
from nel.core.errors import ConfigError


def resolve(value):
    return plain(resolve_references(node_of(value, Place("c.yaml", 1))))


@pytest.mark.parametrize("value", [5, 0.5, True, None, "text", [1, {"a": 2}], {"a": [1]}])
def test_a_whole_reference_keeps_the_type(value):
    assert resolve({"a": {"b": value}, "x": "${.a.b}"})["x"] == value
    assert type(resolve({"a": {"b": value}, "x": "${.a.b}"})["x"]) is type(value)


def test_inside_a_text_a_value_becomes_text():
    value = {"n": 5, "on": True, "f": 1e3, "s": "s", "x": "${.n}-${.on}-${.f}-${.s}"}
    assert resolve(value)["x"] == "5-true-1000.0-s"


def test_references_lead_through_lists_quoted_keys_and_other_references():
    value = {
        "a": {"gpt-4.1": [{"url": "u"}]},
        "b": '${.a."gpt-4.1"[0].url}',
        "c": "${.b}",
        "d": "${.a}",
        "e": '${.d."gpt-4.1".0.url}',
    }
    resolved = resolve(value)
    assert (resolved["b"], resolved["c"], resolved["e"]) == ("u", "u", "u")
    assert resolved["d"] == {"gpt-4.1": [{"url": "u"}]}


def test_a_literal_is_left_alone():
    assert resolve({"a": 1, "x": "$${.a} and ${.a}"})["x"] == "$${.a} and 1"


def test_a_default_of_a_variable_may_hold_a_reference():
    assert resolve({"a": "x", "b": "${VAR:-${.a}}"})["b"] == "${VAR:-x}"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"abc": 1, "x": "${.abd}"}, "there is no abd\nDid you mean 'abc'?"),
        ({"a": {"b": 1}, "x": "${.a.c}"}, "there is no a.c"),
        ({"a": [1], "x": "${.a[1]}"}, "has 1 items; [1] is out of range"),
        ({"a": [1], "x": "${.a.b}"}, "write an index"),
        ({"a": 1, "x": "${.a.b}"}, "is a number and has nothing under it"),
        ({"a": {"b": 1}, "x": "v ${.a}"}, "is a map or list, which is no part of a text"),
        ({"a": None, "x": "v ${.a}"}, "is null, which is no part of a text"),
        ({"x": "${.}"}, "is no path"),
        ({"a": "${.b}", "b": "${.a}"}, "circle: a -> b -> a"),
        ({"a": "${.a}"}, "circle: a -> a"),
        ({"a": {"b": "${.a}"}}, "holds this reference itself"),
        ({"a": {"b": "${.c}"}, "c": "${.a}"}, "circle"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_with_its_line(value, reason):
    with pytest.raises(ConfigError) as caught:
        resolve(value)
    assert reason in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("c.yaml", 1)


def test_the_error_names_the_line_of_the_reference():
    assert str(refuse(minimal("output:\n  dir: runs/${.services.mm.model}\n"))).startswith(
        "config:10: output.dir: ${.services.mm.model}: there is no services.mm"
    )


@settings(deadline=None, max_examples=25)
@given(st.recursive(st.integers() | st.booleans() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_without_references_nothing_changes(value):
    assert resolve(value) == value
