"""Rows made by a function, or given as a list, as a data source."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nel.core.errors import DataError
from nel.environments.data.source import SpooledSource

Rows = Iterable[Mapping[str, Any]]


class GeneratedSource(SpooledSource):
    """The rows of an iterable, or of a function that returns one: called once, spooled, and known by their digest."""

    def __init__(self, rows: Rows | Callable[[], Rows], name: str) -> None:
        super().__init__(name)
        self._given = rows
        self._digest = hashlib.sha256()

    def _produce(self) -> Rows:
        rows: object = self._given() if callable(self._given) else self._given
        if inspect.iscoroutine(rows):
            rows.close()  # else Python warns that it was never awaited
        if not isinstance(rows, Iterable):
            raise DataError(
                f"{self.name}: returned {type(rows).__name__}, not rows",
                hint="A data function is a plain function without parameters that returns or yields mappings.",
            )
        return rows

    def _encode(self, item: bytes | Mapping[str, Any], idx: int) -> tuple[bytes, tuple[str, ...]]:
        data, columns = super()._encode(item, idx)
        self._digest.update(data + b"\n")
        return data, columns

    def identity(self) -> dict[str, Any]:
        """The digest of the rows as JSON lines."""
        return {"source": self.name, "sha256": self._digest.hexdigest(), "rows": len(self)}
