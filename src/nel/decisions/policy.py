"""A gate's policy: which benchmarks matter how much, and what each may lose. `docs/decisions.md` describes the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

from nel.config.positions import Node, read_file
from nel.reporting.run_view import Direction


class Tier(StrEnum):
    """How much a benchmark matters."""

    CRITICAL = "critical"
    """Must be shown to be within its limits."""
    SUPPORTING = "supporting"
    """Must be there, and neither be shown nor look to be beyond its limits."""
    ADVISORY = "advisory"
    """Reported; never blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one benchmark may lose."""

    tier: Tier = Tier.SUPPORTING
    max_drop: float = 0.015
    """In score units."""
    max_relative_drop: float | None = None
    """As a share of the baseline's score."""
    relative_guard_below: float | None = None
    """The relative limit applies only where the baseline's score is below this; None: always."""
    metric: str | None = None
    """None: the benchmark's headline."""
    direction: Direction | None = None
    """None: as the metric says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits by benchmark (or by the name of a cell)."""

    defaults: Limits = field(default_factory=Limits)
    """Also for benchmarks that both runs hold and the policy does not name."""
    benchmarks: dict[str, Limits] = field(default_factory=dict)


_DIRECTIONS = {"higher_is_better": Direction.HIGHER, "lower_is_better": Direction.LOWER}
_TOP = ("version", "defaults", "benchmarks")
_KEYS = tuple(item.name for item in fields(Limits))


def load_policy(path: Path | str) -> Policy:
    """The policy in a YAML or JSON file; `ConfigError` names file, line and key of what is wrong."""
    root = read_file(Path(path))
    top = _map(root, "the policy", _TOP)
    version = top.get("version")
    if version is not None and version.value != 1:
        raise version.place.error(f"version {version.value!r} is not known; this nel reads version 1", key="version")
    defaults = _limits(Limits(), top.get("defaults"), "defaults")
    entries = top.get("benchmarks")
    named = _map(entries, "benchmarks") if entries is not None else {}
    return Policy(
        defaults=defaults,
        benchmarks={name: _limits(defaults, entry, f"benchmarks.{name}") for name, entry in named.items()},
    )


def _map(node: Node, key: str, known: tuple[str, ...] | None = None) -> dict[str, Node]:
    """The children of a map, whose keys are all `known`; null is an empty map."""
    if node.value is None:
        return {}
    if not isinstance(node.value, dict):
        raise node.place.error(f"is {node.kind}; it must be a map", key=key)
    children: dict[str, Node] = node.value
    for name, child in children.items():
        if known is not None and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean `{near[0]}`?" if near else f"Keys: {', '.join(known)}."
            raise child.place.error(f"unknown key {name!r} in {key}", hint=hint)
    return children


def _limits(base: Limits, node: Node | None, key: str) -> Limits:
    """`base` with what the entry at `node` says."""
    if node is None:
        return base
    changes: dict[str, Any] = {}
    for name, child in _map(node, key, _KEYS).items():
        try:
            changes[name] = _READERS[name](child.value)
        except ValueError as error:
            raise child.place.error(str(error), key=f"{key}.{name}") from None
    return replace(base, **changes)


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} is no number of 0 or more")
    return float(value)


def _share(value: Any) -> float:
    if _amount(value) > 1:
        raise ValueError(f"{value!r} is not between 0 and 1")
    return float(value)


def _optional[T](read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else read(value)


def _one_of(value: Any, known: dict[str, Any]) -> Any:
    if value not in known:
        near = get_close_matches(str(value), known, n=1)
        raise ValueError(f"{value!r} is not one of {', '.join(known)}{f'; did you mean {near[0]}?' if near else ''}")
    return known[value]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no name of a metric")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "tier": lambda value: _one_of(value, {tier.value: tier for tier in Tier}),
    "max_drop": _amount,
    "max_relative_drop": _optional(_amount),
    "relative_guard_below": _optional(_share),
    "metric": _optional(_text),
    "direction": _optional(lambda value: _one_of(value, _DIRECTIONS)),
}
