"""JSON in replies: found where it stands, refused where it is none, checked by every keyword."""

import json
import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nel.scoring import ScorerInput, extract_json, json_schema_match, validate_json_schema

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("reply", "value", "rule"),
    [
        ('{"a": 1}', {"a": 1}, "whole reply"),
        ("[1, 2]", [1, 2], "whole reply"),
        ('"text"', "text", "whole reply"),
        ('Here it is:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}, "fenced block"),
        ('```\n{"a": 1}\n```\n\nor better\n\n```json\n{"a": 2}\n```', {"a": 2}, "fenced block"),
        ('First {"a": 1}, then {"a": {"b": 2}}.', {"a": {"b": 2}}, "last value"),
        ('Use {braces} like so: {"a": "}"}', {"a": "}"}, "last value"),
        ('a set {1, 2} and [0, "x"] here', [0, "x"], "last value"),
    ],
)
def test_json_is_found(reply, value, rule):
    found = extract_json(reply)
    assert (found.value, found.rule) == (value, rule)


@pytest.mark.parametrize(
    "reply", ["", "none here", "NaN", '{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', "{'a': 1}", '{"a": 1']
)
def test_what_is_no_json_is_not_found(reply):
    found = extract_json(reply)
    assert found is None or not isinstance(found.value, dict | float)


@settings(deadline=None, max_examples=60)
@given(
    VALUES.filter(lambda value: isinstance(value, dict | list)),
    st.sampled_from(["{}", "```json\n{}\n```", "So:\n\n{}\n", "ok {} ok"]),
)
def test_every_json_value_is_found_whatever_surrounds_it(value, frame):
    assert extract_json(frame.replace("{}", json.dumps(value))).value == value


@pytest.mark.parametrize("piece", ["{", "[", '{"a":', "[[", '{"', "[1,", "{}", "```json\n", "\\", '"'])
def test_a_megabyte_of_brackets_is_read_in_bounded_time(piece):
    begin = time.process_time()
    extract_json(piece * (1_000_000 // len(piece)))
    assert time.process_time() - begin < 3


SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
        "when": {"type": "string", "format": "date-time"},
    },
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "violations"),
    [
        ({"id": 1}, 0),
        ({"id": 1, "tags": ["a", "b"], "when": "2026-01-02T03:04:05Z"}, 0),
        ({}, 1),
        ({"id": 0, "more": 1}, 2),
        ({"id": 1.5}, 1),
        ({"id": True}, 1),
        ({"id": 1, "tags": ["a", "a"]}, 1),
        ({"id": 1, "when": "2026-13-02T03:04:05Z"}, 1),
        ({"id": 1, "when": "yesterday"}, 1),
        ([], 1),
    ],
)
def test_each_violation_is_told(value, violations):
    assert len(validate_json_schema(value, SCHEMA)) == violations


def test_a_violation_names_its_place():
    assert validate_json_schema({"id": 1, "tags": ["a", 2]}, SCHEMA)[0].startswith("$.tags[1]: ")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("time", "10:00:00Z", "25:00:00Z"),
        ("duration", "P1DT2H", "P1H"),
        ("email", "a.b@example.org", "a@@b"),
        ("hostname", "example.org", "-bad-"),
        ("ipv4", "127.0.0.1", "256.1.1.1"),
        ("ipv6", "::1", "1::2::3"),
        ("uri", "https://example.org/a?b#c", "no uri"),
        ("uri-reference", "/a/b", "a b"),
        ("iri", "https://example.org/ä", "no iri"),
        ("uri-template", "/a/{id}", "/a/{id"),
        ("json-pointer", "/a/0", "a"),
        ("relative-json-pointer", "1/a", "/a"),
        ("regex", "a+", "a("),
        ("uuid", "12345678-1234-1234-1234-123456789abc", "1234"),
    ],
)
def test_formats_are_checked(name, good, bad):
    assert validate_json_schema(good, {"format": name}) == []
    assert len(validate_json_schema(bad, {"format": name})) == 1
    assert validate_json_schema(5, {"format": name}) == []


@settings(deadline=None, max_examples=60)
@given(
    VALUES,
    st.sampled_from(
        [
            {"type": "object"},
            {"uniqueItems": True},
            {"items": {"type": "number"}},
            {"minProperties": 1},
            {"not": {"type": "string"}},
            {"enum": [1, "a", None]},
        ]
    ),
)
def test_verdicts_are_those_of_the_reference_library(value, schema):
    assert (validate_json_schema(value, schema) == []) is jsonschema.Draft202012Validator(schema).is_valid(value)


def test_a_reference_to_another_host_is_never_fetched():
    with pytest.raises(ValueError, match="nothing is fetched"):
        validate_json_schema({}, {"$ref": "http://127.0.0.1:9/schema.json"})


def test_a_reference_within_the_schema_is_followed():
    schema = {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}
    assert validate_json_schema([1, 2], schema) == []
    assert len(validate_json_schema([1, "2"], schema)) == 1


def test_a_broken_schema_is_a_fault_of_the_data():
    with pytest.raises(ValueError, match="broken"):
        json_schema_match(ScorerInput("no json", {"type": "objekt"}))
    with pytest.raises(TypeError, match="mapping is expected"):
        json_schema_match(ScorerInput("{}", None))


def test_a_giant_array_is_checked_in_linear_time():
    value = [{"n": number} for number in range(60_000)]
    begin = time.process_time()
    assert validate_json_schema(value, {"uniqueItems": True}) == []
    assert time.process_time() - begin < 5


def test_a_reply_is_judged_by_its_rows_schema():
    verdict = json_schema_match(ScorerInput('```json\n{"id": 0}\n```', None, {"schema": SCHEMA}))
    assert not verdict["correct"]
    assert verdict["violations"] == ["$.id: 0 is less than the minimum of 1"]
    assert json_schema_match(ScorerInput('{"id": 3}', SCHEMA))["correct"]
    assert json_schema_match(ScorerInput("", SCHEMA))["failure_category"] == "empty_response"
