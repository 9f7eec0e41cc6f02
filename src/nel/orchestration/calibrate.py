"""`calibrate`: a judge compared with human labels, before its scores are trusted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from nel.config.eval_config import services_of_metric
from nel.config.load import LoadedConfig
from nel.config.scoring import EnsembleJudgeMetric, JudgeMetric
from nel.core.digest import digest_value
from nel.core.errors import DataError, UsageError
from nel.engine.judges import JudgeDetails, JudgeTotals
from nel.environments.configured import build_metric
from nel.environments.data import Row, open_source
from nel.metrics.agreement import Kappa, cohen_kappa
from nel.metrics.estimate import Estimate
from nel.metrics.mean import estimate_mean
from nel.observability.records import MetricScore, Outcome
from nel.orchestration.services import Services, wait_for_endpoint
from nel.scoring.judging.judge import Grader
from nel.scoring.judging.scale import Scale
from nel.scoring.metric import JudgedSample

_IN_FLIGHT = 64
_MOST_STEPS = 1000
_YES = {"1": 1.0, "true": 1.0, "yes": 1.0, "1.0": 1.0}
_NO = {"0": 0.0, "false": 0.0, "no": 0.0, "0.0": 0.0}

Label = str | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns of the labels hold what."""

    prompt: str = "prompt"
    response: str = "response"
    target: str = "target"
    """The expected answer; a file without this column has none."""
    label: str = "label"


class Calibration(msgspec.Struct, kw_only=True):
    """How well a judge agrees with people, with what it takes to believe it."""

    metric: str
    version: str
    """Of the judge: it changes with its model, prompt, rubric, scale and settings."""
    identity: dict[str, Any]
    labels: str
    """Digest of the labels' file."""
    scored: int
    unparsable: int
    """Replies that could not be read, within the budget of tries."""
    unscored: int
    """All rows without a verdict, those included, that are no errors."""
    errors: dict[str, int]
    """Rows that were not judged, by failure category."""
    accuracy: Estimate
    """Share of the judged rows on which judge and person say the same."""
    kappa: Kappa | None
    """Cohen's kappa; None where nothing was judged."""
    weighted_kappa: Kappa | None
    """The same with quadratic weights, where labels are numbers."""
    confusion: dict[str, dict[str, int]]
    """Rows by what the person said, then by what the judge said."""
    usage: dict[str, Any]
    """Requests, tokens, cost and latency of the judge."""


def judge_of(loaded: LoadedConfig, name: str | None) -> JudgeMetric | EnsembleJudgeMetric:
    """The judge called `name` in a config, or the only one; `UsageError` lists them."""
    judges = [
        metric
        for entry in loaded.config.benchmarks
        for metric in entry.scoring.metrics
        if isinstance(metric, JudgeMetric | EnsembleJudgeMetric)
    ]
    found = [metric for metric in judges if name is None or metric.name == name]
    different = {digest_value(metric.model_dump(mode="json")) for metric in found}
    if len(different) == 1:
        return found[0]
    names = ", ".join(sorted({metric.name for metric in judges})) or "none"
    if not found:
        raise UsageError(
            f"no judge {name!r} in the config" if name else "the config has no judge", hint=f"Judges: {names}."
        )
    raise UsageError(
        f"{len(different)} judges fit", hint=f"Name one by --metric, or give them different names: {names}."
    )


async def calibrate(
    loaded: LoadedConfig,
    labels: Path,
    *,
    metric: str | None = None,
    columns: Columns | None = None,
    threshold: float | None = None,
) -> tuple[Calibration, list[dict[str, Any]]]:
    """What the judge of a config says of labelled answers, compared with what people said; and row by row.

    Labels are those of the judge's scale. With `threshold` they are yes or no (1 or 0, true or false), and a score of
    the judge from `threshold` on is a yes. `DataError` names the row that lacks a column or has a label off the scale,
    before anything is asked.
    """
    columns = columns or Columns()
    spec = judge_of(loaded, metric)
    services = Services(loaded, Path())
    try:
        clients = {}
        for _path, name in services_of_metric(spec):
            service = services.config(name)
            assert service is not None
            clients[name] = (await services.unstarted_client(name), service.generation.given())
        scale = _grader(build_metric(spec, clients)).scale or Scale()
        samples, people, digest = _read(labels, columns, scale, threshold)
        for name, (_, generation) in clients.items():
            clients[name] = (await services.client(name), generation)
            await wait_for_endpoint(name, services.config(name))  # type: ignore[arg-type]
        grader = _grader(build_metric(spec, clients))
        scores = await _judged(grader, samples)
    finally:
        await services.close()
    said = [_label(score, scale, threshold) for score in scores]
    rows = [
        {"row": at + 1, "label": label, "judge": judged, "agrees": None if judged is None else judged == label}
        | msgspec.to_builtins(score)
        for at, (label, judged, score) in enumerate(zip(people, said, scores, strict=True))
    ]
    return _compared(grader, scores, people, said, digest), rows


def _grader(metric: Any) -> Grader:
    assert isinstance(metric, Grader)
    return metric


