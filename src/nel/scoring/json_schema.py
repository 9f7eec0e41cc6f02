"""JSON in replies: finding it, and checking it against a JSON schema."""

from __future__ import annotations

import functools
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nel.scoring.extract import Extraction
from nel.scoring.sample import ScorerInput
from nel.scoring.verdicts import Verdict, verdict_on

_MAX_FAILURES = 2_000  # places that look like the beginning of JSON and are not
_MAX_VIOLATIONS = 20
_FENCED = re.compile(r"(?m)^[ \t]*(`{3,})[ \t]*(?:json\w*)?[ \t]*\n", re.IGNORECASE)
_OPENING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*[\[\]{"\d\-tfn])""")
_RUN = re.compile(r"[\[{\s]*")


@dataclass(frozen=True, slots=True)
class JsonExtraction:
    """The JSON value that a reply holds, where it stands, and by which rule it was found."""

    value: Any
    start: int
    end: int
    rule: str


def extract_json(text: str) -> JsonExtraction | None:
    """The JSON value that a reply gives: the whole reply, else the last fenced block that is JSON, else the last object
    or array in it. `NaN`, `Infinity` and numbers beyond a float's range are no JSON.
    """
    stripped = text.strip()
    start = len(text) - len(text.lstrip())
    whole = _decoded(stripped, 0)
    if whole is not None and whole[1] == len(stripped):
        return JsonExtraction(whole[0], start, start + whole[1], "whole reply")
    for fence in list(_FENCED.finditer(text))[-64:][::-1]:
        inside = _decoded(text, _skip_space(text, fence.end()))
        if inside is not None and text.startswith("```", _skip_space(text, inside[1])):
            return JsonExtraction(inside[0], fence.end(), inside[1], "fenced block")
    return next(iter(deque(_values(text), maxlen=1)), None)


def _skip_space(text: str, position: int) -> int:
    match = re.compile(r"\s*").match(text, position)
    return match.end() if match else position


def _values(text: str) -> Iterator[JsonExtraction]:
    """The outermost objects and arrays, from left to right."""
    position = failures = 0
    while opening := _OPENING.search(text, position):
        decoded = _decoded(text, opening.start())
        if decoded is not None:
            yield JsonExtraction(decoded[0], opening.start(), decoded[1], "last value")
            position = decoded[1]
            continue
        failures += 1
        if failures > _MAX_FAILURES:
            return
        run = _RUN.match(text, opening.start())
        deep = run is not None and run.end() - opening.start() > 500
        position = run.end() - 1 if deep and run else opening.start() + 1


def _decoded(text: str, start: int) -> tuple[Any, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError, StopIteration):
        return None
    return value, end


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is beyond a float's range")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def validate_json_schema(value: Any, schema: Mapping[str, Any] | bool) -> list[str]:
    """What of `value` breaks `schema`, each with its place (`$.items[3].id: ...`); empty where nothing does.

    Every keyword of the schema's draft counts (2020-12 where it names none), `format` included; a reference to another
    host is never fetched. `ValueError` where the schema itself is broken.
    """
    import jsonschema
    from referencing.exceptions import Unresolvable

    try:
        validator = _validator(json.dumps(schema, sort_keys=True, allow_nan=False))
        violations = []
        for error in validator.iter_errors(value):
            violations.append(f"{error.json_path}: {_short(error.message)}")
            if len(violations) == _MAX_VIOLATIONS:
                break
    except jsonschema.SchemaError as error:
        raise ValueError(f"the schema is broken at {error.json_path}: {_short(error.message)}") from None
    except Unresolvable as error:
        raise ValueError(f"the schema refers to {error.ref!r}, which it does not hold; nothing is fetched") from None
    except RecursionError:
        return ["$: nested too deeply to be checked"]
    return violations


def _short(message: str) -> str:
    return message if len(message) <= 300 else message[:299] + "…"


@functools.lru_cache(maxsize=64)
def _validator(schema_json: str) -> Any:
    import jsonschema
    import jsonschema_specifications  # type: ignore[import-untyped]

    schema = json.loads(schema_json)
    draft = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    if isinstance(schema, dict) and "$schema" in schema and draft.META_SCHEMA.get("$schema") is None:
        raise ValueError(f"the schema's draft {schema['$schema']!r} is not known")
    draft.check_schema(schema)
    checked = jsonschema.validators.extend(draft, {"uniqueItems": _unique_items})  # type: ignore[no-untyped-call]
    registry: Any = jsonschema_specifications.REGISTRY
    return checked(schema, registry=registry, format_checker=_format_checker())


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[Any]:
    """`uniqueItems` in linear time; the library compares every pair."""
    import jsonschema

    del schema
    if not wanted or not validator.is_type(instance, "array"):
        return
    seen: set[str] = set()
    for item in instance:
        form = json.dumps(_canonical(item), sort_keys=True)
        if form in seen:
            yield jsonschema.ValidationError(f"{_short(form)} occurs twice")
            return
        seen.add(form)


def _canonical(value: Any) -> Any:
    """`1` and `1.0` as one value; `true` stays apart from both."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    return value


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_DATE = r"\d{4}-\d{2}-\d{2}"
_ESCAPED = r"%[0-9A-Fa-f]{2}"
_URI_CHARACTERS = rf"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|{_ESCAPED})"
_IRI_CHARACTERS = rf"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=\u00a0-\U0010ffff]|{_ESCAPED})"
_DURATION_TIME = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_FORMATS = {
    "time": _TIME,
    "duration": rf"P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:{_DURATION_TIME})?|{_DURATION_TIME})",
    "email": rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(?:\.{_LABEL})*",
    "idn-email": r"[^\s@]{1,64}@[^\s@.]+(?:\.[^\s@.]+)*",
    "hostname": rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*",
    "idn-hostname": r"(?=.{1,253}\Z)[^\s.@/:]{1,63}(?:\.[^\s.@/:]{1,63})*",
    "uri": rf"[A-Za-z][A-Za-z0-9+.-]*:{_URI_CHARACTERS}*",
    "uri-reference": rf"{_URI_CHARACTERS}*",
    "iri": rf"[A-Za-z][A-Za-z0-9+.-]*:{_IRI_CHARACTERS}*",
    "iri-reference": rf"{_IRI_CHARACTERS}*",
    "uri-template": r"""(?:[^{}\s"'<>\\^`|%]|%[0-9A-Fa-f]{2}|\{[^{}\s]+\})*""",
    "json-pointer": r"(?:/(?:[^~/]|~[01])*)*",
    "relative-json-pointer": r"(?:0|[1-9]\d*)(?:#|(?:/(?:[^~/]|~[01])*)*)",
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
}


@functools.cache
def _format_checker() -> Any:
    """Checks for every format of the specification; the library has half of them only beside further packages."""
    import ipaddress
    from datetime import date

    import jsonschema

    def day(text: str) -> bool:
        return re.fullmatch(_DATE, text) is not None and date.fromisoformat(text) is not None

    def moment(text: str) -> bool:
        return text[10:11] in {"T", "t"} and day(text[:10]) and re.fullmatch(_TIME, text[11:]) is not None

    checks: dict[str, Callable[[str], Any]] = {
        "date": day,
        "date-time": moment,
        "ipv4": ipaddress.IPv4Address,
        "ipv6": lambda text: "%" not in text and ipaddress.IPv6Address(text),
        "regex": lambda text: re.compile(text) is not None,
    }
    for name, pattern in _FORMATS.items():
        checks[name] = re.compile(pattern).fullmatch
    checker = jsonschema.FormatChecker(formats=())
    for name, check in checks.items():
        checker.checks(name, raises=(ValueError, re.error, OverflowError, RecursionError))(_of_strings(check))
    return checker


def _of_strings(check: Callable[[str], Any]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or bool(check(value))


def json_schema_match(sample: ScorerInput, schema: Mapping[str, Any] | bool | None = None) -> Verdict:
    """Whether the reply holds JSON that satisfies a schema: the argument, else the row's `schema`, else its target.

    The first violations are told. `TypeError` where there is no schema, `ValueError` where it is broken.
    """
    wanted = schema if schema is not None else sample.metadata.get("schema", sample.target)
    if isinstance(wanted, str):
        wanted = json.loads(wanted)
    if not isinstance(wanted, Mapping | bool):
        raise TypeError(f"the JSON schema is {wanted!r}; a mapping is expected")
    validate_json_schema(None, wanted)  # a broken schema is told even where the reply holds no JSON
    found = extract_json(sample.response)
    if found is None:
        return verdict_on("json_schema_match", sample, False)
    taken = Extraction(sample.response[found.start : found.end], found.start, found.end, found.rule)
    violations = validate_json_schema(found.value, wanted)
    return verdict_on("json_schema_match", sample, not violations, found=taken, violations=violations)
