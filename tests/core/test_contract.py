import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.core.contract import Record, canonical_json, decode_json, encode_json
from nel.core.errors import RecordError

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children),
    max_leaves=20,
)  # fmt: skip


class Inner(msgspec.Struct):
    rate: float | None = None


class Thing(Record, tag="test.thing/3"):
    size: int
    note: str | None = None
    inner: Inner | None = None
    free: Any = None

    migrations = {1: lambda old: {**old, "size": old["length"]}, 2: lambda old: {**old, "size": old["size"] * 2}}


def test_a_record_carries_its_schema_first_and_leaves_out_defaults():
    assert Thing(size=1).to_json() == b'{"schema":"test.thing/3","size":1}'
    assert Thing.schema() == ("test.thing", 3)


@given(
    size=st.integers(-(2**63), 2**63 - 1),
    note=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    free=plain,
)
@settings(deadline=None, max_examples=60)
def test_a_record_comes_back_from_its_json_and_its_dict(size, note, free):
    thing = Thing(size=size, note=note, free=free)
    assert Thing.from_json(thing.to_json()) == thing
    assert Thing.from_json(thing.to_json().decode()) == thing
    assert Thing.from_dict(thing.to_dict()) == thing
    assert b"\n" not in thing.to_json()


def test_the_tag_may_stand_last():
    assert Thing.from_json(b'{ "size": 4, "schema": "test.thing/3" }').size == 4


def test_an_older_version_is_lifted_step_by_step():
    assert Thing.from_dict({"schema": "test.thing/1", "length": 5}).size == 10
    assert Thing.from_json(b'{"schema":"test.thing/2","size":5}').size == 10


def test_lifting_leaves_the_callers_dict_alone():
    old = {"schema": "test.thing/2", "size": 5}
    Thing.from_dict(old)
    assert old == {"schema": "test.thing/2", "size": 5}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"size": 1}, "no schema tag; expected test.thing/3"),
        ({"schema": 3, "size": 1}, "no schema tag"),
        ({"schema": "test.thing", "size": 1}, "no schema tag"),
        ({"schema": "other.thing/3", "size": 1}, "'other.thing/3' is not test.thing/3"),
        ({"schema": "test.thing/x", "size": 1}, "'test.thing/x' is not test.thing/3"),
        (
            {"schema": "test.thing/4", "size": 1},
            "written as test.thing/4, this version of nel reads up to test.thing/3",
        ),
        ({"schema": "test.thing/0", "size": 1}, "no migration from test.thing/0"),
        ({"schema": "test.thing/3"}, "missing required field `size`"),
        ({"schema": "test.thing/3", "size": "1"}, r"Expected `int`, got `str` - at `\$.size`"),
        ({"schema": "test.thing/3", "size": 1, "inner": {"rate": "x"}}, r"at `\$.inner.rate`"),
    ],
)
def test_what_is_not_the_record_is_refused_with_the_field_or_the_version(value, message):
    with pytest.raises(RecordError, match=message):
        Thing.from_dict(value)
    with pytest.raises(RecordError, match=message):
        Thing.from_json(encode_json(value))


def test_a_newer_version_says_what_to_do():
    with pytest.raises(RecordError) as caught:
        Thing.from_dict({"schema": "test.thing/4"})
    assert "Use the version of nel that wrote the run" in caught.value.hint


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("build", "place"),
    [
        (lambda number: Thing(size=1, free=number), "free"),
        (lambda number: Thing(size=1, free={"a": [0.0, {"b": number}]}), r"free\.a\.1\.b"),
        (lambda number: Thing(size=1, inner=Inner(rate=number)), r"inner\.rate"),
        (lambda number: {"x": (1.0, number)}, r"x\.1"),
        (lambda number: number, "value"),
    ],
)
def test_a_number_that_is_not_finite_is_refused_on_writing_with_its_place(number, build, place):
    for write in (encode_json, canonical_json):
        with pytest.raises(RecordError, match=f"^{place} is {number}, which JSON cannot hold"):
            write(build(number))


def test_null_and_the_word_null_are_fine():
    assert encode_json({"a": None, "b": "null", "c": [None]}) == b'{"a":null,"b":"null","c":[null]}'


@pytest.mark.parametrize(
    "text", ["", "{", "nul", "NaN", "Infinity", "[1e999]", "{} {}", '{"a":1,}', "'a'", b"\xff", '"\\ud800"']
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(RecordError, match="not JSON"):
        decode_json(text)


@given(plain)
@settings(deadline=None, max_examples=80)
def test_plain_values_come_back_from_both_encodings(value):
    assert decode_json(encode_json(value)) == value
    assert decode_json(canonical_json(value)) == value


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 9), max_size=6), st.randoms())
@settings(deadline=None, max_examples=60)
def test_the_canonical_text_does_not_depend_on_the_order_of_keys(value, randomness):
    items = list(value.items())
    randomness.shuffle(items)
    assert canonical_json({"outer": dict(items)}) == canonical_json({"outer": value})


@pytest.mark.parametrize("text", [b"null", b"3", b'[["schema","t/1"]]', b'"x"'])
def test_json_that_is_no_object_is_refused(text):
    with pytest.raises(RecordError, match="expected an object"):
        Thing.from_json(text)


def test_a_version_that_is_no_plain_number_is_refused():
    with pytest.raises(RecordError, match="is not test"):
        Thing.from_dict({"schema": "test.thing/²", "size": 1})


def test_a_number_that_is_not_finite_is_found_inside_a_set():
    with pytest.raises(RecordError, match="nan"):
        encode_json({"values": {float("nan")}})
