"""`otel`: a span for each attempt by OpenTelemetry's conventions for generative AI, as OTLP in JSON.

Written to a file of one `resourceSpans` document a line, or posted to `endpoint` (a collector's `/v1/traces`). Ids come
from the run, the cell and the attempt, so exporting again makes the same spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import batched
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from nel.core.errors import ServiceError, UsageError
from nel.exporters.base import attempts, run_name, text_of
from nel.observability.records import Outcome
from nel.reporting.run_view import CellView, RunView, Unit, UnitDetail

_BATCH = 200
_CLIENT = 3
_ERROR = 2


class OtelExporter:
    """`content`: whether the texts of question and answer are part of the spans; by default they are not."""

    name: ClassVar[str] = "otel"

    def __init__(self, *, endpoint: str = "", content: bool = False) -> None:
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise UsageError(f"endpoint is {endpoint!r}; an address that begins with http:// or https:// is expected")
        self.endpoint = endpoint
        self.content = content

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        if self.endpoint:
            for document in self._documents(run):
                self._post(document)
            return [self.endpoint]
        output.mkdir(parents=True, exist_ok=True)
        path = output / f"{run_name(run)}.otlp.jsonl"
        with path.open("wb") as file:
            for document in self._documents(run):
                file.write(document + b"\n")
        return [str(path)]

    def _documents(self, run: RunView) -> Iterator[bytes]:
        resource = {"attributes": _attributes({"service.name": "nel", "nel.run.id": run.manifest.run_id})}
        scope = {"name": "nel", "version": run.manifest.nel_version}
        for cell in run.cells():
            spans = (self._span(run, cell, unit, detail) for unit, detail in attempts(run, cell))
            for part in batched(spans, _BATCH):
                yield msgspec.json.encode(
                    {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": list(part)}]}]}
                )

    def _span(self, run: RunView, cell: CellView, unit: Unit, detail: UnitDetail) -> dict[str, Any]:
        identity = f"{run.manifest.run_id}/{cell.key}/{unit.problem_idx}/{unit.repeat}".encode()
        start = round((detail.started or 0.0) * 1e9)
        said: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": cell.model,
            "gen_ai.usage.input_tokens": detail.prompt_tokens,
            "gen_ai.usage.output_tokens": detail.completion_tokens,
            "gen_ai.evaluation.name": cell.benchmark,
            "gen_ai.evaluation.score.value": unit.values.get("reward"),
            "nel.cell": cell.name,
            "nel.problem_idx": unit.problem_idx,
            "nel.repeat": unit.repeat,
            "nel.outcome": unit.outcome.value,
            "error.type": unit.failure_category if unit.outcome is Outcome.ERROR else None,
        }
        if detail.finish_reason:
            said["gen_ai.response.finish_reasons"] = [detail.finish_reason]
        if self.content:
            said["gen_ai.input.messages"] = text_of(detail.messages)
            said["gen_ai.output.messages"] = text_of([{"role": "assistant", "content": detail.answer}])
        return {
            "traceId": sha256(identity).hexdigest()[:32],
            "spanId": sha256(b"span" + identity).hexdigest()[:16],
            "name": f"chat {cell.model}".strip(),
            "kind": _CLIENT,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + round(unit.latency_ms * 1e6)),
            "attributes": _attributes(said),
            "status": {"code": _ERROR, "message": detail.error or ""} if unit.outcome is Outcome.ERROR else {},
        }

    def _post(self, document: bytes) -> None:
        from urllib.error import URLError
        from urllib.request import Request, urlopen

        request = Request(self.endpoint, data=document, headers={"Content-Type": "application/json"})  # noqa: S310
        try:
            with urlopen(request, timeout=60):  # noqa: S310 - the scheme was checked
                pass
        except (URLError, OSError) as error:
            raise ServiceError(f"{self.endpoint} did not take the spans: {error}") from error


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
