"""`JudgeTotals`: what the judges of a cell took, and how far those of an ensemble agree."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import Any

import msgspec

from nel.metrics.agreement import LEVELS, krippendorff_alpha

_COUNTS = ("requests", "unreadable", "prompt_tokens", "completion_tokens", "cached")
_COST_UNIT = 1e12
"""Costs are summed as whole trillionths, so that their order does not matter."""


class JudgeDetails(msgspec.Struct):
    """What a metric's details hold of its judges; any other metric has none of it."""

    judge_usage: Any = None
    ratings: Any = None
    level: Any = None


class _Usage(msgspec.Struct):
    requests: int
    unreadable: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: int = 0
    latency_ms: float = 0.0
    cost: float | None = None


def _as[T](kind: type[T], value: Any) -> T | None:
    """The value, where it is of that shape: details of a metric of one's own may be called the same and be anything."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


class JudgeTotals:
    """Sums over the attempts of a cell, by metric; keeps eight bytes for each rating of an ensemble."""

    def __init__(self) -> None:
        self._usage: dict[str, dict[str, int]] = {}
        self._latency: dict[str, list[float]] = {}
        self._ratings: dict[str, dict[str, array[float]]] = {}
        self._units: dict[str, int] = {}
        self._levels: dict[str, str] = {}

    def add(self, metric: str, details: JudgeDetails) -> None:
        """Count one score of a metric."""
        usage = _as(_Usage, details.judge_usage)
        if usage is not None:
            self._add_usage(metric, usage)
        found = _as(dict[str, dict[str, float]], details.ratings)
        if found is not None and details.level in LEVELS:
            self._levels[metric] = details.level
            for ratings in found.values():
                self._add_ratings(metric, ratings)

    def _add_usage(self, metric: str, usage: _Usage) -> None:
        total = self._usage.setdefault(metric, dict.fromkeys(_COUNTS, 0))
        for name in _COUNTS:
            total[name] += getattr(usage, name)
        self._latency.setdefault(metric, []).append(usage.latency_ms)
        if usage.cost is not None:
            total["cost"] = total.get("cost", 0) + round(usage.cost * _COST_UNIT)

    def _add_ratings(self, metric: str, ratings: Mapping[str, float]) -> None:
        columns = self._ratings.setdefault(metric, {})
        before = self._units.get(metric, 0)
        for judge in ratings:
            if judge not in columns:
                columns[judge] = array("d", [math.nan] * before)
        for judge, column in columns.items():
            column.append(ratings.get(judge, math.nan))
        self._units[metric] = before + 1

    def usage(self) -> dict[str, dict[str, Any]]:
        """By metric: requests, tokens, cost (null without prices) and the mean latency of a request in milliseconds."""
        found: dict[str, dict[str, Any]] = {}
        for metric, total in sorted(self._usage.items()):
            cost = total.get("cost")
            served = total["requests"] - total["cached"]
            found[metric] = {
                **{name: total[name] for name in _COUNTS},
                "cost": None if cost is None else cost / _COST_UNIT,
                "mean_latency_ms": round(math.fsum(self._latency[metric]) / served, 3) if served else None,
            }
        return found

    def agreement(self) -> dict[str, dict[str, Any]]:
        """By ensemble: Krippendorff's alpha of its judges' ratings, null where there is nothing to tell it from."""
        found: dict[str, dict[str, Any]] = {}
        for metric, columns in sorted(self._ratings.items()):
            level = self._levels[metric]
            rated = zip(*columns.values(), strict=True)
            units = ([None if math.isnan(score) else score for score in unit] for unit in rated)
            found[metric] = {
                "krippendorff_alpha": krippendorff_alpha(units, level=level),  # type: ignore[arg-type]
                "level": level,
                "ratings": self._units[metric],
                "judges": sorted(columns),
            }
        return found
