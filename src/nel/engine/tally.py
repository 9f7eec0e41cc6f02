"""`Tally`: the running counts of a cell, for the display; the final numbers come from the logs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from nel.metrics.running import RunningMean
from nel.observability.records import AttemptRecord, Outcome, ScoreRecord


@dataclass(slots=True)
class Tally:
    """Counts, running mean and its interval, tokens and cost of one cell so far."""

    planned: int = 0
    scored: int = 0
    unscored: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Errors by category."""
    transient: int = 0
    """Errors that may get better."""
    incomplete: int = 0
    """Scored attempts of which a further metric has no value."""
    known: int = 0
    """Attempts that an earlier run had already made."""
    tokens: int = 0
    cost: float | None = None
    in_flight: int = 0
    retries: int = 0
    interval: tuple[float, float] | None = None
    """The running mean's 95 % interval, clustered by problem, as of the last `refresh`."""
    started: float = field(default_factory=time.monotonic)
    _mean: RunningMean = field(default_factory=lambda: RunningMean(0))

    @property
    def done(self) -> int:
        """Attempts that have their outcome."""
        return self.scored + self.unscored + sum(self.errors.values())

    @property
    def elapsed(self) -> float:
        """Seconds since the cell began."""
        return time.monotonic() - self.started

    @property
    def mean(self) -> float | None:
        """Running mean over problems."""
        return self._mean.mean

    def refresh(self) -> None:
        """Bring `interval` up to date; may take a second the first time, while a library loads."""
        self.interval = self._mean.interval()

    def plan(self, problems: int, repeats: int) -> None:
        """Expect `repeats` attempts at each of so many problems."""
        self.planned = problems * repeats
        self._mean = RunningMean(problems)

    def add(self, place: int, attempt: AttemptRecord, score: ScoreRecord) -> None:
        """Count an attempt at the plan's problem `place` that was made or measured now."""
        self._count(place, score)
        if score.outcome is Outcome.ERROR and not (attempt.model_error is not None and attempt.model_error.permanent):
            self.transient += 1
        if attempt.model is not None:
            self.tokens += attempt.model.total_tokens
            if attempt.model.cost is not None:
                self.cost = (self.cost or 0.0) + attempt.model.cost

    def add_known(self, place: int, score: ScoreRecord) -> None:
        """Count an attempt of an earlier run."""
        self.known += 1
        self._count(place, score)

    def _count(self, place: int, score: ScoreRecord) -> None:
        if score.outcome is Outcome.SCORED:
            self.scored += 1
            self._mean.add(place, score.reward or 0.0)
            self.incomplete += any(metric.outcome is not Outcome.SCORED for metric in score.scorer_rewards.values())
        elif score.outcome is Outcome.UNSCORED:
            self.unscored += 1
        else:
            self.errors[score.failure_category or "error"] += 1
