"""`ModelRunView`: the runs of this loop as the read model that reports, comparisons and the viewer share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from nel.core.contract import Record, canonical_json, decode_json
from nel.core.errors import RecordError
from nel.core.log import scan_log
from nel.core.rundir import CellEntry, Manifest, Stage
from nel.engine.ledger import RESULTS, TRAJECTORIES
from nel.engine.measure import answer_of
from nel.engine.spill import Spill
from nel.observability.failure_report import FailureReport
from nel.observability.records import AttemptRecord, Outcome, ScoreRecord, prompt_of
from nel.observability.runtime import RuntimeStats
from nel.reporting.run_view import (
    CellView,
    Counts,
    Direction,
    JudgeAgreement,
    JudgeUse,
    Means,
    MetricView,
    NotInOrderError,
    ScoreRow,
    Unit,
    UnitDetail,
)

_CHUNK = 1 << 20
_REPAIR = "Run it again with --resume: what is damaged or missing is made again, and the numbers with it."


class _AttemptHead(msgspec.Struct, tag_field="schema", tag="nel.attempt/1", gc=False):
    attempt: str
    content: str
    occurrence: int = 0


class _Value(msgspec.Struct, gc=False):
    value: float | None = None


class _ScoreHead(msgspec.Struct, tag_field="schema", tag="nel.score/1"):
    attempt: str
    problem_idx: int
    repeat: int = 0
    problem_id: str | None = None
    outcome: Outcome = Outcome.SCORED
    reward: float | None = None
    scorer_rewards: dict[str, _Value] = {}
    expected_answer: Any = None
    category: str | None = None
    cluster: str | None = None
    failure_category: str | None = None
    tokens: int = 0
    latency_ms: float = 0.0


class _ScoreRow(msgspec.Struct, tag_field="schema", tag="nel.score/1", gc=False):
    attempt: str
    outcome: Outcome = Outcome.SCORED
    reward: float | None = None
    scorer_rewards: dict[str, _Value] = {}
    expected_answer: msgspec.Raw = msgspec.Raw(b"null")
    category: str | None = None
    cluster: str | None = None


_Line = tuple[int, int, Any]
_Joined = tuple[tuple[int, int, _AttemptHead], tuple[int, int, _ScoreHead]]


class ModelRunView:
    """A run of kind `models`: numbers from the bundles, units from the two logs."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._cells: list[CellView] | None = None
        self._logs: dict[str, tuple[Path, Path, Spill]] = {}

    @property
    def kind(self) -> str:
        """`models`."""
        return self.manifest.kind

    def cells(self) -> list[CellView]:
        """Every cell that the manifest or the checkpoint names, read once."""
        if self._cells is None:
            ends = _ends(self.path / "checkpoint.json")
            entries = {key: self.manifest.cells.get(key) for key in (*self.manifest.cells, *ends)}
            self._cells = [self._cell(key, entry, ends.get(key)) for key, entry in entries.items()]
        return self._cells

    def units(self, cell: CellView) -> Iterator[Unit]:
        """The attempts of a cell that have a score line, once each.

        A completed cell is streamed; of another one, whose logs may hold several lines for an attempt, the last counts.
        `RecordError` where a completed cell's logs are missing or hold lines that cannot be read.
        """
        directory = self._inside(cell.name)
        problems: list[str] = []
        complete = cell.stage is Stage.COMPLETED
        if complete and cell.bundle is not None and not (directory / RESULTS).is_file():
            raise RecordError(f"{directory / RESULTS} is missing, though the cell is completed", hint=_REPAIR)
        attempts = scan_log(directory / TRAJECTORIES, _AttemptHead, problems=problems)
        scores = scan_log(directory / RESULTS, _ScoreHead, problems=problems)
        in_order = complete and self._one_line_each(directory, cell)
        joined = _join(attempts, scores) if in_order else _join_last(attempts, scores)
        for (offset, length, attempt), (score_offset, score_length, score) in joined:
            yield _unit(attempt, score, (offset, length, score_offset, score_length))
        if problems and complete:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise RecordError(f"{problems[0]}{more}", hint=_REPAIR)

    def score_rows(self, cell: CellView, metric: str) -> Iterator[ScoreRow]:
        """One row per unit, in the order of `units`, several times as fast.

        Only of a completed cell whose logs are whole and run together, which compaction sees to; otherwise
        `NotInOrderError`, which may come after the first rows.
        """
        if cell.stage is not Stage.COMPLETED:
            raise NotInOrderError(cell.name)
        directory = self._inside(cell.name)
        attempts = chain.from_iterable(_decoded(directory / TRAJECTORIES, _AttemptHead))
        scores = chain.from_iterable(_decoded(directory / RESULTS, _ScoreRow))
        rows = 0
        try:
            for attempt, score in zip(attempts, scores, strict=True):
                if attempt.attempt != score.attempt:
                    raise NotInOrderError(cell.name)
                rows += 1
                if metric == "reward":
                    value = score.reward
                else:
                    found = score.scorer_rewards.get(metric)
                    value = found.value if found else None
                asked = _asked(attempt)
                expected = bytes(score.expected_answer)
                if expected[0] in b"{[":  # the keys of a map may stand in any order
                    expected = canonical_json(decode_json(expected))
                digest = sha256(b"%b %b" % (asked.encode(), expected)).digest()
                yield digest, asked, value, score.outcome, score.cluster, score.category
        except (msgspec.DecodeError, ValueError, OSError) as error:
            raise NotInOrderError(str(error)) from None
        if rows != cell.counts.scored + cell.counts.unscored + cell.counts.error:
            raise NotInOrderError(cell.name)

    def detail(self, cell: CellView, unit: Unit) -> UnitDetail:
        """The texts of one attempt, as they were sent, answered and graded."""
        if cell.name not in self._logs:
            directory = self._inside(cell.name)
            self._logs[cell.name] = (directory / TRAJECTORIES, directory / RESULTS, Spill(directory))
        attempts, scores, spill = self._logs[cell.name]
        offset, length, score_offset, score_length = unit.place
        attempt = spill.restore(AttemptRecord.from_json(_read(attempts, offset, length)))
        score = ScoreRecord.from_json(_read(scores, score_offset, score_length))
        model = attempt.model
        return UnitDetail(
            messages=attempt.messages or [{"role": "user", "content": prompt_of(attempt)}],
            answer=answer_of(attempt),
            reasoning=model.reasoning_content if model else None,
            tool_calls=(model.tool_calls if model else None) or [],
            extracted=score.extracted_answer,
            expected=score.expected_answer,
            scoring={
                "method": score.scoring_method,
                "details": score.scoring_details,
                "metrics": msgspec.to_builtins(score.scorer_rewards),
            },
            error=attempt.model_error.message if attempt.model_error else score.error,
            trajectory=attempt.trajectory or [],
            metadata=attempt.seed_metadata,
            started=attempt.timestamp or None,
            prompt_tokens=model.prompt_tokens if model else 0,
            completion_tokens=model.completion_tokens if model else 0,
            finish_reason=model.finish_reason if model else "",
        )

    def _one_line_each(self, directory: Path, cell: CellView) -> bool:
        """Whether the logs hold just one line for each attempt; compaction sees to it, unless the disk was full."""
        counts = cell.counts
        attempted = counts.scored + counts.unscored + counts.error
        return all(_count_lines(directory / log) == attempted for log in (TRAJECTORIES, RESULTS))

    def _cell(self, key: str, entry: CellEntry | None, end: _End | None) -> CellView:
        cell = CellView(
            key=key,
            name=entry.dir if entry else key,
            benchmark=entry.benchmark if entry else key,
            model=entry.model if entry else "",
            variant=entry.variant if entry else "",
            stage=end.stage if end else self._stage_without_end(),
            error=end.error if end else None,
            error_category=end.category if end else None,
        )
        planned = entry.info if entry else {}
        cell.repeats = planned.get("repeats", 1)
        cell.bounds, cell.cluster_by = planned.get("bounds"), planned.get("cluster_by", "cluster")
        cell.config, cell.identity = planned.get("config", {}), planned.get("identity", {})
        cell.data, cell.versions = planned.get("data", {}), planned.get("versions", {})
        path = self._bundle_of(cell, end)
        if path is not None:
            _fill(cell, path, self.path)
        elif cell.stage is Stage.COMPLETED:
            _mark_unreadable(cell, f"{cell.name} holds no eval-*.json, though it is completed")
        if cell.stage is Stage.FAILED:
            cell.headline, cell.metrics, cell.categories = None, {}, {}
        return cell

    def _stage_without_end(self) -> Stage:
        return Stage.RUNNING if self.manifest.stage is Stage.RUNNING else Stage.INTERRUPTED

    def _bundle_of(self, cell: CellView, end: _End | None) -> Path | None:
        if end is not None and end.bundle_path and self._inside(end.bundle_path).is_file():
            return self._inside(end.bundle_path)
        found = sorted(self._inside(cell.name).glob("eval-*.json"))
        return found[-1] if found else None

    def _inside(self, relative: str) -> Path:
        path = self.path / relative
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise RecordError(f"{self.path}: the run names {relative!r}, which lies outside of it")
        return path


