"""From the two logs of a cell to its bundle, runtime statistics and failure report: the same logs, the same bytes."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nel.core.contract import encode_json
from nel.core.disk import write_atomic
from nel.core.errors import RecordError
from nel.core.log import scan_log
from nel.engine.judges import JudgeDetails, JudgeTotals
from nel.engine.ledger import RESULTS, SUPERSEDED, TRAJECTORIES, Ledger
from nel.engine.selection import Indexes
from nel.metrics.aggregates import estimate_aggregate
from nel.metrics.estimate import Estimate
from nel.metrics.majority import estimate_maj_at_k
from nel.metrics.mean import category_breakdown, estimate_mean
from nel.metrics.passk import estimate_pass_at_k, estimate_pass_hat_k
from nel.observability.collector import ArtifactCollector
from nel.observability.records import ModelErrorInfo, Outcome, Timing


class AttemptRow(msgspec.Struct, tag_field="schema", tag="nel.attempt/1"):
    """What the statistics need of an attempt's line."""

    attempt: str
    problem_idx: int
    repeat: int = 0
    timestamp: float = 0.0
    timing: Timing = msgspec.field(default_factory=Timing)
    model: ModelRow | None = None
    model_error: ModelErrorInfo | None = None
    failure_category: str | None = None
    retries: int = 0


class ModelRow(msgspec.Struct):
    """What the statistics need of a reply: its numbers."""

    model: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    latency_ms: float = 0.0
    ttft_ms: float | None = None
    cost: float | None = None
    tries: int = 1
    cached: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion."""
        return self.prompt_tokens + self.completion_tokens


class MetricRow(msgspec.Struct):
    """One metric of a score's line."""

    value: float | None = None
    outcome: Outcome = Outcome.SCORED
    details: JudgeDetails = msgspec.field(default_factory=JudgeDetails)


class ScoreRow(msgspec.Struct, tag_field="schema", tag="nel.score/1"):
    """What the statistics need of a score's line."""

    attempt: str
    problem_idx: int
    repeat: int = 0
    outcome: Outcome = Outcome.SCORED
    reward: float | None = None
    scorer_rewards: dict[str, MetricRow] = {}
    extracted_answer: Any = None
    category: str | None = None
    cluster: str | None = None
    failure_category: str | None = None
    error: str | None = None


Pair = tuple[AttemptRow, ScoreRow]


class CellInfo(msgspec.Struct, kw_only=True):
    """What is known of a cell beside its logs; kept in the manifest."""

    name: str
    config: dict[str, Any]
    """What was run, in the reference's names: benchmark, model, base_url, repeats, generation, ..."""
    identity: dict[str, Any]
    """Solver and scoring identities, in clear."""
    data: dict[str, Any]
    """What the problems were made from."""
    planned: int
    repeats: int
    bounds: tuple[float, float] | None = None
    """The range of the rewards, where the benchmark declares it."""
    cluster_by: str = "cluster"
    """What the clusters are."""
    aggregates: dict[str, list[str]] = {}
    """Scores that are no mean of the rewards (`nel.metrics.aggregates`), each with the metrics that it is made of."""
    sequential: dict[str, Any] | None = None
    """Where a rule ended the cell early, or could have: the rule, where it ended, the intervals that hold whenever one
    looks (`nel.engine.stopping`)."""
    error_policy: str = "exclude"
    max_error_rate: float = 0.05
    versions: dict[str, str] = {}
    run_id: str = ""
    choice: dict[str, Any] = {}
    """Everything that the attempts and scores depend on; its digest is the plan's."""


def pairs_from_logs(cell: Path) -> Iterator[Pair]:
    """The attempts of a compacted cell with their scores; `RecordError` where the two logs do not run together."""
    attempts = scan_log(cell / TRAJECTORIES, AttemptRow)
    scores = scan_log(cell / RESULTS, ScoreRow)
    for (_, _, attempt), (_, _, score) in zip(attempts, scores, strict=True):
        if attempt.attempt != score.attempt:
            raise RecordError(
                f"{cell}: trajectories.jsonl and results.jsonl do not hold the same attempts in the same order",
                hint="The run did not finish; continue it with `nel eval resume`.",
            )
        yield attempt, score


