"""`get_environment`: a benchmark by file, by address or by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nel.core.errors import ConfigError, LoadError, UsageError
from nel.core.loading import entry_points, load_file, load_object
from nel.environments.catalog import BUILT_IN, SCHEMES, BenchmarkInfo

if TYPE_CHECKING:
    from nel.environments.base import EvalEnvironment
    from nel.environments.definition import BenchmarkDefinition

ENTRY_POINTS = "nel.benchmarks"

_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[^:/\\]+))?")
_URI = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*)://")


@dataclass(frozen=True, slots=True)
class _Registered:
    """A benchmark that a decorator announced."""

    name: str
    item: BenchmarkDefinition | type[EvalEnvironment]
    file: str | None
    namespace: int
    """Identity of the module's globals: tells a file that was loaded again from its earlier self."""


_registered: dict[tuple[str, str], _Registered] = {}
"""By lower-case name and file (or module)."""


def add(item: BenchmarkDefinition | type[EvalEnvironment], place: Mapping[str, Any]) -> None:
    """Makes a benchmark known; `place` is the globals of the module that defines it. What the decorators call."""
    file = place.get("__file__")
    origin = str(Path(file).resolve()) if file else str(place.get("__name__"))
    key = (item.name.lower(), origin)
    old = _registered.get(key)
    if old is not None and old.namespace == id(place) and file and old.item is not item:
        raise UsageError(f"{origin}: two benchmarks are named {item.name!r}")
    _registered[key] = _Registered(item.name, item, str(file) if file else None, id(place))


def get_environment(
    name: str,
    *,
    params: Mapping[str, Any] | None = None,
    dataset: str | Path | Mapping[str, Any] | None = None,
    num_fewshot: int | None = None,
) -> EvalEnvironment:
    """The benchmark that `name` names, not yet prepared.

    Args:
        name: `path/file.py` or `path/file.py:name`, an address (`scheme://...`), or a name of `nel list` in any case.
        params: the benchmark's own parameters: keyword arguments of an environment class, or, for `@benchmark`, keys of
            its `extra` and its plain settings.
        dataset: replaces its data: a path or address, or a map of `path`, `revision`, `split` and `config`.
        num_fewshot: the same as `params["num_fewshot"]`.

    Raises:
        LoadError: an unknown name or scheme (with near matches), or a file that cannot be loaded.
        ConfigError: a parameter that the benchmark does not take.
        MissingDependencyError: a package that it requires is missing.
    """
    given = dict(params or {}) if num_fewshot is None else {**(params or {}), "num_fewshot": num_fewshot}
    if "://" not in name and (match := _FILE.fullmatch(name)):
        return _make(_from_file(Path(match["file"]).expanduser(), match["name"], name), given, dataset)
    if match := _URI.match(name):
        return _from_uri(name, match["scheme"], given, dataset)
    return _make(_by_name(name), given, dataset)


def list_benchmarks() -> list[BenchmarkInfo]:
    """Every benchmark with a name: built-in, of plug-ins, and registered in this process; none is loaded."""
    found = dict(BUILT_IN)
    for name, location in entry_points(ENTRY_POINTS).items():
        found.setdefault(name, BenchmarkInfo(name=name, description="", location=location, source="plug-in"))
    for entry in _registered.values():
        where = entry.file or "this process"
        found.setdefault(entry.name, BenchmarkInfo(name=entry.name, description="", location=where, source="file"))
    return sorted(found.values(), key=lambda info: info.name)


def _from_file(path: Path, wanted: str | None, spec: str) -> BenchmarkDefinition | type[EvalEnvironment]:
    module = load_file(path)
    own = {entry.name: entry.item for entry in _registered.values() if entry.namespace == id(vars(module))}
    if wanted is None:
        if len(own) == 1:
            return next(iter(own.values()))
        if not own:
            raise LoadError(
                f"{spec}: no benchmark in this file",
                hint="Decorate a scorer with @benchmark(...), or a class with @register.",
            )
        raise LoadError(
            f"{spec}: {len(own)} benchmarks in this file",
            hint=f"Choose one: {_listed(f'{path}:{name}' for name in own)}",
        )
    by_lower = {name.lower(): item for name, item in own.items()}
    if wanted.lower() in by_lower:
        return by_lower[wanted.lower()]
    item = _benchmark_of(getattr(module, wanted, None))
    if item is not None:
        return item
    near = get_close_matches(wanted, own, n=1)
    raise LoadError(
        f"{spec}: no benchmark {wanted!r} in this file",
        hint=f"Did you mean {near[0]!r}?" if near else f"It has: {_listed(own) or 'none'}.",
    )


