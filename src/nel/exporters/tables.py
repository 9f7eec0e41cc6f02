"""`csv`, `parquet` and `jsonl`: one row for each attempt, in a file for each cell."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import batched
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from nel.exporters.base import attempts, file_name, prompt_of, run_name, text_of
from nel.reporting.run_view import CellView, RunView

COLUMNS = (
    "run_id", "cell", "benchmark", "model", "problem_idx", "repeat", "problem_id", "category", "cluster", "outcome",
    "reward", "extracted", "expected", "answer", "prompt", "failure_category", "error", "tokens", "latency_ms",
)  # fmt: skip
_TEXTS = frozenset({"problem_id", "category", "cluster", "extracted", "expected", "answer", "prompt", "error"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_BATCH = 1000


def rows(run: RunView, cell: CellView) -> Iterator[dict[str, Any]]:
    """The rows of a cell: `COLUMNS`, and `metric:<name>` for each further metric."""
    known = {"run_id": run.manifest.run_id, "cell": cell.name, "benchmark": cell.benchmark, "model": cell.model}
    for unit, detail in attempts(run, cell):
        yield {
            **known,
            "problem_idx": unit.problem_idx,
            "repeat": unit.repeat,
            "problem_id": unit.problem_id,
            "category": unit.category,
            "cluster": unit.cluster,
            "outcome": unit.outcome.value,
            "reward": unit.values.get("reward"),
            "extracted": text_of(detail.extracted),
            "expected": text_of(detail.expected),
            "answer": detail.answer,
            "prompt": prompt_of(detail),
            "failure_category": unit.failure_category,
            "error": detail.error,
            "tokens": unit.tokens,
            "latency_ms": unit.latency_ms,
            **{f"metric:{name}": value for name, value in unit.values.items() if name != "reward"},
        }


def _columns(run: RunView, cell: CellView) -> list[str]:
    """`COLUMNS` and every further metric that occurs; a pass of its own, so that rows can be streamed."""
    metrics = {name for unit in run.units(cell) for name in unit.values} - {"reward"}
    return [*COLUMNS, *(f"metric:{name}" for name in sorted(metrics))]


def _file(run: RunView, cell: CellView, output: Path, suffix: str) -> Path:
    folder = output / run_name(run)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{file_name(cell.name)}{suffix}"


class CsvExporter:
    """RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe in front."""

    name: ClassVar[str] = "csv"

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        return [str(self._write(run, cell, output)) for cell in run.cells()]

    def _write(self, run: RunView, cell: CellView, output: Path) -> Path:
        path = _file(run, cell, output, ".csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, _columns(run, cell), restval="")
            writer.writeheader()
            for row in rows(run, cell):
                writer.writerow({name: _harmless(value) if name in _TEXTS else value for name, value in row.items()})
        return path


def _harmless(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = value.replace("\0", "")
    return f"'{value}" if value.startswith(_FORMULA) else value


class ParquetExporter:
    """Parquet with zstd; texts are strings, numbers are numbers, and nothing is left out."""

    name: ClassVar[str] = "parquet"

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        return [str(self._write(run, cell, output)) for cell in run.cells()]

    def _write(self, run: RunView, cell: CellView, output: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        whole, real = {"problem_idx", "repeat", "tokens"}, {"reward", "latency_ms"}
        schema = pa.schema(
            (name, pa.int64() if name in whole else pa.float64() if name in real or ":" in name else pa.string())
            for name in _columns(run, cell)
        )
        path = _file(run, cell, output, ".parquet")
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for part in batched(rows(run, cell), _BATCH):
                writer.write_table(pa.Table.from_pylist([_plain(row) for row in part], schema))
        return path


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Lone surrogates, which no UTF-8 has, as escapes."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


class JsonLinesExporter:
    """The joined form of `results.jsonl`: question, reply and metadata stand in the line of their score."""

    name: ClassVar[str] = "jsonl"

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        return [str(self._write(run, cell, output)) for cell in run.cells()]

    def _write(self, run: RunView, cell: CellView, output: Path) -> Path:
        path = _file(run, cell, output, ".jsonl")
        with path.open("wb") as file:
            for unit, detail in attempts(run, cell):
                row = {
                    "problem_idx": unit.problem_idx,
                    "repeat": unit.repeat,
                    "reward": unit.values.get("reward"),
                    "outcome": unit.outcome.value,
                    "prompt": prompt_of(detail),
                    "messages": detail.messages,
                    "model_response": detail.answer,
                    "extracted_answer": detail.extracted,
                    "expected_answer": detail.expected,
                    "scoring_details": detail.scoring,
                    "scorer_rewards": {name: value for name, value in unit.values.items() if name != "reward"},
                    "metadata": detail.metadata,
                    "tokens": unit.tokens,
                    "latency_ms": unit.latency_ms,
                    "trajectory": detail.trajectory,
                    "failure_category": unit.failure_category,
                    "model_error": detail.error,
                }
                file.write(msgspec.json.encode(row) + b"\n")
        return path
