"""`scan_log`: the records of a log, in the memory of one chunk, decoding only the fields asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from nel.core.contract import Record
from nel.core.errors import RecordError

_READ_CHUNK = 1 << 20


def scan_log[T: msgspec.Struct](
    path: Path | str, type_: type[T], *, problems: list[str] | None = None
) -> Iterator[tuple[int, int, T]]:
    """Yields `(offset, length without newline, record)` of each whole line of a log, in memory of one chunk.

    `type_` needs only the fields asked for and carries the record's tag; a `Record` also lifts older versions. A line
    that cannot be decoded is skipped and described in `problems` as `file:line: why`; a torn tail is not yielded; a
    missing file has no lines. Raises `RecordError` for another schema or a newer version.
    """
    reader = _LineReader(path, type_)
    number = offset = 0
    parts: list[bytes] = []
    for chunk in _read_chunks(path):
        parts.append(chunk)
        if b"\n" not in chunk:
            continue
        buffer = b"".join(parts)
        start = 0
        while (stop := buffer.find(b"\n", start)) >= 0:
            number += 1
            try:
                yield offset + start, stop - start, reader.read(buffer[start:stop], number)
            except _DamagedLineError as damage:
                if problems is not None:
                    problems.append(f"{path}:{number}: {damage}")
            start = stop + 1
        offset += start
        parts = [buffer[start:]]


def _read_chunks(path: Path | str) -> Iterator[bytes]:
    try:
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(_READ_CHUNK):
                yield chunk
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordError(f"{path}: cannot read the log: {error.strerror or error}") from error


class _DamagedLineError(Exception):
    """Why a whole line cannot be decoded although it is not another schema's."""


class _LineReader[T: msgspec.Struct]:
    """Decodes lines of one schema, telling a damaged line (skipped) from a foreign one (refused)."""

    def __init__(self, path: Path | str, type_: type[T]) -> None:
        tag = type_.__struct_config__.tag
        if not isinstance(tag, str) or "/" not in tag:
            raise TypeError(f"{type_.__name__} has no tag like 'nel.attempt/1' to tell its lines from others")
        self._path = path
        self._type = type_
        self._tag = tag
        self._prefix = b'{"schema":"' + tag.encode() + b'"'
        self._decode = msgspec.json.Decoder(type_).decode

    def read(self, line: bytes, number: int) -> T:
        try:
            if line.startswith(self._prefix):
                return self._decode(line)
            return self._read_other(line, number)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _DamagedLineError(str(error)) from None

    def _read_other(self, line: bytes, number: int) -> T:
        """A line whose tag stands elsewhere, is older, or is not there."""
        value = msgspec.json.decode(line)
        if not isinstance(value, dict):
            raise _DamagedLineError(f"expected an object, got {type(value).__name__}")
        if value.get("schema") == self._tag:
            return self._decode(line)
        if issubclass(self._type, Record):
            try:
                return self._type.from_dict(value)
            except RecordError as error:
                raise RecordError(f"{self._path}:{number}: {error.message}", hint=error.hint) from None
        raise RecordError(f"{self._path}:{number}: schema {value.get('schema')!r} is not {self._tag}")
