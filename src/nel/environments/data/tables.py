"""CSV, TSV, JSON and Parquet files as data sources."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from nel.core.digest import digest_file
from nel.core.errors import DataError
from nel.environments.data.source import FileSource, Row, SpooledSource, StoredRows, hex_digest

_MAX_FIELD = 2**31 - 1


class CsvSource(FileSource):
    """A table with a header; quoted fields may hold separators and line ends. Every value is text."""

    def __init__(self, path: Path, name: str, *, delimiter: str) -> None:
        super().__init__(path, name)
        self._delimiter = delimiter
        self._header: list[str] = []

    def _index(self, fd: int, rows: StoredRows) -> None:
        if csv.field_size_limit() < _MAX_FIELD:
            csv.field_size_limit(_MAX_FIELD)
        with open(fd, "rb", closefd=False) as file:
            file.seek(0)
            lines = _Lines(file)
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            while True:
                start, first_line = lines.position, reader.line_num + 1
                try:
                    fields = next(reader, None)
                except (csv.Error, UnicodeDecodeError) as error:
                    raise DataError(f"{self.name}:{reader.line_num + isinstance(error, ValueError)}: {error}") from None
                if fields is None:
                    break
                if not fields:
                    continue
                if not self._header:
                    self._header = self._checked_header(fields, first_line)
                    continue
                if len(fields) != len(self._header):
                    raise DataError(
                        f"{self.name}:{first_line}: {len(fields)} fields where the header has {len(self._header)}",
                        hint="A field that holds a separator or a line end stands in double quotes.",
                    )
                rows.add(start)
            rows.finish(lines.position)
        if not self._header:
            raise DataError(f"{self.name}: empty; the first line names the columns")
        if len(rows):
            self._note_shape(tuple(self._header), 0)

    def _checked_header(self, fields: list[str], line: int) -> list[str]:
        if "" in fields:
            raise DataError(f"{self.name}:{line}: column {fields.index('') + 1} has no name")
        twice = next((name for name in fields if fields.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{self.name}:{line}: two columns are named {twice!r}")
        return fields

    def row(self, idx: int) -> Row:
        """The fields of row `idx` by column."""
        try:
            text = self.rows.read(idx).decode("utf-8")
            fields = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter))
            return dict(zip(self._header, fields, strict=True))
        except (StopIteration, ValueError) as error:
            raise self._changed(idx, error) from None


class _Lines:
    """The lines of a file as text, and how far it has been read."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file
        self.position = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline()
        if not line:
            raise StopIteration
        text = line.decode("utf-8-sig" if self.position == 0 else "utf-8")
        self.position += len(line)
        return text


class JsonSource(SpooledSource):
    """A JSON file: a list of objects, or an object whose `data` is one."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(name)
        self._path = path
        self._sha256 = ""

    def _produce(self) -> Iterable[bytes]:
        self._sha256 = hex_digest(digest_file(self._path))
        data = self._path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        try:
            if data.lstrip()[:1] == b"{":
                fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
                if "data" not in fields:
                    raise DataError(
                        f"{self.name}: an object without `data`; its keys are {', '.join(sorted(fields)) or 'none'}",
                        hint="A JSON data file is a list of objects, or an object with such a list as `data`.",
                    )
                data = bytes(fields["data"])
            rows = msgspec.json.decode(data, type=list[msgspec.Raw])
        except msgspec.DecodeError as error:
            raise DataError(f"{self.name}: not a list of JSON objects: {error}") from None
        return map(bytes, rows)

    def identity(self) -> dict[str, Any]:
        """The file's digest and its number of rows."""
        return {"source": self.name, "sha256": self._sha256, "rows": len(self)}


class ParquetSource(SpooledSource):
    """A Parquet file, read batch by batch. Times become ISO texts, images data URIs, other bytes base64."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(name)
        self._path = path
        self._sha256 = ""

    def _produce(self) -> Iterator[Row]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._sha256 = hex_digest(digest_file(self._path))
        try:
            file = pq.ParquetFile(self._path)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self.name}: not a Parquet file: {error}") from None
        with file:
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    yield {name: _plain(value) for name, value in row.items()}

    def identity(self) -> dict[str, Any]:
        """The file's digest and its number of rows."""
        return {"source": self.name, "sha256": self._sha256, "rows": len(self)}


_IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def _plain(value: Any) -> Any:
    """A value of Arrow as a JSON value."""
    if isinstance(value, str | int | bool) or value is None:
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value  # Arrow writes a missing number as NaN
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {"bytes", "path"} and isinstance(value["bytes"], bytes):
            return _plain(value["bytes"])  # how data sets store an image
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, bytes):
        import base64

        kind = next((kind for magic, kind in _IMAGES.items() if value.startswith(magic)), None)
        text = base64.b64encode(value).decode()
        return f"data:image/{kind};base64,{text}" if kind else text
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)
