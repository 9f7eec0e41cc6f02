"""`PreparedRows`: a source's rows as a benchmark uses them, with its second column names and through `prepare_row`."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any

from nel.core.contract import canonical_json
from nel.core.errors import DataError, NelError
from nel.environments.data import DataSource, Row
from nel.environments.template import near_columns

if TYPE_CHECKING:
    from nel.environments.definition import BenchmarkDefinition


class SkipRow(Exception):  # noqa: N818 - no error: what `prepare_row` says of a row
    """Raised by `prepare_row` (or `seed_fn`) for a row that shall be set aside; the run counts it with the reason."""


class PreparedRows:
    """Rows by their number in the source; one that cannot be prepared is a `DataError` that says where it stands."""

    def __init__(self, definition: BenchmarkDefinition, source: DataSource) -> None:
        self._definition = definition
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def row(self, number: int) -> Row:
        """Row `number` of the source, prepared; `SkipRow` where the benchmark sets it aside."""
        row = self.source.row(number)
        definition = self._definition
        content = canonical_json(row) if definition.prepare_row is not None else b""
        for column, other in definition.field_mapping.items():
            if column not in row:
                raise self.no_column("field_mapping", column, row, number)
            row[other] = row[column]
        return row if definition.prepare_row is None else self._prepared(row, number, content)

    def _prepared(self, row: Row, number: int, content: bytes) -> Row:
        assert self._definition.prepare_row is not None
        source = self.random(content)
        try:
            prepared = self._definition.prepare_row(row, number, source)
        except Exception as error:
            raise self.failed("prepare_row", error, number) from error
        if not isinstance(prepared, dict):
            raise self.error(number, f"prepare_row returned {type(prepared).__name__}, not the row")
        return prepared

    def random(self, content: bytes) -> Random:
        """A random source that depends on `content` and the benchmark's `row_seed` alone."""
        digest = sha256(b"%d/%b" % (self._definition.row_seed, content)).digest()
        return Random(int.from_bytes(digest[:16], "big"))

    def column(self, what: str, row: Row, number: int) -> Any:
        """The value of the column that the definition's setting `what` names."""
        column = getattr(self._definition, what)
        if column not in row:
            raise self.no_column(what, column, row, number)
        return row[column]

    def label(self, what: str, row: Row, number: int) -> str | None:
        """The same as text; None where the setting names no column, or the row has null there."""
        if getattr(self._definition, what) is None:
            return None
        value = self.column(what, row, number)
        return None if value is None else str(value)

    # what goes wrong

    def error(self, number: int, message: str, hint: str | None = None) -> DataError:
        """A `DataError` about one row."""
        return DataError(f"benchmark {self._definition.name}: {self.source.place(number)}: {message}", hint=hint)

    def no_column(self, what: str, column: str, columns: Iterable[str], number: int) -> DataError:
        """The error of a row without the column that the setting `what` names."""
        return self.error(number, f"no column {column!r} ({what})", near_columns(column, list(columns)))

    def failed(self, what: str, error: Exception, number: int) -> Exception:
        """The error that a function of the benchmark's own raised, with the row's place; NEL's own as they are."""
        if isinstance(error, NelError | SkipRow):
            return error
        said = f"no column {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        return self.error(number, f"{what}: {said}")
