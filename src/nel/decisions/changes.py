"""What differs between two cells beside the score: runtime, tokens and cost, and how they were run."""

from __future__ import annotations

from typing import Any

import msgspec

from nel.reporting.content import identity_facts
from nel.reporting.run_view import CellView

_NOT_SETTINGS = {"config_hash"}


class RuntimeChange(msgspec.Struct, kw_only=True):
    """One runtime figure of both cells; None where a cell does not have it."""

    name: str
    kind: str
    """`seconds`, `count`, `rate` or `money`."""
    baseline: float | None
    candidate: float | None

    @property
    def relative(self) -> float | None:
        """Change as a share of the baseline."""
        if self.baseline is None or self.candidate is None or not self.baseline:
            return None
        return self.candidate / self.baseline - 1


class SettingChange(msgspec.Struct, kw_only=True):
    """A setting, version or digest that is not the same in both cells."""

    name: str
    baseline: str | None
    candidate: str | None


def runtime_changes(baseline: CellView, candidate: CellView) -> list[RuntimeChange]:
    """Latency, tokens and cost of an attempt, throughput and elapsed time; only figures that a cell has."""
    left, right = _figures(baseline), _figures(candidate)
    return [
        RuntimeChange(name=name, kind=kind, baseline=left.get((name, kind)), candidate=right.get((name, kind)))
        for name, kind in dict.fromkeys((*left, *right))
    ]


def _figures(cell: CellView) -> dict[tuple[str, str], float]:
    stats = cell.runtime
    if stats is None:
        return {}
    steps = stats.total_steps or 1
    figures: dict[tuple[str, str], Any] = {
        (f"latency {name}", "seconds"): value / 1000 for name, value in stats.latency_percentiles_ms.items()
    }
    figures |= {
        ("prompt tokens per attempt", "count"): stats.total_prompt_tokens / steps,
        ("completion tokens per attempt", "count"): stats.total_completion_tokens / steps,
        ("reasoning tokens per attempt", "count"): stats.total_reasoning_tokens / steps,
        ("cost per attempt", "money"): None if stats.cost is None else stats.cost / steps,
        ("tokens per second", "rate"): stats.tokens_per_second,
        ("elapsed", "seconds"): stats.elapsed_seconds,
    }
    return {name: value for name, value in figures.items() if value is not None}


def setting_changes(baseline: CellView, candidate: CellView) -> list[SettingChange]:
    """Every setting, digest and version that differs."""
    left, right = dict(identity_facts(baseline)), dict(identity_facts(candidate))
    return [
        SettingChange(name=name, baseline=left.get(name), candidate=right.get(name))
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name) and name not in _NOT_SETTINGS
    ]
