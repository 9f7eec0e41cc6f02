"""`DataSource`: rows by index, read when they are needed, and what they were read from."""

from __future__ import annotations

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from nel.core.contract import encode_json
from nel.core.digest import digest_file, digest_value
from nel.core.errors import DataError, NelError, RecordError

Row = dict[str, Any]

_row = msgspec.json.Decoder(dict[str, Any])
_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MAX_SHAPES = 1000  # rows with more kinds of columns than this are checked only as they are reached


class DataSource(ABC):
    """Rows of one data set. `prepare` may block; everything else is quick enough for an event loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        """How messages name it."""
        self.shapes: dict[tuple[str, ...], int] = {}
        """Which sets of columns the rows have, each with the first row that has it; known after `prepare`."""

    @abstractmethod
    def prepare(self) -> None:
        """Find the rows. `DataError` names the file and the line that cannot be read."""

    @abstractmethod
    def __len__(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def row(self, idx: int) -> Row:
        """Row `idx`, 0-based, as plain JSON values; a new dict each time."""

    def place(self, idx: int) -> str:
        """Where row `idx` stands, for messages."""
        return f"{self.name}, row {idx + 1}"

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What the rows are: `{source, sha256, rows, revision?, license?}`; known after `prepare`."""

    def close(self) -> None:
        """Release files; nothing can be read afterwards."""

    def _note_shape(self, columns: tuple[str, ...], idx: int) -> None:
        if columns not in self.shapes and len(self.shapes) < _MAX_SHAPES:
            self.shapes[columns] = idx


class StoredRows:
    """Rows as byte ranges of one open file: 8 bytes of memory a row, whatever their size."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._offsets = array("Q")
        self._end = 0
        self.close = weakref.finalize(self, os.close, fd)

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, offset: int) -> None:
        """The next row begins at `offset`."""
        self._offsets.append(offset)

    def finish(self, end: int) -> None:
        """The last row ends at `end`."""
        self._end = end

    def offset(self, idx: int) -> int:
        """Where row `idx` begins."""
        return self._offsets[idx]

    def read(self, idx: int) -> bytes:
        """The bytes from row `idx` to the next one."""
        start = self._offsets[idx]
        end = self._offsets[idx + 1] if idx + 1 < len(self._offsets) else self._end
        return os.pread(self._fd, end - start, start)

    def line(self, idx: int) -> int:
        """Number of the line, from 1, on which row `idx` begins."""
        number, position, start = 1, 0, self._offsets[idx]
        while position < start:
            chunk = os.pread(self._fd, min(1 << 20, start - position), position)
            if not chunk:
                break
            number += chunk.count(b"\n")
            position += len(chunk)
        return number


class FileSource(DataSource):
    """Rows of one file, by offset."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(name)
        self.path = path
        self._rows: StoredRows | None = None
        self._sha256 = ""

    def prepare(self) -> None:
        """Index the file and take its digest."""
        self._sha256 = hex_digest(digest_file(self.path))
        fd = os.open(self.path, os.O_RDONLY)
        if self.path.suffix == ".gz":
            packed, fd = fd, _unpacked(fd, self.name)
            os.close(packed)
        self._rows = StoredRows(fd)
        self._index(fd, self._rows)

    @abstractmethod
    def _index(self, fd: int, rows: StoredRows) -> None:
        """Tell `rows` where each row of the file begins."""

    @property
    def rows(self) -> StoredRows:
        """The rows; only after `prepare`."""
        if self._rows is None:
            raise RuntimeError(f"{self.name}: prepare() was not called")
        return self._rows

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, idx: int) -> str:
        """File and line."""
        return f"{self.name}:{self.rows.line(idx)}"

    def identity(self) -> dict[str, Any]:
        """The file's digest and its number of rows."""
        return {"source": self.name, "sha256": self._sha256, "rows": len(self)}

    def close(self) -> None:
        """Close the file."""
        if self._rows is not None:
            self._rows.close()

    def _changed(self, idx: int, error: Exception) -> DataError:
        return DataError(f"{self.name}: row {idx + 1} can no longer be read ({error}): the file has changed.")


def _unpacked(fd: int, name: str) -> int:
    """A temporary file with what a gzip file holds."""
    import gzip
    import shutil
    import zlib

    out = temporary_file()
    try:
        with os.fdopen(os.dup(fd), "rb") as packed, gzip.open(packed) as source, open(out, "wb", closefd=False) as file:
            shutil.copyfileobj(source, file, 1 << 20)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        os.close(out)
        raise DataError(f"{name}: not a whole gzip file: {error}") from None
    return out


class JsonLinesSource(FileSource):
    """One JSON object a line; blank lines do not count."""

    def _index(self, fd: int, rows: StoredRows) -> None:
        position = 0
        with open(fd, "rb", closefd=False) as file:
            file.seek(0)
            for number, line in enumerate(file, start=1):
                start = 3 if position == 0 and line.startswith(b"\xef\xbb\xbf") else 0
                if not line.isspace():
                    try:
                        columns = tuple(_keys.decode(line[start:] if start else line))
                    except (msgspec.DecodeError, UnicodeDecodeError) as error:
                        raise DataError(f"{self.name}:{number}: not a JSON object: {error}") from None
                    if columns not in self.shapes:
                        self._note_shape(columns, len(rows))
                    rows.add(position + start)
                position += len(line)
        rows.finish(position)

    def row(self, idx: int) -> Row:
        """The object of line `idx`."""
        data = self.rows.read(idx)
        try:
            return _row.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._changed(idx, error) from None