class _End(msgspec.Struct):
    """How the checkpoint says that a cell ended."""

    stage: Stage = Stage.COMPLETED
    bundle_path: str | None = None
    error: str | None = None
    category: str | None = None


class _Checkpoint(msgspec.Struct):
    completed_benchmarks: dict[str, _End] = {}
    failed_benchmarks: dict[str, _End] = {}
    interrupted_benchmarks: dict[str, _End] = {}


def _ends(path: Path) -> dict[str, _End]:
    if not path.is_file():
        return {}
    try:
        checkpoint = msgspec.convert(decode_json(path.read_bytes()), _Checkpoint)
    except (msgspec.ValidationError, RecordError) as error:
        raise RecordError(f"{path}: {error}", hint="Restore the file, or run again with --resume.") from None
    ends: dict[str, _End] = {}
    for stage, cells in (
        (Stage.COMPLETED, checkpoint.completed_benchmarks),
        (Stage.FAILED, checkpoint.failed_benchmarks),
        (Stage.INTERRUPTED, checkpoint.interrupted_benchmarks),
    ):
        for key, end in cells.items():
            end.stage = stage
            ends[key] = end
    return ends


class _Benchmark(msgspec.Struct):
    name: str
    samples: int = 0
    repeats: int = 1
    primary: str | None = None
    scores: dict[str, MetricView] = {}
    categories: dict[str, MetricView] = {}