def pairs_from_ledger(cell: Path, ledger: Ledger, indexes: Indexes, repeats: int) -> Iterator[Pair]:
    """The attempts that a run has made so far, wherever their lines stand, in problem order."""
    attempt_decoder = msgspec.json.Decoder(AttemptRow)
    score_decoder = msgspec.json.Decoder(ScoreRow)
    files: dict[str, Any] = {}
    try:
        for name in (TRAJECTORIES, RESULTS, SUPERSEDED):
            if (cell / name).exists():
                files[name] = (cell / name).open("rb")

        def line(log: str, file: int, offset: int, length: int) -> bytes:
            source = files[SUPERSEDED if file else log]
            source.seek(offset)
            return bytes(source.read(length))

        for position in indexes.argsort(kind="stable"):
            for unit in range(position * repeats, (position + 1) * repeats):
                if ledger.score_file[unit] < 0:
                    continue
                where = (ledger.attempt_file[unit], ledger.attempt_offset[unit], ledger.attempt_length[unit])
                attempt = attempt_decoder.decode(line(TRAJECTORIES, *map(int, where)))
                where = (ledger.score_file[unit], ledger.score_offset[unit], ledger.score_length[unit])
                score = score_decoder.decode(line(RESULTS, *map(int, where)))
                attempt.problem_idx = score.problem_idx = int(indexes[position])
                yield attempt, score
    finally:
        for file in files.values():
            file.close()


