"""`FailureReport`: what went wrong, how often, with examples (`failure_analysis.json`)."""

from __future__ import annotations

import msgspec

from nel.core.contract import Record


class Exemplar(msgspec.Struct, kw_only=True):
    """One attempt to look at."""

    problem_idx: int
    repeat: int
    error: str
    """The message, shortened to 500 characters; the category where there is none."""


class FailureCategory(msgspec.Struct, kw_only=True):
    """The attempts of one category of `nel.observability.failures.CATEGORIES`."""

    count: int
    percentage: float
    """Share of all attempts, 0 to 1."""
    outcomes: dict[str, int]
    """The same attempts by outcome: `error`, `unscored`, `scored`."""
    exemplars: list[Exemplar]
    """The first three by problem and repeat."""


class FailureReport(Record, tag="nel.failure_analysis/1", kw_only=True):
    """The attempts of one cell that failed or deserve a look, derived from their records; JSON keeps every field."""

    total_steps: int
    """Attempts, whatever their outcome."""
    total_failures: int
    """Attempts with a failure category: the sum of the three counts below."""
    failure_rate: float
    """Share of all attempts, 0 to 1; 0 without attempts."""
    errors: int
    """Not measured: in no mean."""
    unscored: int
    """Answered, but not graded: in no mean."""
    flagged: int
    """Scored, and in the mean, but with a category (truncated, refusal, ...)."""
    categories: dict[str, FailureCategory]
    """The most frequent first."""
