"""Logs of Inspect: an `.eval` archive or a `.json` file for each task; the package itself is not needed."""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from nel.core.errors import RunDirError
from nel.observability.records import Outcome
from nel.reporting.foreign.rows import ForeignCell, ForeignRow, ForeignRun, asked_of
from nel.reporting.run_view import UnitDetail

KIND = "inspect"
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": None}
"""What Inspect's scorers say of an answer: correct, partial, incorrect, no answer."""


def open_inspect(path: Path) -> ForeignRun | None:
    """The logs at `path`: one log, or a folder of them; None where there are none."""
    if path.is_dir():
        logs = sorted(path.glob("*.eval")) or [found for found in sorted(path.glob("*.json")) if _is_log(found)]
    else:
        logs = [path] if path.suffix == ".eval" or (path.suffix == ".json" and _is_log(path)) else []
    if not logs:
        return None
    headers = [_header(log) for log in logs]
    cells = [_cell(log, header) for log, header in zip(logs, headers, strict=True)]
    first = headers[0]["eval"]
    return ForeignRun(path, KIND, str(first.get("run_id") or path.stem), _time(first.get("created")), cells)


def _is_log(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return b'"eval"' in head and b'"version"' in head and b'"status"' in head


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise RunDirError(
            f"{path} is no whole log: {error}",
            hint="A log of a run that was killed has to be recovered by Inspect first: inspect log recover",
        ) from None


def _document(text: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise RunDirError(f"{place} cannot be read: {error}", hint="Is the file whole? Copy it again.") from None
    if not isinstance(value, dict):
        raise RunDirError(f"{place} holds no JSON object.")
    return value


def _header(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return _document(path.read_bytes(), str(path))
    with _archive(path) as archive:
        for name in ("header.json", "_journal/start.json"):
            if name in archive.namelist():
                return _document(archive.read(name), f"{path}, {name}")
    raise RunDirError(f"{path} holds neither a header nor a journal.", hint="It is no log of Inspect, or a broken one.")


def _cell(path: Path, header: dict[str, Any]) -> ForeignCell:
    said = header["eval"]
    epochs = (said.get("config") or {}).get("epochs") or 1
    samples = (said.get("dataset") or {}).get("samples")
    return ForeignCell(
        name=path.stem,
        benchmark=str(said.get("task") or path.stem).rpartition("/")[2],
        model=str(said.get("model") or "").rpartition("/")[2],
        rows=partial(_rows, path),
        planned=int(samples) * int(epochs) if samples else None,
        config={"task": said.get("task"), "model": said.get("model"), "status": header.get("status")},
        bundle=path.name,
    )


def _rows(path: Path) -> Iterator[ForeignRow]:
    places: dict[str, int] = {}
    for place, sample in _samples(path):
        key = str(sample.get("id"))
        yield _row(sample, places.setdefault(key, len(places)), place)


def _samples(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix == ".json":
        for number, sample in enumerate(_document(path.read_bytes(), str(path)).get("samples") or [], start=1):
            yield f"{path}, sample {number}", sample
        return
    with _archive(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
        for name in sorted(names, key=_natural):
            yield f"{path}, {name}", _document(archive.read(name), f"{path}, {name}")


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _row(sample: dict[str, Any], problem_idx: int, place: str) -> ForeignRow:
    scores = sample.get("scores") or {}
    values: dict[str, float | None] = {}
    for number, (name, score) in enumerate(scores.items()):
        values["reward" if number == 0 else name] = _value(score.get("value"), f"{place}: score {name}")
    error = (sample.get("error") or {}).get("message")
    reward = values.get("reward")
    outcome = Outcome.ERROR if error else Outcome.UNSCORED if reward is None else Outcome.SCORED
    if error:
        values = dict.fromkeys(values, None) or {"reward": None}
    output = sample.get("output") or {}
    usage = output.get("usage") or {}
    return ForeignRow(
        problem_idx=problem_idx,
        repeat=int(sample.get("epoch") or 1) - 1,
        values=values or {"reward": None},
        outcome=outcome,
        asked=_asked(sample.get("input")),
        expected=_expected(sample),
        problem_id=str(sample["id"]) if sample.get("id") is not None else None,
        failure_category="solver_error" if error else None,
        tokens=int(usage.get("total_tokens") or 0),
        latency_ms=float(output.get("time") or sample.get("total_time") or 0.0) * 1000,
        detail=_detail(sample, error),
    )


def _expected(sample: dict[str, Any]) -> Any:
    """The target, which Inspect keeps as a text; a log that NEL wrote also says what it was."""
    metadata = sample.get("metadata") or {}
    return metadata["nel_expected"] if "nel_expected" in metadata else sample.get("target")


def _value(value: Any, place: str) -> float | None:
    if isinstance(value, str) and value in _LETTERS:
        return _LETTERS[value]
    if isinstance(value, bool | int | float):
        return float(value) if math.isfinite(value) else None  # NaN is how Inspect says that it is unscored
    if isinstance(value, dict) and len(value) == 1:
        return _value(next(iter(value.values())), place)
    if value is None or isinstance(value, str | dict | list):
        return None
    raise RunDirError(f"{place}: {value!r} is no score.")


def _asked(given: Any) -> str:
    if isinstance(given, str):
        return asked_of(given)
    if not given:
        return ""
    messages = [{"role": message.get("role"), "content": message.get("content")} for message in given]
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    rest = messages[1:] if system else messages
    if len(rest) == 1 and rest[0]["role"] == "user" and isinstance(rest[0]["content"], str):
        return asked_of(rest[0]["content"], system)
    return asked_of(rest, system)


def _detail(sample: dict[str, Any], error: str | None) -> Callable[[], UnitDetail]:
    def read() -> UnitDetail:
        given = sample.get("input")
        output = sample.get("output") or {}
        choices = output.get("choices") or [{}]
        answer = (choices[0].get("message") or {}).get("content", "")
        scores = sample.get("scores") or {}
        first: dict[str, Any] = next(iter(scores.values()), {})
        return UnitDetail(
            messages=[{"role": "user", "content": given}] if isinstance(given, str) else list(given or []),
            answer=answer if isinstance(answer, str) else "".join(part.get("text", "") for part in answer),
            extracted=first.get("answer"),
            expected=_expected(sample),
            scoring={"details": {name: score.get("explanation") for name, score in scores.items()}},
            error=error,
            metadata=sample.get("metadata") or {},
        )

    return read


def _time(value: Any) -> float:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return 0.0
