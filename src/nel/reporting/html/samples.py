"""The attempts of a run for the list of samples: an index in columns, and the texts in compressed chunks."""

from __future__ import annotations

import base64
import contextlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from nel.core.errors import RecordError
from nel.reporting.html import plots
from nel.reporting.html.overview import Distributions
from nel.reporting.run_view import CellView, RunView, Unit, UnitDetail
from nel.reporting.text import excerpt

MOST_SAMPLES = 50_000
"""More attempts than a browser should be given in one file."""

_CHUNK = 256 * 1024
_LEVEL = 4
"""Of compression: a tenth larger than the usual one, in half the time."""
_PREVIEW = 140
_INDEX_BYTES = 120
"""What one line of the index costs at most, about, when it is compressed."""
_SHARE = 8
"""How far above the mean allowance the texts of one attempt may lie."""


@dataclass(slots=True)
class Samples:
    """What the page needs to list and open attempts."""

    index: str = ""
    """Columns by name, as JSON, compressed."""
    chunks: list[str] = field(default_factory=list)
    """Texts of consecutive attempts, as JSON arrays, compressed."""
    listed: int = 0
    left_out: int = 0
    """Attempts beyond `MOST_SAMPLES`."""
    cut: int = 0
    """Attempts whose texts were shortened."""
    unread: list[str] = field(default_factory=list)
    """Why the attempts of a cell are missing or incomplete."""
    spread: dict[str, Distributions] = field(default_factory=dict)
    """By cell key."""


def last_text(messages: list[dict[str, Any]]) -> str:
    """The text of the last message, whose content may come in parts."""
    return content_text(messages[-1].get("content")) if messages else ""


def content_text(content: Any) -> str:
    """A message's content as text: that of its parts, in order."""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def preview(value: Any) -> str:
    """One short line of anything."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return excerpt(text, _PREVIEW)


def row_of(unit: Unit, detail: UnitDetail | None) -> dict[str, Any]:
    """An attempt as a line of the list; its texts are empty without `detail`."""
    answer = "" if detail is None else detail.extracted if detail.extracted is not None else detail.answer
    return {
        "id": unit.problem_id or str(unit.problem_idx),
        "idx": unit.problem_idx,
        "repeat": unit.repeat,
        "outcome": str(unit.outcome),
        "category": unit.category or "",
        "failure": unit.failure_category or "",
        "value": unit.values.get("reward"),
        "tokens": unit.tokens,
        "latency": round(unit.latency_ms, 1),
        "question": excerpt(last_text(detail.messages), _PREVIEW) if detail else "",
        "answer": preview(answer),
        "expected": preview(detail.expected) if detail else "",
    }


def collect(view: RunView, budget: int) -> Samples:
    """The attempts of all cells, in at most about `budget` bytes; texts are shortened where they would not fit."""
    return _Collector(view, budget).collect()


class _Collector:
    def __init__(self, view: RunView, budget: int) -> None:
        self.view = view
        self.out = Samples()
        self.columns: dict[str, list[Any]] = {}
        self.pending: list[bytes] = []
        self.pending_bytes = 0
        self.text_bytes = self.packed_bytes = 0
        cells = view.cells()
        self.expected = sum(min(MOST_SAMPLES, _attempts(cell)) for cell in cells)
        self.budget = budget - min(self.expected, MOST_SAMPLES) * _INDEX_BYTES

    def collect(self) -> Samples:
        for number, cell in enumerate(self.view.cells()):
            latencies: list[float] = []
            lengths: list[float] = []
            try:
                for unit in self.view.units(cell):
                    latencies.append(unit.latency_ms)
                    if self.out.listed >= MOST_SAMPLES:
                        self.out.left_out += 1
                        continue
                    detail = self.view.detail(cell, unit)
                    lengths.append(len(detail.answer))
                    self._add(number, cell, unit, detail)
            except RecordError as error:
                self.out.unread.append(f"{cell.name}: {error.message}")
            spread = Distributions(plots.histogram([ms for ms in latencies if ms > 0]), plots.histogram(lengths))
            self.out.spread[cell.key] = spread
        self._flush()
        self.out.index = _pack(msgspec.json.encode(self.columns))
        return self.out

    def _add(self, number: int, cell: CellView, unit: Unit, detail: UnitDetail) -> None:
        row = {"cell": number, **row_of(unit, detail)}
        texts = {**msgspec.to_builtins(detail), "values": unit.values}
        encoded = msgspec.json.encode(texts)
        allowed = self._allowance()
        if len(encoded) > allowed:
            where = f"{cell.name}/ in the run directory (problem_idx {unit.problem_idx}, repeat {unit.repeat})"
            encoded = msgspec.json.encode({**_shorten(texts, allowed), "cut": where})
            self.out.cut += 1
        row["chunk"] = len(self.out.chunks)
        row["place"] = len(self.pending)
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)
        self.out.listed += 1
        self.pending.append(encoded)
        self.pending_bytes += len(encoded)
        if self.pending_bytes >= _CHUNK:
            self._flush()

    def _allowance(self) -> int:
        """Bytes of JSON that the texts of the next attempt may take.

        What is left is shared by the attempts that are still to come; one may take more than its share, and what it
        takes is missing to the later ones alone by little. That a text does not compress at all is provided for.
        """
        left = self.budget - self.packed_bytes - self.pending_bytes
        ratio = self.text_bytes / self.packed_bytes if self.packed_bytes else 1.5
        to_come = max(1, min(self.expected, MOST_SAMPLES) - self.out.listed)
        return max(0, int(min(_SHARE * left * ratio / to_come, left * 0.7)))

    def _flush(self) -> None:
        if self.pending:
            packed = _pack(b"[" + b",".join(self.pending) + b"]")
            self.out.chunks.append(packed)
            self.text_bytes += self.pending_bytes
            self.packed_bytes += len(packed)
            self.pending, self.pending_bytes = [], 0


def _attempts(cell: CellView) -> int:
    counts = cell.counts
    return max(counts.planned, counts.scored + counts.unscored + counts.error, 1)


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode("ascii")


def _shorten(value: dict[str, Any], allowed: int) -> dict[str, Any]:
    """The texts, each cut to the same length, so that the whole keeps within `allowed` bytes of JSON."""
    strings = list(_strings(value))
    limit = allowed // (4 * max(1, len(strings)))
    for _ in range(12):
        shorter = _cut(value, limit)
        if len(msgspec.json.encode(shorter)) <= allowed:
            with contextlib.suppress(RecursionError):
                return _as_dict(shorter)
        limit //= 2
    return {"messages": [], "answer": ""}


def _as_dict(value: Any) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from _strings(child)
    elif isinstance(value, list):
        for child in value:
            yield from _strings(child)


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else value[:limit] + "…"
    if isinstance(value, dict):
        return {key: _cut(child, limit) for key, child in value.items()}
    if isinstance(value, list):
        return [_cut(child, limit) for child in value[:200]]
    return value