class _Bundle(msgspec.Struct):
    """What a report needs of `eval-<name>.json`."""

    benchmark: _Benchmark
    outcome: str = "completed"
    config: dict[str, Any] = {}
    config_hash: str = ""
    counts: Counts = Counts()
    means: Means = Means()
    error_policy: str | None = None
    max_error_rate: float | None = None
    identity: dict[str, Any] = {}
    data: dict[str, Any] = {}
    versions: dict[str, str] = {}
    judges: dict[str, JudgeUse] = {}
    agreement: dict[str, JudgeAgreement] = {}
    runtime: dict[str, Any] | None = None
    failures: dict[str, Any] | None = None


def _fill(cell: CellView, path: Path, run: Path) -> None:
    """Gives `cell` the numbers of its bundle; a bundle that cannot be read is the cell's failure, not the report's."""
    try:
        bundle = msgspec.convert(decode_json(path.read_bytes()), _Bundle)
        cell.runtime = _record(RuntimeStats, bundle.runtime)
        cell.failures = _record(FailureReport, bundle.failures)
    except (msgspec.ValidationError, RecordError) as error:
        _mark_unreadable(cell, f"{path.relative_to(run)}: {error}")
        return
    benchmark = bundle.benchmark
    cell.bundle = path.relative_to(run).as_posix()
    cell.degraded = bundle.outcome == "degraded"
    cell.metrics = {name: _described(name, metric) for name, metric in benchmark.scores.items()}
    cell.headline = benchmark.primary or next(iter(benchmark.scores), None)
    main = cell.headline_metric
    cell.categories = benchmark.categories
    for metric in benchmark.categories.values():
        if main is not None:
            metric.unit, metric.direction, metric.of = main.unit, main.direction, main.of
    cell.counts, cell.means = bundle.counts, bundle.means
    cell.problems, cell.repeats = benchmark.samples, benchmark.repeats
    limits = {"error_policy": bundle.error_policy, "max_error_rate": bundle.max_error_rate}
    cell.config = {**bundle.config, **{name: value for name, value in limits.items() if value is not None}}
    cell.config["config_hash"] = bundle.config_hash
    cell.identity, cell.data, cell.versions = bundle.identity, bundle.data, bundle.versions
    cell.judges, cell.agreement = bundle.judges, bundle.agreement