class SpooledSource(DataSource):
    """Rows that come one after the other, written once to a temporary file that no crash leaves behind."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._rows: StoredRows | None = None

    @abstractmethod
    def _produce(self) -> Iterable[bytes | Mapping[str, Any]]:
        """The rows: each as a mapping, or as the JSON text of an object."""

    def prepare(self) -> None:
        """Write every row to the temporary file."""
        fd = temporary_file()
        rows = self._rows = StoredRows(fd)
        position = 0
        with _spool_errors(self.name), open(fd, "wb", closefd=False) as file:
            for idx, item in enumerate(self._rows_or_error()):
                data, columns = self._encode(item, idx)
                if columns not in self.shapes:
                    self._note_shape(columns, idx)
                rows.add(position)
                position += file.write(data)
        rows.finish(position)

    def _rows_or_error(self) -> Iterator[bytes | Mapping[str, Any]]:
        try:
            yield from self._produce()
        except (NelError, GeneratorExit):
            raise
        except Exception as error:
            raise DataError(f"{self.name}: the rows could not be made: {type(error).__name__}: {error}") from error

    def _encode(self, item: bytes | Mapping[str, Any], idx: int) -> tuple[bytes, tuple[str, ...]]:
        place = f"{self.name}, row {idx + 1}"
        if isinstance(item, bytes):
            try:
                return item, tuple(_keys.decode(item))
            except msgspec.DecodeError as error:
                raise DataError(f"{place}: not a JSON object: {error}") from None
        if not isinstance(item, Mapping):
            raise DataError(f"{place}: a row is a mapping from column to value, not {type(item).__name__}")
        try:
            return encode_json(dict(item)), tuple(item)
        except (TypeError, RecordError) as error:
            column = next((key for key, value in item.items() if not _encodes(value)), None)
            raise DataError(f"{place}: column {column!r} holds no JSON value: {error}") from None

    def __len__(self) -> int:
        return len(self._store())

    def row(self, idx: int) -> Row:
        """Row `idx`, read back."""
        return _row.decode(self._store().read(idx))

    def _store(self) -> StoredRows:
        if self._rows is None:
            raise RuntimeError(f"{self.name}: prepare() was not called")
        return self._rows

    def close(self) -> None:
        """Give the temporary file back."""
        if self._rows is not None:
            self._rows.close()


@contextmanager
def _spool_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{name}: the rows could not be spooled to {tempfile.gettempdir()}: {error.strerror}",
            hint="TMPDIR names another directory for temporary files.",
        ) from None


def _encodes(value: Any) -> bool:
    try:
        encode_json(value)
    except (TypeError, RecordError):
        return False
    return True


class JoinedSource(DataSource):
    """The rows of several sources, one source after the other."""

    def __init__(self, sources: Sequence[DataSource], name: str) -> None:
        super().__init__(name)
        self._sources = sources
        self._ends: list[int] = []

    def prepare(self) -> None:
        """Prepare every source."""
        total = 0
        for source in self._sources:
            source.prepare()
            for columns, first in source.shapes.items():
                self._note_shape(columns, total + first)
            total += len(source)
            self._ends.append(total)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def row(self, idx: int) -> Row:
        """Row `idx` of all."""
        source, inside = self._find(idx)
        return source.row(inside)

    def place(self, idx: int) -> str:
        """Where it stands in its own source."""
        source, inside = self._find(idx)
        return source.place(inside)

    def _find(self, idx: int) -> tuple[DataSource, int]:
        number = bisect_right(self._ends, idx)
        return self._sources[number], idx - (self._ends[number - 1] if number else 0)

    def identity(self) -> dict[str, Any]:
        """One digest of the sources' digests, in their order."""
        digests = [source.identity()["sha256"] for source in self._sources]
        sha256 = digests[0] if len(digests) == 1 else hex_digest(digest_value(digests))
        return {"source": self.name, "sha256": sha256, "rows": len(self)}

    def close(self) -> None:
        """Close every source."""
        for source in self._sources:
            source.close()


class Labelled(DataSource):
    """Another source's rows with one more column, which is the same in each."""

    def __init__(self, inner: DataSource, column: str, value: str) -> None:
        super().__init__(inner.name)
        self._inner = inner
        self._column = column
        self._value = value

    def prepare(self) -> None:
        """Prepare the other source."""
        self._inner.prepare()
        for columns, first in self._inner.shapes.items():
            self._note_shape((*columns, self._column), first)

    def __len__(self) -> int:
        return len(self._inner)

    def row(self, idx: int) -> Row:
        """The row with the column."""
        return {**self._inner.row(idx), self._column: self._value}

    def place(self, idx: int) -> str:
        """Where it stands in the other source."""
        return self._inner.place(idx)

    def identity(self) -> dict[str, Any]:
        """The other source's."""
        return self._inner.identity()

    def close(self) -> None:
        """Close the other source."""
        self._inner.close()


def temporary_file() -> int:
    """A descriptor of a file without a name, which goes away with the process."""
    fd, path = tempfile.mkstemp(prefix="nel-rows-")
    Path(path).unlink()
    return fd


def hex_digest(digest: str) -> str:
    """The hex part of `sha256:<hex>`."""
    return digest.partition(":")[2]
