"""From what a user writes as `dataset` to a `DataSource`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nel.core.errors import DataError
from nel.environments.data.source import DataSource, JsonLinesSource

DataSpec = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]] | Callable[[], Iterable[Mapping[str, Any]]]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
_PACKED = tuple(f"{suffix}.gz" for suffix in (".jsonl", ".ndjson", ".csv", ".tsv"))


def open_source(spec: DataSpec, *, base: Path | None = None) -> DataSource:
    """The source that `spec` describes, not yet prepared.

    Args:
        spec: a file (`.jsonl`, `.json`, `.csv`, `.tsv`, `.parquet`, the text ones also with `.gz`), a folder,
            `package://NAME/inner/path`, `hf://owner/name?split=&config=&revision=` or a bare `owner/name` (several
            configurations with commas between them are read one after the other), an iterable of mappings, or a
            function that returns one.
        base: the folder that a relative path starts from; by default the working directory.

    Raises:
        DataError: a file that does not exist, or a kind that is not known.
        MissingDependencyError: a `package://` distribution that is not installed.
    """
    if not isinstance(spec, str | Path):
        from nel.environments.data.generated import GeneratedSource

        if isinstance(spec, Mapping) or not (callable(spec) or isinstance(spec, Iterable)):
            raise DataError(f"dataset: {type(spec).__name__} is neither a path, an address, a function nor rows")
        return GeneratedSource(spec, getattr(spec, "__qualname__", "rows"))
    text = str(spec)
    if text.startswith("package://"):
        from nel.environments.data.package import PackageSource, find_in_package

        path, package = find_in_package(text)
        return PackageSource(open_file(path, text), text, package)
    if text.startswith("hf://") or _is_hub_id(text, base):
        from nel.environments.data.hub import EachConfig, HubAddress, HubSource

        address = HubAddress.parse(text)
        return EachConfig(address) if address.config and "," in address.config else HubSource(address)
    if "://" in text:
        raise DataError(
            f"dataset {text}: unknown scheme",
            hint="Data come from a path, hf://owner/name or package://NAME/inner/path.",
        )
    return open_file((base or Path()) / Path(text).expanduser(), text)


def _is_hub_id(text: str, base: Path | None) -> bool:
    known = text.lower().endswith((*_SUFFIXES, *_PACKED))
    return bool(_HUB_ID.fullmatch(text)) and not known and not ((base or Path()) / text).exists()


def open_file(path: Path, name: str) -> DataSource:
    """The source for a file or folder; `name` is how messages and the bundle call it."""
    from nel.environments.data import tables

    if path.is_dir():
        from nel.environments.data.folder import FolderSource

        return FolderSource(path, name)
    if not path.is_file():
        near = get_close_matches(path.name, [item.name for item in path.parent.glob("*")], n=1)
        raise DataError(
            f"dataset {name}: no such file"
            + ("" if path.is_absolute() and str(path) == name else f" ({path.absolute()})"),
            hint=f"Did you mean {near[0]!r}?" if near else None,
        )
    lower = path.name.lower()
    if lower.endswith((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")):
        return JsonLinesSource(path, name)
    if lower.endswith((".csv", ".csv.gz")):
        return tables.CsvSource(path, name, delimiter=",")
    if lower.endswith((".tsv", ".tsv.gz")):
        return tables.CsvSource(path, name, delimiter="\t")
    if lower.endswith(".json"):
        return tables.JsonSource(path, name)
    if lower.endswith(".parquet"):
        return tables.ParquetSource(path, name)
    raise DataError(
        f"dataset {name}: unknown kind of file {''.join(path.suffixes) or '(no suffix)'}",
        hint=f"Known: {', '.join((*_SUFFIXES, *_PACKED))}, or a folder.",
    )


def replaced(override: str | Path | Mapping[str, Any], own: DataSpec) -> DataSpec:
    """The `dataset` that replaces a benchmark's own.

    Args:
        override: a path or address; or a map with `path` and, for a data set of the hub, `revision`, `split` and
            `config`. Without a `path` these change the benchmark's own data set.
        own: what the benchmark declares.

    Raises:
        DataError: options for something that is not on the hub, or an unknown key.
    """
    from nel.environments.data.hub import HubAddress

    if not isinstance(override, Mapping):
        return override
    unknown = [key for key in override if key not in {"path", "revision", "split", "config"}]
    if unknown:
        near = get_close_matches(str(unknown[0]), ["path", "revision", "split", "config"], n=1)
        raise DataError(
            f"dataset.{unknown[0]}: unknown key",
            hint=f"Did you mean {near[0]!r}?" if near else "The keys are path, revision, split and config.",
        )
    options = {key: str(value) for key, value in override.items() if key != "path" and value is not None}
    path = override.get("path") or own
    if not options:
        return path
    text = str(path) if isinstance(path, str | Path) else ""
    if not is_on_hub(path):
        raise DataError(
            f"dataset.{next(iter(options))} applies to a data set of the hub, and {text or 'this benchmark'} has none",
            hint="Give `path: hf://owner/name` with it.",
        )
    return str(HubAddress.parse(text).with_options(options))


def is_on_hub(spec: DataSpec) -> bool:
    """Whether a `dataset` names a data set of the hub."""
    text = str(spec) if isinstance(spec, str | Path) else ""
    return text.startswith("hf://") or _is_hub_id(text, None)