def _record[T: Record](cls: type[T], value: dict[str, Any] | None) -> T | None:
    return None if value is None else cls.from_dict({"schema": cls.__struct_config__.tag, **value})


def _mark_unreadable(cell: CellView, reason: str) -> None:
    cell.stage = Stage.FAILED
    cell.error = cell.error or f"{reason}. {_REPAIR}"


def _described(name: str, metric: MetricView) -> MetricView:
    """The metric with its unit and direction: rewards are better when higher; what a bundle says itself stands."""
    if name == "mean_reward" or name.startswith(("pass@", "pass^", "maj@")):
        metric.direction = Direction.HIGHER
        metric.unit = metric.unit or ("" if name == "mean_reward" else "fraction")
        metric.of = "reward" if name in {"mean_reward", "pass@1"} else None
    elif name.startswith("scorer:"):
        metric.of = name.removeprefix("scorer:")
    return metric


def _unit(attempt: _AttemptHead, score: _ScoreHead, place: tuple[int, ...]) -> Unit:
    asked = _asked(attempt)
    # No two units share this text: a digest in hex holds neither a colon nor a space.
    identity = b"%b %b" % (asked.encode(), canonical_json(score.expected_answer))
    return Unit(
        unit_key=sha256(identity).hexdigest()[:32],
        asked=asked,
        repeat=score.repeat,
        cluster=score.cluster,
        category=score.category,
        outcome=score.outcome,
        values={"reward": score.reward, **{name: metric.value for name, metric in score.scorer_rewards.items()}},
        problem_idx=score.problem_idx,
        problem_id=score.problem_id,
        failure_category=score.failure_category,
        tokens=score.tokens,
        latency_ms=score.latency_ms,
        place=place,
    )


def _asked(attempt: _AttemptHead) -> str:
    return f"{attempt.occurrence}:{attempt.content}" if attempt.occurrence else attempt.content


def _decoded[T](path: Path, type_: type[T]) -> Iterator[list[T]]:
    """The whole lines of a log, many at a time."""
    decode = msgspec.json.Decoder(type_).decode_lines
    rest = b""
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            whole, newline, tail = chunk.rpartition(b"\n")
            if newline:
                yield decode(rest + whole)
                rest = tail
            else:
                rest += chunk


def _join(attempts: Iterator[_Line], scores: Iterator[_Line]) -> Iterator[_Joined]:
    """Pairs each score with its attempt, in memory of how far the two logs are apart; none has two lines."""
    waiting: dict[str, _Line] = {}
    for score in scores:
        wanted = score[2].attempt
        while wanted not in waiting and (line := next(attempts, None)) is not None:
            waiting[line[2].attempt] = line
        if wanted in waiting:
            yield waiting.pop(wanted), score


def _join_last(attempts: Iterator[_Line], scores: Iterator[_Line]) -> Iterator[_Joined]:
    """Pairs the last score of each problem and repeat with the last line of its attempt, in problem order."""
    by_attempt = {line[2].attempt: line for line in attempts}
    last = {(line[2].problem_idx, line[2].repeat): line for line in scores}
    for _, score in sorted(last.items(), key=lambda item: item[0]):
        if score[2].attempt in by_attempt:
            yield by_attempt[score[2].attempt], score


def _count_lines(path: Path) -> int:
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_CHUNK), b""))


def _read(path: Path, offset: int, length: int) -> bytes:
    # A report reads every attempt: a file object for each would cost more than its text.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.pread(file, length, offset)
    finally:
        os.close(file)
