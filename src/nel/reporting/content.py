"""What every report says, in plain text: rows, warnings and facts of a run, before any format escapes them."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nel.core.contract import canonical_json
from nel.core.errors import RecordError
from nel.core.rundir import Stage
from nel.core.secrets import strip_credentials
from nel.observability.format import format_count, format_duration, format_money, format_number, format_percent
from nel.reporting.run_view import CellView, JudgeUse, MetricView, RunView
from nel.reporting.text import excerpt, one_line

ABSENT = "–"
_LONG = 160
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of results."""

    cell: str
    model: str
    metric: str
    value: str
    interval: str
    problems: str
    """Problems that were measured x repeats."""
    scored: str
    unscored: str
    error: str
    status: str
    """`completed`, `degraded`, or what else became of the cell."""


def rows(view: RunView) -> list[Row]:
    """The table of results: one row a cell, whatever became of it."""
    return [_row(cell) for cell in view.cells()]


def _row(cell: CellView) -> Row:
    metric = cell.headline_metric
    measured = metric is not None or cell.counts.planned > 0
    return Row(
        cell=cell.name,
        model=cell.model or ABSENT,
        metric=cell.headline or ABSENT,
        value=number(metric.value if metric else None),
        interval=interval(metric),
        problems=f"{format_count(metric.n if metric else 0)} × {cell.repeats}" if measured else ABSENT,
        scored=format_count(cell.counts.scored) if measured else ABSENT,
        unscored=format_count(cell.counts.unscored) if measured else ABSENT,
        error=format_count(cell.counts.error) if measured else ABSENT,
        status=status(cell),
    )


def status(cell: CellView) -> str:
    """What became of a cell, in one word."""
    return "degraded" if cell.degraded and cell.stage == Stage.COMPLETED else str(cell.stage)


def number(value: float | None) -> str:
    """A score or a bound as it is shown; a dash where there is none."""
    return ABSENT if value is None else format_number(value)


def interval(metric: MetricView | None) -> str:
    """`[lower, upper]`, with its level where that is not 95 %; a bound of 0 is a bound."""
    if metric is None or metric.ci_lower is None or metric.ci_upper is None:
        return ABSENT
    level = "" if metric.level == 0.95 else f" ({format_percent(metric.level)})"
    return f"[{number(metric.ci_lower)}, {number(metric.ci_upper)}]{level}"


def moment(seconds: float | None) -> str:
    """A Unix time in UTC, to the second."""
    return ABSENT if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def run_facts(view: RunView) -> list[tuple[str, str]]:
    """Which run this is: id, stage, when, and the software."""
    manifest = view.manifest
    facts = [("Run", manifest.run_id), ("Stage", str(manifest.stage)), ("Started", moment(manifest.started))]
    if manifest.finished is not None:
        took = format_duration(max(0.0, manifest.finished - manifest.started))
        facts.append(("Finished", f"{moment(manifest.finished)} (after {took})"))
    facts.append(("Software", f"nel {manifest.nel_version}, Python {manifest.python}, {manifest.platform}"))
    if manifest.shard:
        facts.append(("Shard", plain(manifest.shard)))
    return facts


def warnings(view: RunView) -> list[str]:
    """What a reader must know before believing the table; failed cells come first."""
    manifest = view.manifest
    said: list[str] = []
    if manifest.stage == Stage.RUNNING:
        said.append("The run has not finished: it is still going, or it was killed. Numbers may change.")
    if manifest.stage == Stage.INTERRUPTED:
        said.append("The run was interrupted; --resume continues it.")
    if manifest.error:
        said.append(f"The run ended with an error: {one_line(manifest.error)}")
    for cell in sorted(view.cells(), key=lambda cell: cell.stage != Stage.FAILED):
        said.extend(f"{one_line(cell.name)}: {text}" for text in _cell_warnings(cell))
    said.extend(one_line(text) for text in manifest.warnings)
    return said


