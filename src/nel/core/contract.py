"""`Record`: what is written to disk, as typed, strict, versioned JSON.

A record class declares its name and version once: `class Thing(Record, tag="nel.thing/1")`. Its JSON carries
`"schema": "nel.thing/1"`; reading refuses another name and a newer version, and lifts an older one through the
migrations that the class registers. Non-finite numbers are refused on writing, since JSON has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import msgspec

from nel.core.errors import RecordError

Migration = Callable[[dict[str, Any]], dict[str, Any]]

_canonical_encoder = msgspec.json.Encoder(order="sorted")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class Record(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="schema"):
    """A typed record; subclasses are msgspec structs with `tag="nel.<name>/<version>"`."""

    migrations: ClassVar[Mapping[int, Migration]] = {}
    """From a version to a function that lifts the decoded dict to the next one."""

    @classmethod
    def schema(cls) -> tuple[str, int]:
        """Name and version, e.g. `("nel.attempt", 1)`."""
        name, _, version = str(cls.__struct_config__.tag).rpartition("/")
        return name, int(version)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """The record that `value` holds; `RecordError` names the field that is wrong."""
        try:
            return msgspec.convert(_lift(cls, dict(value)), cls)
        except msgspec.ValidationError as error:
            raise RecordError(f"{cls.__name__}: {error}") from None

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """The record that one JSON text holds."""
        raw = data.encode() if isinstance(data, str) else data
        if raw.startswith(b'{"schema":"'):
            try:
                return msgspec.json.decode(raw, type=cls)
            except msgspec.DecodeError:
                pass  # said again below, with the field or the version that is wrong
        value = decode_json(raw)
        if not isinstance(value, dict):
            raise RecordError(f"{cls.__name__}: expected an object, got {type(value).__name__}")
        return cls.from_dict(value)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, with the `schema` tag."""
        return _decoder.decode(self.to_json())  # type: ignore[no-any-return]

    def to_json(self) -> bytes:
        """One line of JSON without its newline; `RecordError` on a number that is not finite."""
        return encode_json(self)


def _lift(cls: type[Record], value: dict[str, Any]) -> dict[str, Any]:
    name, version = cls.schema()
    found = value.get("schema")
    if not isinstance(found, str) or "/" not in found:
        raise RecordError(f"{cls.__name__}: no schema tag; expected {name}/{version}")
    found_name, _, found_version = found.rpartition("/")
    if found_name != name or not (found_version.isascii() and found_version.isdigit()):
        raise RecordError(f"{cls.__name__}: schema {found!r} is not {name}/{version}")
    at = int(found_version)
    if at > version:
        raise RecordError(
            f"{cls.__name__}: written as {found}, this version of nel reads up to {name}/{version}",
            hint="Use the version of nel that wrote the run, or a newer one.",
        )
    while at < version:
        step = cls.migrations.get(at)
        if step is None:
            raise RecordError(f"{cls.__name__}: no migration from {name}/{at}")
        value = step(value)
        at += 1
    value["schema"] = f"{name}/{version}"
    return value


def encode_json(value: Any) -> bytes:
    """Compact JSON of records and plain values; `RecordError` where a number is NaN or infinite."""
    data = _encoder.encode(value)
    # The encoder writes a non-finite number as null, so only a text with a null can hide one.
    if b"null" in data:
        _refuse_nonfinite(value)
    return data


def canonical_json(value: Any) -> bytes:
    """The one JSON text of a value: sorted keys, no spaces; equal values give equal bytes."""
    data = _canonical_encoder.encode(value)
    if b"null" in data:
        _refuse_nonfinite(value)
    return data


def decode_json(data: bytes | str) -> Any:
    """Plain values of one JSON text; NaN, Infinity and trailing text are refused with `RecordError`."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise RecordError(f"not JSON: {error}") from None


def _refuse_nonfinite(value: Any, path: str = "") -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"{path or 'value'} is {value}, which JSON cannot hold")
        return
    children: Iterable[tuple[object, Any]]
    if isinstance(value, msgspec.Struct):
        children = ((name, getattr(value, name)) for name in value.__struct_fields__)
    elif isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, list | tuple | set | frozenset):
        children = enumerate(value)
    else:
        return
    for name, child in children:
        _refuse_nonfinite(child, f"{path}.{name}" if path else str(name))
