"""`Measurement`: the verdicts of one metric on one answer while they are collected, and what they took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from nel.core.digest import digest_value
from nel.observability.records import MetricScore, Outcome
from nel.scoring.judging.asking import Judge
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Usage, Verdict
from nel.scoring.metric import JudgedSample

USAGE = "judge_usage"
"""The key of a metric's details that says what its verdicts took."""


class Measurement:
    """Asks each verdict once: one that an earlier measurement of the same answer holds is not asked again."""

    def __init__(self, sample: JudgedSample) -> None:
        self.sample = sample
        self.verdicts: dict[str, Verdict] = {}
        """What each judge said, by judge, order and question."""
        self.usage = Usage()
        self.notes: dict[str, Any] = {}
        """Further details."""
        earlier = sample.earlier.details if sample.earlier is not None else {}
        self.earlier = earlier
        self._known = msgspec.convert(earlier.get("verdicts", {}), dict[str, Verdict])
        if USAGE in earlier:
            self.usage.join(msgspec.convert(earlier[USAGE], Usage))

    def known(self, key: str) -> Verdict | None:
        """A verdict of the earlier measurement, where it is one."""
        verdict = self._known.get(key)
        return verdict if verdict is not None and verdict.outcome is Outcome.SCORED else None

    async def ask(self, key: str, judge: Judge, prompt: str, scale: Scale, *, reverse: bool = False) -> Verdict:
        """The verdict that is known as `key`; `reverse` says that the best answer is the worst one for the sample."""
        verdict = self.known(key)
        if verdict is None:
            verdict = await judge.ask(prompt, scale, repeat=self.sample.repeat, usage=self.usage)
            if reverse and verdict.value is not None:
                verdict.value = 1.0 - verdict.value
        self.verdicts[key] = verdict
        return verdict

    def result(self, verdict: Verdict, version: str) -> MetricScore:
        """The metric's score, with all that was said."""
        return MetricScore(
            value=verdict.value, outcome=verdict.outcome, version=version, details={**why(verdict), **self.details()}
        )

    def details(self) -> dict[str, Any]:
        """What the metric's details hold of the measurement."""
        verdicts = {key: msgspec.to_builtins(self.verdicts[key]) for key in sorted(self.verdicts)}
        return {**self.notes, "verdicts": verdicts, USAGE: msgspec.to_builtins(self.usage)}


def why(verdict: Verdict) -> dict[str, Any]:
    """The score as the judge gave it, or the category and reason for there being none."""
    if verdict.outcome is not Outcome.SCORED:
        return {"category": verdict.category, "error": verdict.error}
    said = {"score": verdict.score, "label": verdict.label}
    return {name: value for name, value in said.items() if value is not None}


def missing(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The verdict that keeps the others from making a score: an error before one that could not be read."""
    found = [verdict for verdict in verdicts if verdict.outcome is not Outcome.SCORED]
    found.sort(key=lambda verdict: verdict.outcome is not Outcome.ERROR)
    if not found:
        return None
    return Verdict(outcome=found[0].outcome, category=found[0].category, error=found[0].error)


def version_of(number: str, identity: Any) -> str:
    """A metric's version: that of its code, and eight digits of all else that it depends on."""
    return f"{number}-{digest_value(identity).removeprefix('sha256:')[:8]}"