def _cell_warnings(cell: CellView) -> Iterator[str]:
    counts, metric = cell.counts, cell.headline_metric
    if cell.stage == Stage.FAILED:
        yield f"failed: {one_line(cell.error or 'no reason was recorded')}"
    elif cell.stage != Stage.COMPLETED:
        reason = f": {one_line(cell.error)}" if cell.error else ""
        yield f"{cell.stage}{reason}; its numbers are missing or partial."
    if cell.degraded:
        limit = cell.config.get("max_error_rate")
        above = f", above the limit of {format_percent(limit)}" if isinstance(limit, int | float) else ""
        rate = format_percent(counts.error / counts.planned) if counts.planned else ABSENT
        yield f"degraded: {rate} of the planned attempts ended in errors{above}."
    if counts.error:
        without, zero = number(cell.means.excluding_errors), number(cell.means.errors_as_zero)
        yield (
            f"{_attempts(counts.error)} not measured (errors): "
            f"the mean reward is {without} without them, {zero} with each as 0."
        )
    if counts.unscored:
        yield f"{_attempts(counts.unscored)} answered but not graded: in no mean."
    aside = cell.data.get("excluded")
    if isinstance(aside, Mapping):
        reasons = "; ".join(f"{one_line(str(why))} ({count})" for why, count in aside.get("reasons", {}).items())
        rows = aside.get("rows", 0)
        yield (
            f"{format_count(rows)} row{'s' * (rows != 1)} of the data set aside and not asked: {reasons}; "
            f"the first is {one_line(str(aside.get('first', '')))}."
        )
    missing = counts.planned - counts.scored - counts.unscored - counts.error
    if missing > 0:
        yield f"{_attempts(missing)} planned but not made."
    if metric is not None and metric.value is None:
        yield "no attempt was scored, so there is no value."
    elif metric is not None and interval(metric) == ABSENT:
        yield f"{cell.headline} has no interval: {metric.method or 'too few problems'}."


def _attempts(count: int) -> str:
    return f"{format_count(count)} attempt{'s' * (count != 1)}"


def runtime_facts(cell: CellView) -> list[tuple[str, str]]:
    """Latency, tokens, throughput and cost of a cell; empty without runtime statistics."""
    stats = cell.runtime
    if stats is None:
        return []
    facts = [
        ("Elapsed", format_duration(stats.elapsed_seconds)),
        ("Latency p50 / p90 / p99", _percentiles(stats.latency_percentiles_ms)),
    ]
    if stats.ttft_percentiles_ms:
        facts.append(("Time to first token p50 / p90 / p99", _percentiles(stats.ttft_percentiles_ms)))
    prompt, completion = format_count(stats.total_prompt_tokens), format_count(stats.total_completion_tokens)
    reasoning = format_count(stats.total_reasoning_tokens)
    facts += [
        ("Tokens", f"{format_count(stats.total_tokens)} ({prompt} prompt, {completion} completion)"),
        ("Reasoning tokens", f"{reasoning} of the completion"),
        ("Tokens per second", number(stats.tokens_per_second)),
        ("Attempts per second", number(stats.steps_per_second)),
        ("Requests", f"{format_count(stats.total_tries)} ({format_count(stats.total_retries)} repeated)"),
    ]
    if stats.cache.hits:
        facts.append(("From the response cache", f"{format_count(stats.cache.hits)} replies"))
    if stats.cost is not None:
        facts.append(("Cost", format_money(stats.cost)))
    if stats.finish_reason_counts:
        facts.append(("Finish reasons", plain(stats.finish_reason_counts)))
    return facts


def judge_facts(cell: CellView) -> list[tuple[str, str]]:
    """By metric: requests, tokens, cost and latency of its judges, and how far those of an ensemble agree."""
    facts = [(metric, _judged(use)) for metric, use in cell.judges.items()]
    for metric, found in cell.agreement.items():
        alpha = found.krippendorff_alpha
        shown = "unknown, since all ratings are the same" if alpha is None else number(alpha)
        judges = f"{found.level} ratings of {', '.join(found.judges)}, {format_count(found.ratings)} each"
        facts.append((f"{metric}: Krippendorff's alpha", f"{shown} ({judges})"))
    return facts


