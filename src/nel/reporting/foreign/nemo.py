"""Result directories of NeMo Evaluator: a folder for each benchmark with `eval-*.json` and `results.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from nel.core.errors import RunDirError
from nel.observability.records import Outcome
from nel.reporting.foreign.rows import ForeignCell, ForeignRow, ForeignRun, asked_of, number_of
from nel.reporting.run_view import UnitDetail

KIND = "nemo-evaluator"
_DEEP = 3
_ERRORS = ("error", "model_error", "infra_error")


def open_nemo(path: Path) -> ForeignRun | None:
    """The results below `path`, of all benchmarks; None where there are none."""
    if not path.is_dir():
        return None
    bundles = [found for found in sorted(_files(path, "eval-*.json")) if not _is_ours(found)]
    rows = {found.parent for found in _files(path, "results.jsonl") if not (found.parent / "manifest.json").exists()}
    if not bundles:
        return None
    cells = []
    for bundle in _newest(bundles):
        if bundle.parent not in rows:
            raise RunDirError(
                f"{bundle} has no results.jsonl beside it, so there is nothing to pair or to count.",
                hint="NeMo Evaluator writes it at the end of a run; copy the whole folder of the benchmark.",
            )
        cells.append(_cell(path, bundle))
    first = _read(bundles[0])
    return ForeignRun(path, KIND, str(first.get("run_id") or path.name), _stamp(bundles[0]), cells)


def _files(path: Path, pattern: str) -> Iterator[Path]:
    for depth in range(_DEEP):
        yield from path.glob("*/" * depth + pattern)


def _newest(bundles: list[Path]) -> list[Path]:
    """The last bundle of each folder: their names carry the time."""
    return list({bundle.parent: bundle for bundle in bundles}.values())


def _is_ours(bundle: Path) -> bool:
    return str(_read(bundle).get("schema", "")).startswith("nel.")


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except (OSError, ValueError) as error:
        raise RunDirError(f"{path} cannot be read: {error}", hint="Is the file whole? Copy it again.") from None
    if not isinstance(value, dict):
        raise RunDirError(f"{path} holds no JSON object.")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"it holds {constant}, which is no JSON")


def _stamp(path: Path) -> float:
    return path.stat().st_mtime


def _cell(root: Path, bundle: Path) -> ForeignCell:
    told = _read(bundle)
    benchmark = told.get("benchmark") or {}
    config = told.get("config") or {}
    name = bundle.parent.relative_to(root).as_posix()
    planned = int(benchmark.get("samples") or 0) * int(benchmark.get("repeats") or 1)
    return ForeignCell(
        name=str(benchmark.get("name") or config.get("benchmark") or bundle.parent.name) if name == "." else name,
        benchmark=str(benchmark.get("name") or config.get("benchmark") or bundle.parent.name),
        model=str(config.get("model") or ""),
        rows=partial(_rows, bundle.parent / "results.jsonl"),
        planned=planned or None,
        config=config,
        bundle=str(bundle.relative_to(root)),
    )


def _rows(path: Path) -> Iterator[ForeignRow]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.isspace():
                continue
            try:
                row = json.loads(line, parse_constant=_refuse)
            except ValueError as error:
                raise RunDirError(
                    f"{path}:{number}: {error}", hint="A half-written last line can be removed; scores need numbers."
                ) from None
            yield _row(row, f"{path}:{number}")


def _row(row: dict[str, Any], place: str) -> ForeignRow:
    details = row.get("scoring_details") or {}
    failed = next((str(details[name]) for name in _ERRORS if details.get(name)), None)
    reward = number_of(row.get("reward"), f"{place}: reward")
    outcome = Outcome.ERROR if failed else Outcome.UNSCORED if reward is None else Outcome.SCORED
    further = row.get("scorer_rewards") or {}
    values = {"reward": None if failed else reward}
    for name, value in further.items():
        values[name] = number_of(value, f"{place}: scorer_rewards.{name}")
    metadata = row.get("metadata") or {}
    return ForeignRow(
        problem_idx=int(row["problem_idx"]),
        repeat=int(row.get("repeat") or 0),
        values=values,
        outcome=outcome,
        asked=asked_of(row["prompt"]) if row.get("prompt") else "",
        expected=row.get("expected_answer"),
        category=metadata.get("category"),
        failure_category="solver_error" if failed else None,
        tokens=int(row.get("tokens") or 0),
        latency_ms=float(row.get("latency_ms") or 0.0),
        detail=_detail(row, failed),
    )


def _detail(row: dict[str, Any], failed: str | None) -> Callable[[], UnitDetail]:
    def read() -> UnitDetail:
        return UnitDetail(
            messages=[{"role": "user", "content": row.get("prompt") or ""}],
            answer=str(row.get("model_response") or ""),
            extracted=row.get("extracted_answer"),
            expected=row.get("expected_answer"),
            scoring={"details": row.get("scoring_details") or {}},
            error=failed,
            trajectory=row.get("trajectory") or [],
            metadata=row.get("metadata") or {},
        )

    return read
