"""`Estimate`: a mean that says how sure it is, how it was made, and what it leaves out."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, kw_only=True, frozen=True):
    """A mean over problems with its interval, its standard error and its counts.

    `docs/statistics.md` has the formulas. JSON keeps every field, also those that are null.
    """

    value: float | None
    """Mean over problems of the per-problem means; None when no attempt was scored."""
    ci_lower: float | None
    """None where the data carry no interval; `method` then says why."""
    ci_upper: float | None
    stderr: float | None
    """None where the data carry no spread: fewer than two independent problems, or all of them equal."""
    n: int
    """Problems with at least one scored attempt that entered the mean."""
    method: str
    """The interval and what it is clustered by, e.g. `wilson` or `t, clustered by passage`; `none: <reason>`."""
    level: float = 0.95
    """The interval's confidence level."""
    scored: int
    """Scored attempts, those of excluded problems included."""
    unscored: int
    """Attempts that were answered but could not be graded; in no mean."""
    error: int
    """Attempts that were not measured; in no mean."""
    clusters: int | None = None
    """How many declared clusters the `n` problems fall into; None where no clusters were declared."""
    excluded: int = 0
    """Problems left out because they have fewer than k scored attempts."""
