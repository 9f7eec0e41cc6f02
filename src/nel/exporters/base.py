"""What an exporter is, and how one is found by its name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from nel.core.errors import UsageError
from nel.core.loading import entry_points, load_object
from nel.reporting.run_view import CellView, RunView, Unit, UnitDetail

ENTRY_POINTS = "nel.exporters"
BUILT_IN = {
    "csv": "nel.exporters.tables:CsvExporter",
    "parquet": "nel.exporters.tables:ParquetExporter",
    "jsonl": "nel.exporters.tables:JsonLinesExporter",
    "junit": "nel.exporters.junit:JUnitExporter",
    "inspect": "nel.exporters.inspect_log:InspectExporter",
    "otel": "nel.exporters.otel:OtelExporter",
    "wandb": "nel.exporters.wandb:WandBExporter",
    "mlflow": "nel.exporters.mlflow:MLflowExporter",
}


class Exporter(Protocol):
    """A destination; made with its options as keyword arguments, all of which have defaults."""

    name: ClassVar[str]

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """Hands a run over, writing files only below `output`; where it is now, as paths or addresses."""
        ...


def get_exporter(name: str, options: Mapping[str, Any]) -> Exporter:
    """The exporter of a name, or of a `module:Class`, with its options; `UsageError` names what is not known."""
    known = {**BUILT_IN, **entry_points(ENTRY_POINTS)}
    location = known.get(name, name)
    if ":" not in location:
        near = get_close_matches(name, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"There is no exporter {name!r}.", hint=f"{meant}There are: {', '.join(sorted(known))}.")
    kind = load_object(location, what="exporter")
    takes = list(inspect.signature(kind).parameters)
    for option in options:
        if option not in takes:
            near = get_close_matches(option, takes, n=1)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            listed = f"It takes: {', '.join(takes)}." if takes else "It takes none."
            raise UsageError(f"The exporter {name!r} has no option {option!r}.", hint=meant + listed)
    exporter: Exporter = kind(**options)
    return exporter


def file_name(text: str) -> str:
    """A name of a cell or run as a file's."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._") or "run"


def run_name(run: RunView) -> str:
    """What a run is called among others: its directory and the end of its id."""
    return file_name(f"{run.path.resolve().name}-{run.manifest.run_id[-8:]}")


def attempts(run: RunView, cell: CellView) -> Iterator[tuple[Unit, UnitDetail]]:
    """The attempts of a cell with their texts, one at a time."""
    for unit in run.units(cell):
        yield unit, run.detail(cell, unit)


def text_of(value: Any) -> str:
    """A value as a text: texts as they are, nothing for None, the rest as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def prompt_of(detail: UnitDetail) -> str:
    """The last user message as a text."""
    for message in reversed(detail.messages):
        if message.get("role") == "user":
            return text_of(message.get("content"))
    return ""