def _benchmark_of(value: Any) -> BenchmarkDefinition | type[EvalEnvironment] | None:
    """The benchmark that a module's attribute stands for: a class, a definition, or a decorated scorer."""
    from nel.environments.base import EvalEnvironment
    from nel.environments.definition import BenchmarkDefinition

    if isinstance(value, BenchmarkDefinition) or (isinstance(value, type) and issubclass(value, EvalEnvironment)):
        return value
    items = [
        entry.item
        for entry in _registered.values()
        if isinstance(entry.item, BenchmarkDefinition) and value is not None and entry.item.scorer is value
    ]
    return items[0] if len(items) == 1 else None


def _from_uri(
    uri: str, scheme: str, params: Mapping[str, Any], dataset: str | Path | Mapping[str, Any] | None
) -> EvalEnvironment:
    known = SCHEMES.get(scheme.lower())
    if known is None:
        if scheme in {"hf", "package"}:
            raise LoadError(
                f"{uri}: an address of data, not of a benchmark",
                hint=f"Name a benchmark and give it these data: `dataset: {uri}`.",
            )
        near = get_close_matches(scheme.lower(), SCHEMES, n=1)
        listed = f"Schemes: {_listed(SCHEMES)}."
        raise LoadError(
            f"{uri}: unknown scheme {scheme!r}", hint=f"Did you mean {near[0]}://? {listed}" if near else listed
        )
    if known.loader is None:
        raise LoadError(f"{uri}: {scheme}:// ({known.description}) is not available yet")
    load = load_object(known.loader, what=f"the loader of {scheme}://")
    environment: EvalEnvironment = load(uri, params=params, dataset=dataset)
    return environment


def _by_name(name: str) -> BenchmarkDefinition | type[EvalEnvironment]:
    wanted = name.strip().lower()
    plugins = {key.lower(): location for key, location in entry_points(ENTRY_POINTS).items()}
    info = BUILT_IN.get(wanted)
    location = info.location if info else plugins.get(wanted)
    if location is not None:
        item = _benchmark_of(load_object(location, what=f"benchmark {name!r}"))
        if item is None:
            raise LoadError(
                f"benchmark {name!r}: {location} is no benchmark",
                hint="Point the entry point at a decorated scorer or class.",
            )
        own_module = location.partition(":")[0]
        others = [entry for entry in _named(wanted) if entry.item is not item]
        if others:
            raise _ambiguous(name, [own_module, *(entry.file or "this process" for entry in others)])
        return item
    found = _named(wanted)
    if len(found) > 1:
        raise _ambiguous(name, [entry.file or "this process" for entry in found])
    if found:
        return found[0].item
    names = {*BUILT_IN, *plugins, *(key[0] for key in _registered)}
    near = get_close_matches(wanted, names, n=3, cutoff=0.5)
    raise LoadError(
        f"no benchmark is named {name!r}",
        hint=(f"Did you mean {_listed(near)}? " if near else "")
        + "`nel list` prints all names; a benchmark of your own is FILE.py or FILE.py:NAME.",
    )


def _named(wanted: str) -> list[_Registered]:
    return [entry for (name, _), entry in _registered.items() if name == wanted]


def _ambiguous(name: str, places: Iterable[str]) -> LoadError:
    return LoadError(f"several benchmarks are named {name!r}: in {_listed(places)}", hint="Say which: FILE.py:NAME.")


def _make(
    item: BenchmarkDefinition | type[EvalEnvironment],
    params: Mapping[str, Any],
    dataset: str | Path | Mapping[str, Any] | None,
) -> EvalEnvironment:
    from nel.environments.byob import ByobEnvironment
    from nel.environments.definition import BenchmarkDefinition

    if isinstance(item, BenchmarkDefinition):
        return ByobEnvironment(item.with_params(params), dataset=dataset)
    arguments = dict(params) if dataset is None else {**params, "dataset": dataset}
    accepted = inspect.signature(item).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        for key in arguments:
            if key not in accepted:
                raise _not_taken(item.name or item.__name__, key, list(accepted))
    return item(**arguments)


def _not_taken(name: str, key: str, accepted: list[str]) -> ConfigError:
    if key == "dataset":
        return ConfigError(f"{name} brings its own data", key="dataset")
    near = get_close_matches(key, accepted, n=1)
    listed = f"{name} takes: {_listed(accepted) or 'no parameters'}."
    return ConfigError(
        "unknown parameter", key=f"params.{key}", hint=f"Did you mean {near[0]!r}? {listed}" if near else listed
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
