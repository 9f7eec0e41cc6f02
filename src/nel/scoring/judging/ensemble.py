"""`EnsembleMetric`: several judges grade each answer; what is made of their scores, and how far they agree."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Any, Literal

from nel.observability.records import Outcome
from nel.scoring.judging.asking import Judge
from nel.scoring.judging.judge import Grader, key_of
from nel.scoring.judging.measurement import Measurement, missing
from nel.scoring.judging.request import JudgeQuestion
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Verdict

Aggregation = Literal["mean", "median", "majority"]

RATINGS = "ratings"
"""The key of the details that holds each judge's score, from which the agreement over a cell is computed."""


class EnsembleMetric(Grader):
    """Several judges, each asked the same. An answer is scored only where every one of them could be read: fewer judges
    would be another measurement."""

    def __init__(
        self,
        name: str,
        judges: Sequence[Judge],
        *,
        aggregation: Aggregation = "mean",
        rubric: str | None = None,
        scale: Scale | None = None,
        reference_free: bool = False,
    ) -> None:
        super().__init__(name, rubric=rubric, scale=scale, reference_free=reference_free)
        self.judges = list(judges)
        self.aggregation = aggregation

    def identity(self) -> dict[str, Any]:
        """The judges, what they go by, and what is made of their scores."""
        judges = [judge.identity() for judge in self.judges]
        return {**super().identity(), "metric": "ensemble_judge", "judges": judges, "aggregation": self.aggregation}

    async def _decide(self, measurement: Measurement, name: str, question: JudgeQuestion) -> Verdict:
        scale = self.scale_of(question)
        verdicts = await asyncio.gather(
            *(
                measurement.ask(
                    key_of(name, judge.name),
                    judge,
                    self.prompt(measurement.sample, question, structured=judge.settings.structured),
                    scale,
                )
                for judge in self.judges
            )
        )
        scores = {
            judge.name: verdict.score
            for judge, verdict in zip(self.judges, verdicts, strict=True)
            if verdict.score is not None
        }
        measurement.notes["level"] = "interval" if scale.labels is None else "nominal"
        measurement.notes.setdefault(RATINGS, {})[name or "verdict"] = scores
        lacking = missing(verdicts)
        if lacking is not None:
            return lacking
        measurement.notes.setdefault("agreement", {})[name or "verdict"] = pair_agreement(list(scores.values()))
        return self._aggregate(verdicts, scale)

    def _aggregate(self, verdicts: Sequence[Verdict], scale: Scale) -> Verdict:
        scores = [verdict.score for verdict in verdicts if verdict.score is not None]
        if self.aggregation == "majority":
            (winner, votes), *_ = Counter((verdict.label, verdict.score) for verdict in verdicts).most_common()
            if 2 * votes <= len(verdicts):
                said = ", ".join(
                    str(verdict.label if verdict.label is not None else verdict.score) for verdict in verdicts
                )
                return Verdict(
                    outcome=Outcome.UNSCORED,
                    category="judge_disagreement",
                    error=f"no majority among the judges: {said}",
                )
            label, score = winner
            assert score is not None
            return Verdict(score=score, value=scale.value(score), label=label)
        score = fmean(scores) if self.aggregation == "mean" else float(median(scores))
        labels = {verdict.label for verdict in verdicts}
        return Verdict(score=score, value=scale.value(score), label=labels.pop() if len(labels) == 1 else None)


def pair_agreement(scores: Sequence[float]) -> float:
    """The share of pairs of judges that said the same, 0 to 1."""
    pairs = list(combinations(scores, 2))
    return sum(first == second for first, second in pairs) / len(pairs)