class _Names:
    """A small number for each name, -1 for none; no memory before the first name."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._column = array("i")
        self._unnamed = 0
        """How many came before the first name."""

    def add(self, name: str | None) -> None:
        if name is None and not self._codes:
            self._unnamed += 1
            return
        if not self._codes:
            self._column = array("i", [-1]) * self._unnamed
        self._column.append(-1 if name is None else self._codes.setdefault(name, len(self._codes)))

    def used(self) -> npt.NDArray[np.int64] | None:
        """The column, or None where no name was given."""
        return np.array(self._column, dtype=np.int64) if self._codes else None

    def names(self) -> list[str | None]:
        """The column in words."""
        if not self._codes:
            return [None] * self._unnamed
        words = [*self._codes, None]
        return [words[code] for code in self._column]

    @property
    def given(self) -> bool:
        """Whether there is any name."""
        return bool(self._codes)


@dataclass(slots=True, kw_only=True)
class _Columns:
    """The rewards of one metric, with what they are clustered by."""

    cluster_by: str
    bounds: tuple[float, float] | None
    values: array[float] = field(default_factory=lambda: array("d"))
    problems: array[int] = field(default_factory=lambda: array("i"))
    categories: _Names = field(default_factory=_Names)
    clusters: _Names = field(default_factory=_Names)
    answers: list[Any] = field(default_factory=list)
    unscored: int = 0
    error: int = 0
    unscored_by: Counter[str] = field(default_factory=Counter)
    error_by: Counter[str] = field(default_factory=Counter)

    def add(self, row: ScoreRow, outcome: Outcome, value: float | None, *, keep_answer: bool = False) -> None:
        if outcome is Outcome.SCORED and value is not None:
            self.take(value, row.problem_idx, row.category, row.cluster)
            if keep_answer:
                self.answers.append(row.extracted_answer)
            return
        by = self.unscored_by if outcome is Outcome.UNSCORED else self.error_by
        if outcome is Outcome.UNSCORED:
            self.unscored += 1
        else:
            self.error += 1
        if row.category is not None:
            by[row.category] += 1

    def take(self, value: float, problem: int, category: str | None, cluster: str | None) -> None:
        self.values.append(value)
        self.problems.append(problem)
        self.categories.add(category)
        self.clusters.add(cluster)

    def mean(self) -> float | None:
        return estimate_mean(self.values, self.problems).value

    def shape(self) -> dict[str, Any]:
        return {
            "clusters": self.clusters.used(),
            "cluster_by": self.cluster_by,
            "unscored": self.unscored,
            "error": self.error,
        }

    def estimate(self) -> Estimate:
        return estimate_mean(self.values, self.problems, bounds=self.bounds, **self.shape())


class _Combined:
    """The columns that an aggregate is made of: rows on which all of its metrics were scored."""

    def __init__(self, metrics: Sequence[str], cluster_by: str) -> None:
        self._metrics = metrics
        self._cluster_by = cluster_by
        self._columns = [array("d") for _ in metrics]
        self._problems = array("i")
        self._clusters = _Names()
        self._unscored = self._error = 0

    def add(self, row: ScoreRow) -> None:
        values = [
            row.reward if name == "reward" else found.value if (found := row.scorer_rewards.get(name)) else None
            for name in self._metrics
        ]
        if row.outcome is Outcome.ERROR:
            self._error += 1
        elif row.outcome is Outcome.UNSCORED or None in values:
            self._unscored += 1
        else:
            for column, value in zip(self._columns, values, strict=True):
                column.append(float(value or 0.0))
            self._problems.append(row.problem_idx)
            self._clusters.add(row.cluster)

    def estimate(self, name: str) -> Estimate:
        return estimate_aggregate(
            name,
            self._columns,
            self._problems,
            clusters=self._clusters.used(),
            cluster_by=self._cluster_by,
            unscored=self._unscored,
            error=self._error,
        )


def derive(cell: Path, info: CellInfo, pairs: Iterable[Pair]) -> dict[str, Any]:
    """Writes `eval-<name>.json`, `runtime_stats.json` and `failure_analysis.json`; returns the bundle."""
    headline = _Columns(cluster_by=info.cluster_by, bounds=info.bounds)
    others: dict[str, _Columns] = {}
    combined = {name: _Combined(metrics, info.cluster_by) for name, metrics in info.aggregates.items()}
    zeros: list[tuple[int, str | None, str | None]] = []
    collector = ArtifactCollector()
    judges = JudgeTotals()
    counts = Counter[str]()
    last = 0.0
    samples, problem, unmeasured = 0, -1, 0
    for attempt, row in pairs:
        collector.add(attempt, row)
        samples += row.problem_idx != problem
        problem = row.problem_idx
        counts[row.outcome.value] += 1
        last = max(last, attempt.timestamp + attempt.timing.total_ms / 1000)
        headline.add(row, row.outcome, row.reward, keep_answer=info.repeats > 1)
        for aggregate in combined.values():
            aggregate.add(row)
        if row.outcome is Outcome.ERROR:
            zeros.append((row.problem_idx, row.category, row.cluster))
            unmeasured += not row.scorer_rewards
        for name, metric in row.scorer_rewards.items():
            if name not in others:
                others[name] = _Columns(cluster_by=info.cluster_by, bounds=None)
            others[name].add(row, metric.outcome, metric.value)
            judges.add(name, metric.details)
    excluding = headline.mean()
    scores, categories = _scores(headline, info.repeats), _categories(headline)
    for zero in zeros:
        headline.take(0.0, *zero)
    if info.error_policy == "zero":
        scores, categories = _scores(headline, info.repeats), _categories(headline)
    for name, aggregate in combined.items():
        scores[name] = aggregate.estimate(name)
    for name, columns in sorted(others.items()):
        columns.error += unmeasured
        scores[f"scorer:{name}"] = columns.estimate()
    if info.sequential is not None:
        scores, categories = _sequential(scores, info.sequential), _without_intervals(categories)
    runtime, failures = collector.runtime_stats().to_dict(), collector.failure_report().to_dict()
    errors = counts[Outcome.ERROR.value]
    attempted = sum(counts.values())
    degraded = info.planned > 0 and errors / info.planned > info.max_error_rate
    bundle: dict[str, Any] = {
        "schema": "nel.bundle/1",
        "run_id": info.run_id,
        "config_hash": info.config["config_hash"],
        "sdk_version": info.versions.get("nel", ""),
        "timestamp": datetime.fromtimestamp(last, UTC).isoformat(timespec="milliseconds"),
        "outcome": "partial" if attempted < info.planned else "degraded" if degraded else "completed",
        "config": {name: value for name, value in info.config.items() if name != "config_hash"},
        "benchmark": {
            "name": info.name,
            "samples": samples,
            "repeats": info.repeats,
            "primary": next(iter(scores)),
            "scores": scores,
            "categories": categories,
        },
        "counts": {
            "planned": info.planned,
            "attempted": attempted,
            "scored": counts[Outcome.SCORED.value],
            "unscored": counts[Outcome.UNSCORED.value],
            "error": errors,
        },
        "means": {"excluding_errors": excluding, "errors_as_zero": headline.mean()},
        **({"sequential": info.sequential} if info.sequential is not None else {}),
        "judges": judges.usage(),
        "agreement": judges.agreement(),
        "error_policy": info.error_policy,
        "max_error_rate": info.max_error_rate,
        "identity": info.identity,
        "data": info.data,
        "versions": info.versions,
        "n_results": attempted,
        "runtime": runtime,
        "failures": failures,
    }
    for path, value in (
        (cell / "runtime_stats.json", runtime),
        (cell / "failure_analysis.json", failures),
        (cell / f"eval-{info.name}.json", bundle),
    ):
        write_atomic(path, msgspec.json.format(encode_json(value), indent=2) + b"\n")
    return bundle


def _scores(columns: _Columns, repeats: int) -> dict[str, Estimate]:
    """Headline first. Rewards that are all 0 or 1 are passes, any others are means."""
    shape = columns.shape()
    if not columns.values or any(value not in {0.0, 1.0} for value in columns.values):
        return {"mean_reward": columns.estimate()}
    scores = {"pass@1": columns.estimate()}
    for k in _ks(repeats):
        scores[f"pass@{k}"] = estimate_pass_at_k(columns.values, columns.problems, k, **shape)
    for k in _ks(repeats):
        scores[f"pass^{k}"] = estimate_pass_hat_k(columns.values, columns.problems, k, **shape)
    if repeats > 2 and len(columns.answers) == len(columns.values):
        scores[f"maj@{repeats}"] = estimate_maj_at_k(
            columns.answers, columns.values, columns.problems, repeats, **shape
        )
    return scores


def _sequential(scores: dict[str, Estimate], found: dict[str, Any]) -> dict[str, Estimate]:
    """The headline with the interval that holds whenever the run ended; the others have none that does."""
    headline = next(iter(scores))
    lower, upper = found["interval"]
    kept = {
        name: msgspec.structs.replace(estimate, ci_lower=None, ci_upper=None, method="none: the run could end early")
        for name, estimate in scores.items()
    }
    kept[headline] = msgspec.structs.replace(
        scores[headline], ci_lower=lower, ci_upper=upper, method=found["method"], stderr=None
    )
    return kept


def _without_intervals(categories: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {**value, "ci_lower": None, "ci_upper": None, "method": "none: the run could end early"}
        for name, value in categories.items()
    }


def _ks(repeats: int) -> list[int]:
    """2, 4, 8, ... and the number of repeats itself."""
    ks = [2**power for power in range(1, repeats.bit_length()) if 2**power < repeats]
    return [*ks, repeats] if repeats > 1 else []


def _categories(columns: _Columns) -> dict[str, Any]:
    if not columns.categories.given and not columns.error_by and not columns.unscored_by:
        return {}
    shape = columns.shape()
    estimates = category_breakdown(
        columns.values,
        columns.problems,
        columns.categories.names(),
        clusters=shape["clusters"],
        cluster_by=columns.cluster_by,
        bounds=columns.bounds,
        unscored=columns.unscored_by,
        error=columns.error_by,
    )
    return {
        name: {"mean_reward": estimate.value, **msgspec.to_builtins(estimate)} for name, estimate in estimates.items()
    }
