"""Which fields of a run's files may differ between two runs that are equal.

Two runs are *equal* when their files are byte-equal with these fields masked: they say when, where, in how many tries
and how smoothly something was done, never what was asked, answered or measured. `docs/run-directory.md` lists the same
fields; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nel.core.contract import canonical_json, decode_json

_RUNTIME = (
    "elapsed_seconds",
    "latency_percentiles_ms",
    "ttft_percentiles_ms",
    "tokens_per_second",
    "steps_per_second",
    "total_retries",
    "total_tries",
    "total_cached_tokens",
    "cache",
    "cost",
)

VOLATILE: dict[str, tuple[str, ...]] = {
    "manifest.json": (
        "run_id",
        "started",
        "finished",
        "command",
        "platform",
        "shard",
        "warnings",
        "cells.*.info.run_id",
        "cells.*.info.config.shard",
        "cells.*.info.choice.shard",
    ),
    "checkpoint.json": (),
    "trajectories.jsonl": (
        "timestamp",
        "timing",
        "retries",
        "run_id",
        "host",
        "model.latency_ms",
        "model.ttft_ms",
        "model.tries",
        "model.cached",
        "model.cached_tokens",
        "model.cost",
        "model.replica",
        "model.response_hash",
        "model.raw_response",
        "model_error.tries",
        "trajectory.*.session_id",
        "trajectory.*.steps.*.timestamp",
    ),
    "results.jsonl": (
        "scorer_rewards.*.details.judge_usage",
        "scorer_rewards.*.details.verdicts.*.unreadable",
        "latency_ms",
        "verify_ms",
        "run_id",
    ),
    "eval-*.json": ("run_id", "timestamp", "config.shard", "judges", *(f"runtime.{name}" for name in _RUNTIME)),
    "runtime_stats.json": _RUNTIME,
    "failure_analysis.json": (),
}
"""From a file's name (or pattern) to the paths of its volatile fields; `*` stands for any key or place in a list.

A cached reply costs nothing, and a server's reply holds ids and times of its own: so cost and the reply's hash are
here too.
"""


def mask(record: Mapping[str, Any], file: str) -> dict[str, Any]:
    """A copy of one record of `file` (a name such as `results.jsonl`) without its volatile fields."""
    masked: Any = dict(record)
    for path in VOLATILE[_pattern(file)]:
        masked = _without(masked, path.split("."))
    return dict(masked)


def comparable(directory: Path) -> dict[str, list[bytes]]:
    """What two equal runs have in common: relative path to the canonical JSON of each record, volatile fields masked.

    Only the files that `VOLATILE` names count; reports are derived from them. Hidden and earlier runs
    (`previous/`) do not belong to this one.
    """
    found: dict[str, list[bytes]] = {}
    for path in sorted(directory.rglob("*.json*")):
        relative = path.relative_to(directory)
        if relative.parts[0] == "previous" or not any(fnmatchcase(path.name, pattern) for pattern in VOLATILE):
            continue
        texts = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
        found[relative.as_posix()] = [canonical_json(mask(decode_json(text), path.name)) for text in texts]
    return found


def _pattern(file: str) -> str:
    for pattern in VOLATILE:
        if fnmatchcase(file, pattern):
            return pattern
    raise ValueError(f"{file} holds no records of a run; known: {', '.join(VOLATILE)}")


def _without(value: Any, path: Sequence[str]) -> Any:
    key, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        if not rest:
            return {name: child for name, child in value.items() if key not in {name, "*"}}
        return {name: _without(child, rest) if key in {name, "*"} else child for name, child in value.items()}
    if isinstance(value, list) and key == "*":
        return [_without(child, rest) for child in value] if rest else []
    return value
