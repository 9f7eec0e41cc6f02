"""`Tally`: the running counts of a cell, for the display; the final numbers come from the logs."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field

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
    known: int = 0
    """Attempts that an earlier run had already made."""
    tokens: int = 0
    cost: float | None = None
    in_flight: int = 0
    retries: int = 0
    started: float = field(default_factory=time.monotonic)
    _sum: float = 0.0
    _squares: float = 0.0

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
        """Running mean of the rewards."""
        return self._sum / self.scored if self.scored else None

    @property
    def half_width(self) -> float | None:
        """Half of the running mean's 95 % interval, as if attempts were independent: for the display alone."""
        if self.scored < 2:
            return None
        variance = (self._squares - self._sum * self._sum / self.scored) / (self.scored - 1)
        return 1.96 * math.sqrt(max(0.0, variance) / self.scored)

    def add(self, attempt: AttemptRecord, score: ScoreRecord) -> None:
        """Count an attempt that was made or measured now."""
        self._count(score)
        if score.outcome is Outcome.ERROR and not (attempt.model_error is not None and attempt.model_error.permanent):
            self.transient += 1
        if attempt.model is not None:
            self.tokens += attempt.model.total_tokens
            if attempt.model.cost is not None:
                self.cost = (self.cost or 0.0) + attempt.model.cost

    def add_known(self, score: ScoreRecord) -> None:
        """Count an attempt of an earlier run."""
        self.known += 1
        self._count(score)

    def _count(self, score: ScoreRecord) -> None:
        if score.outcome is Outcome.SCORED:
            self.scored += 1
            reward = score.reward or 0.0
            self._sum += reward
            self._squares += reward * reward
        elif score.outcome is Outcome.UNSCORED:
            self.unscored += 1
        else:
            self.errors[score.failure_category or "error"] += 1