def _judged(use: JudgeUse) -> str:
    parts = [f"{format_count(use.requests)} replies"]
    parts += [f"{format_count(use.unreadable)} could not be read"] if use.unreadable else []
    parts += [f"{format_count(use.cached)} from the cache"] if use.cached else []
    parts += [f"{format_count(use.prompt_tokens + use.completion_tokens)} tokens"]
    parts += [f"cost {format_money(use.cost)}"] if use.cost is not None else []
    parts += [f"{format_duration(use.mean_latency_ms / 1000)} a reply"] if use.mean_latency_ms is not None else []
    return ", ".join(parts)


def _percentiles(values: Mapping[str, float]) -> str:
    return " / ".join(
        format_duration(values[name] / 1000) if name in values else ABSENT for name in ("p50", "p90", "p99")
    )


@dataclass(frozen=True, slots=True)
class Example:
    """One attempt that stands for a failure category."""

    category: str
    problem: str
    """The problem's id, else its place in the data."""
    repeat: int
    error: str
    prompt: str
    """The last thing that was asked; empty where the logs do not hold it."""
    answer: str


def examples(view: RunView, cell: CellView) -> list[Example]:
    """The examples of the failure report with their texts, which are looked up in the logs; the search ends with the
    last one found."""
    if cell.failures is None:
        return []
    wanted = {
        (item.problem_idx, item.repeat) for found in cell.failures.categories.values() for item in found.exemplars
    }
    texts = _texts(view, cell, wanted)
    return [
        Example(name, ident or str(item.problem_idx), item.repeat, item.error, prompt, answer)
        for name, found in cell.failures.categories.items()
        for item in found.exemplars
        for ident, prompt, answer in [texts.get((item.problem_idx, item.repeat), (None, "", ""))]
    ]


def _texts(view: RunView, cell: CellView, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], _Texts]:
    texts: dict[tuple[int, int], _Texts] = {}
    # A report of damaged logs is still a report: its numbers come from elsewhere.
    with contextlib.suppress(RecordError):
        for unit in view.units(cell) if wanted else ():
            place = (unit.problem_idx, unit.repeat)
            if place in wanted:
                detail = view.detail(cell, unit)
                texts[place] = (unit.problem_id, _last_text(detail.messages), detail.answer)
                if len(texts) == len(wanted):
                    break
    return texts


_Texts = tuple[str | None, str, str]


def _last_text(messages: Sequence[Mapping[str, Any]]) -> str:
    content = messages[-1].get("content") if messages else ""
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")


def identity_facts(cell: CellView) -> list[tuple[str, str]]:
    """Everything that made a cell's numbers: model, endpoint, parameters, prompts, data, scorers, versions."""
    facts = [("model", cell.model)] if cell.model and "model" not in cell.config else []
    facts += _flat(cell.config)
    facts += _flat(cell.data, "data")
    facts += _flat(cell.identity, "identity")
    facts += _flat(cell.versions)
    return facts


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(value, Mapping) and any(isinstance(child, Mapping | list) for child in value.values()):
            yield from _flat(value, path)
        elif value not in (None, "", {}, []):
            yield path, plain(value)


def plain(value: Any) -> str:
    """A value for a person, on one line: URLs without credentials, long texts as their beginning and their digest."""
    if isinstance(value, str):
        if _URL.fullmatch(value):
            return strip_credentials(value)
        if len(value) > _LONG:
            digest = hashlib.sha256(value.encode()).hexdigest()[:12]
            return f"{excerpt(value, _LONG)} ({format_count(len(value))} characters, sha256 {digest})"
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={plain(child)}" for name, child in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(plain(child) for child in value)
    return excerpt(canonical_json(value).decode(), _LONG)
