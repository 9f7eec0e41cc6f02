"""`-O key.path[0]=<any YAML value>` changes one value of a config."""

import json

import pytest
from config_texts import MINIMAL, load, refuse
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.config.overrides import apply_overrides
from nel.config.positions import Place, find, node_of, plain, show_path
from nel.core.errors import ConfigError


def override(value, *texts):
    return plain(apply_overrides(node_of(value, Place("c.yaml", 1)), texts))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a=5", {"a": 5, "l": [1, {"b": 2}]}),
        ("a=", {"l": [1, {"b": 2}]}),
        ("a=null", {"l": [1, {"b": 2}]}),
        ("a=''", {"a": "", "l": [1, {"b": 2}]}),
        ("a=no", {"a": "no", "l": [1, {"b": 2}]}),
        ("a=x=y", {"a": "x=y", "l": [1, {"b": 2}]}),
        ("a= spaced out ", {"a": "spaced out", "l": [1, {"b": 2}]}),
        ("a=http://h:80/v1#x", {"a": "http://h:80/v1#x", "l": [1, {"b": 2}]}),
        ("a='# no comment'", {"a": "# no comment", "l": [1, {"b": 2}]}),
        ("a={x: [1, y], z: null}", {"a": {"x": [1, "y"], "z": None}, "l": [1, {"b": 2}]}),
        ("l[0]=x", {"a": 1, "l": ["x", {"b": 2}]}),
        ("l.1.b=x", {"a": 1, "l": [1, {"b": "x"}]}),
        ("l[1].c.d=x", {"a": 1, "l": [1, {"b": 2, "c": {"d": "x"}}]}),
        ("n.x.y=1", {"a": 1, "l": [1, {"b": 2}], "n": {"x": {"y": 1}}}),
        ('"a.b"=1', {"a": 1, "l": [1, {"b": 2}], "a.b": 1}),
        ("l=[]", {"a": 1, "l": []}),
    ],
)
def test_a_value_is_put_in(text, result):
    assert override({"a": 1, "l": [1, {"b": 2}]}, text) == result


def test_later_overrides_see_earlier_ones():
    assert override({}, "a.b=1", "a.c=2", "a.b=null") == {"a": {"c": 2}}


def test_a_number_is_a_key_where_the_value_is_a_map():
    assert override({"m": {"0": "x"}}, "m.0=y") == {"m": {"0": "y"}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "expected key=value"),
        ("=1", "is no path"),
        ("a..b=1", "is no path"),
        ("l[2]=1", "l has 2 items; [2] is out of range"),
        ("l[-1]=1", "is no path"),
        ("l.x=1", "l is a list of 2; write an index"),
        ("a.b=1", "a is a number and has nothing under it"),
        ("a[0]=1", "a is a number"),
        ("new[0]=1", "new is not there, so it has no [0]"),
        ("defaults=[x]", "is read before overrides"),
        ("a={", "not YAML"),
        ("a=*x", "undefined alias"),
        ("a=50 # percent", "lost as a comment"),
        ("a=#1", "lost as a comment"),
        ("a=[1, 2] # x", "lost as a comment"),
        ("a=b: c # x", "lost as a comment"),
    ],
)
def test_what_cannot_be_put_in_is_refused(text, reason):
    with pytest.raises(ConfigError) as caught:
        override({"a": 1, "l": [1, {"b": 2}]}, text)
    assert reason in str(caught.value)
    assert "-O" in str(caught.value)


def test_an_unknown_key_on_the_command_line_is_refused_like_one_in_a_file():
    error = refuse(MINIMAL, overrides=["benchmarks[0].reapeats=3"])
    assert str(error) == "command line -O benchmarks[0].reapeats: unknown key; did you mean `repeats`?"
    assert error.line is None


def test_an_override_may_hold_references_and_variables():
    loaded = load(MINIMAL, overrides=["output.dir=${BASE}/${.services.m.model}"], env={"BASE": "/runs"})
    assert loaded.config.output.dir == "/runs/tiny"


def test_an_override_may_change_a_variable_of_the_config():
    loaded = load("_level: 1\n" + MINIMAL + "    params: {level: '${._level}'}\n", overrides=["_level=3"])
    assert loaded.config.benchmarks[0].params == {"level": 3}


json_values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=30), inner, max_size=4),
    max_leaves=10,
)
keys = st.text(st.characters(exclude_characters='"=', exclude_categories=["C", "Z"]), min_size=1, max_size=5)


@settings(deadline=None, max_examples=80)
@given(st.lists(keys, min_size=1, max_size=3), json_values)
def test_any_yaml_value_arrives_as_it_was_given(path, value):
    key = show_path(tuple(path))
    root = apply_overrides(node_of({}, Place("c.yaml")), [f"{key}={json.dumps(value)}"])
    assert plain(find(root, tuple(path))) == value
