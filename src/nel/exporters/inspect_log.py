"""`inspect`: a log that Inspect's own reader and viewer open, one for each cell.

A `.eval` log is a zip archive: `header.json` has everything but the samples, `samples/` one JSON document for each, and
`summaries.json` what a list of samples shows. It is written as it is read, so a long run needs no memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from nel.exporters.base import attempts, file_name, run_name, text_of
from nel.observability.records import Outcome
from nel.reporting.run_view import CellView, RunView, Unit, UnitDetail

VERSION = 2
_STOP = {"length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}


class InspectExporter:
    """The name of the scorer is `nel`; further metrics of an attempt are scores beside it."""

    name: ClassVar[str] = "inspect"

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        folder = output / run_name(run)
        folder.mkdir(parents=True, exist_ok=True)
        return [str(_write(run, cell, folder / f"{file_name(cell.name)}.eval")) for cell in run.cells()]


def _write(run: RunView, cell: CellView, path: Path) -> Path:
    start = {"version": VERSION, "eval": _spec(run, cell), "plan": {"name": "nel", "steps": []}}
    summaries = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", msgspec.json.encode(start))
        for unit, detail in attempts(run, cell):
            sample = _sample(cell, unit, detail)
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, msgspec.json.encode(sample))
            kept = ("id", "epoch", "target", "scores", "uuid")
            summaries.append(
                {name: sample[name] for name in kept} | {"input": _shown(sample["input"]), "completed": True}
            )
        archive.writestr("summaries.json", msgspec.json.encode(summaries))
        header = {**start, "status": _status(cell), "results": _results(cell), "stats": _stats(run, cell)}
        if cell.error:
            header["error"] = _error(cell.error)
        archive.writestr("header.json", msgspec.json.encode(header))
    return path


def _spec(run: RunView, cell: CellView) -> dict[str, Any]:
    generation = cell.config.get("generation") or {}
    known = ("temperature", "max_tokens", "top_p", "seed")
    return {
        "eval_id": file_name(f"{run.manifest.run_id}-{cell.name}"),
        "run_id": run.manifest.run_id,
        "created": _time(run.manifest.started),
        "task": cell.benchmark,
        "task_id": cell.key,
        "dataset": {"name": str(cell.data.get("source", cell.benchmark)), "samples": cell.problems},
        "model": cell.model or "none",
        "model_base_url": cell.config.get("base_url"),
        "model_generate_config": {name: generation[name] for name in known if generation.get(name) is not None},
        "config": {"epochs": cell.repeats},
        "packages": {"nel": run.manifest.nel_version},
        "metadata": {"nel": {"identity": cell.identity, "data": cell.data}},
    }


def _status(cell: CellView) -> str:
    return {"completed": "success", "failed": "error", "interrupted": "cancelled", "running": "started"}[cell.stage]


def _results(cell: CellView) -> dict[str, Any]:
    metrics = {}
    for name, metric in cell.metrics.items():
        for part, value in ((name, metric.value), (f"{name} stderr", metric.stderr)):
            if value is not None:
                metrics[part] = {"name": part, "value": value}
    counts = cell.counts
    score = {
        "name": "nel",
        "scorer": "nel",
        "scored_samples": counts.scored,
        "unscored_samples": counts.unscored,
        "metrics": metrics,
    }
    return {
        "total_samples": counts.planned,
        "completed_samples": counts.scored + counts.unscored,
        "scores": [score],
    }


def _stats(run: RunView, cell: CellView) -> dict[str, Any]:
    usage = {}
    if cell.runtime is not None and cell.model:
        usage = {cell.model: _usage(cell.runtime.total_prompt_tokens, cell.runtime.total_completion_tokens)}
    return {
        "started_at": _time(run.manifest.started),
        "completed_at": _time(run.manifest.finished),
        "model_usage": usage,
    }


def _sample(cell: CellView, unit: Unit, detail: UnitDetail) -> dict[str, Any]:
    answer = {"role": "assistant", "content": detail.answer, "source": "generate"}
    scores = {
        ("nel" if name == "reward" else name): {
            "value": value,
            "answer": text_of(detail.extracted) or None,
            "explanation": text_of(detail.scoring.get("details")) or None,
        }
        for name, value in unit.values.items()
        if value is not None
    }
    messages = [_message(message) for message in detail.messages]
    sample: dict[str, Any] = {
        "id": unit.problem_id or unit.problem_idx,
        "epoch": unit.repeat + 1,
        "input": messages,
        "target": text_of(detail.expected),
        "messages": [*messages, answer],
        "output": {
            "model": cell.model,
            "choices": [{"message": answer, "stop_reason": _STOP.get(detail.finish_reason, "stop")}],
            "usage": _usage(detail.prompt_tokens, detail.completion_tokens),
            "time": unit.latency_ms / 1000,
        },
        "scores": scores,
        "metadata": {
            **detail.metadata,
            "nel_expected": detail.expected,
            "nel_outcome": unit.outcome.value,
            "category": unit.category,
        },
        "uuid": file_name(f"{cell.name}-{unit.problem_idx}-{unit.repeat}"),
        "total_time": unit.latency_ms / 1000,
    }
    if unit.outcome is Outcome.ERROR:
        sample["error"] = _error(detail.error or unit.failure_category or "error")
    return sample


def _message(message: dict[str, Any]) -> dict[str, Any]:
    kept = {name: message[name] for name in ("role", "content", "tool_call_id") if message.get(name) is not None}
    content = kept.get("content", "")
    kept["content"] = content if isinstance(content, str) else [_part(part) for part in content]
    return kept


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") == "image_url":
        return {"type": "image", "image": part["image_url"]["url"]}
    return {"type": "text", "text": text_of(part.get("text"))}


def _shown(messages: Sequence[dict[str, Any]]) -> str:
    return text_of(messages[-1]["content"])[:500] if messages else ""


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}


def _error(text: str) -> dict[str, str]:
    return {"message": text, "traceback": text, "traceback_ansi": text}


def _time(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    return datetime.fromtimestamp(float(value or 0), UTC).isoformat()