def _read(
    path: Path, columns: Columns, scale: Scale, threshold: float | None
) -> tuple[list[JudgedSample], list[Label], str]:
    source = open_source(path)
    try:
        source.prepare()
        if not len(source):
            raise DataError(f"{path}: no rows")
        samples, people = [], []
        for at in range(len(source)):
            row, place = source.row(at), source.place(at)
            for column in (columns.prompt, columns.response, columns.label):
                if column not in row:
                    raise DataError(f"{place}: no column {column!r}", hint=f"It has: {', '.join(row)}.")
            people.append(_human(row[columns.label], scale, threshold, place))
            samples.append(_sample(row, columns, place))
        return samples, people, str(source.identity().get("sha256", ""))
    finally:
        source.close()


def _sample(row: Row, columns: Columns, place: str) -> JudgedSample:
    prompt, response = row[columns.prompt], row[columns.response]
    for column, value in ((columns.prompt, prompt), (columns.response, response)):
        if not isinstance(value, str):
            raise DataError(f"{place}: {column} is {type(value).__name__}, not text")
    return JudgedSample(
        response=response,
        target=row.get(columns.target) or None,
        metadata=row,
        prompt=prompt,
        messages=[{"role": "user", "content": prompt}],
    )


def _human(value: Any, scale: Scale, threshold: float | None, place: str) -> Label:
    text = str(value).strip()
    if threshold is not None:
        yes_or_no = {**_YES, **_NO}.get(text.casefold())
        if yes_or_no is None:
            raise DataError(f"{place}: the label {value!r} is neither yes (1) nor no (0), as --threshold needs")
        return yes_or_no
    if scale.labels is not None:
        label = scale.label(text)
        if label is None:
            raise DataError(f"{place}: the label {value!r} is none of {', '.join(scale.labels)}")
        return label
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not scale.low <= number <= scale.high:
        raise DataError(
            f"{place}: the label {value!r} is no score from {scale.low:g} to {scale.high:g}",
            hint="Labels of yes and no are compared with --threshold SCORE.",
        )
    return number


async def _judged(grader: Grader, samples: Sequence[JudgedSample]) -> list[MetricScore]:
    slots = asyncio.Semaphore(_IN_FLIGHT)

    async def one(sample: JudgedSample) -> MetricScore:
        async with slots:
            return await grader.score(sample)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(sample)) for sample in samples]
    return [task.result() for task in tasks]


def _label(score: MetricScore, scale: Scale, threshold: float | None) -> Label | None:
    if score.outcome is not Outcome.SCORED:
        return None
    said: float = score.details["score"]
    if threshold is not None:
        return float(said >= threshold)
    return said if scale.labels is None else score.details.get("label", said)


def _compared(
    grader: Grader, scores: Sequence[MetricScore], people: Sequence[Label], said: Sequence[Label | None], digest: str
) -> Calibration:
    pairs = [(label, judged) for label, judged in zip(people, said, strict=True) if judged is not None]
    first, second = [label for label, _ in pairs], [judged for _, judged in pairs]
    values = sorted({*first, *second}, key=lambda value: (isinstance(value, str), value))
    numbers = bool(values) and all(isinstance(value, float) for value in values)
    errors = Counter(score.details["category"] for score in scores if score.outcome is Outcome.ERROR)
    missed = [score.details["category"] for score in scores if score.outcome is Outcome.UNSCORED]
    return Calibration(
        metric=grader.name,
        version=grader.version,
        identity=grader.identity(),
        labels=digest,
        scored=len(pairs),
        unparsable=missed.count("judge_unparsable"),
        unscored=len(missed),
        errors=dict(sorted(errors.items())),
        accuracy=estimate_mean(
            [float(label == judged) for label, judged in pairs],
            list(range(len(pairs))),
            bounds=(0.0, 1.0),
            unscored=len(missed),
            error=errors.total(),
        ),
        kappa=cohen_kappa(first, second, values=values) if pairs else None,
        weighted_kappa=cohen_kappa(first, second, values=_steps(values), weights="quadratic") if numbers else None,
        confusion=_confusion(pairs, values),
        usage=_usage(scores),
    )


def _steps(values: Sequence[Label]) -> Sequence[Label]:
    """Whole numbers with those between them, so that distances are true; others as they are, one step apart."""
    whole = [value for value in values if isinstance(value, float) and value.is_integer()]
    if len(whole) < len(values) or max(whole) - min(whole) > _MOST_STEPS:
        return values
    return [float(value) for value in range(int(min(whole)), int(max(whole)) + 1)]


def _confusion(pairs: Sequence[tuple[Label, Label]], values: Sequence[Label]) -> dict[str, dict[str, int]]:
    counts = Counter(pairs)
    return {shown(one): {shown(other): counts[one, other] for other in values} for one in values}


def shown(label: Label) -> str:
    """A label as text."""
    return label if isinstance(label, str) else f"{label:g}"


def _usage(scores: Sequence[MetricScore]) -> dict[str, Any]:
    totals = JudgeTotals()
    for score in scores:
        totals.add("judge", JudgeDetails(judge_usage=score.details.get("judge_usage")))
    return totals.usage().get("judge", {})
