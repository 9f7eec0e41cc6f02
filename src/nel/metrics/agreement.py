"""Agreement between raters: Krippendorff's alpha of any number of them, Cohen's kappa of two."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from nel.metrics.intervals import Interval, checked_level, normal_quantile

Level = Literal["nominal", "ordinal", "interval"]
"""How ratings differ: same or not, by how many ratings lie between them, or by their distance."""

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def krippendorff_alpha(units: Iterable[Sequence[Hashable]], *, level: Level = "nominal") -> float | None:
    """Krippendorff's alpha: 1 for full agreement, 0 for what chance gives, below 0 for less than that.

    Each unit holds the ratings that it was given, by however many raters; None is a missing one, and a unit with fewer
    than two ratings tells nothing. None where there is no such unit, or all ratings are the same value. `ValueError`
    for ordinal or interval ratings that are no finite numbers. Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability".
    """
    if level not in LEVELS:
        raise ValueError(f"level {level!r} is none of {', '.join(LEVELS)}")
    rated = [[value for value in unit if value is not None] for unit in units]
    paired = [unit for unit in rated if len(unit) > 1]
    values = _in_order({value for unit in paired for value in unit}, level)
    if len(values) < 2:
        return None
    place = {value: at for at, value in enumerate(values)}
    coincidences = np.zeros((len(values), len(values)))
    for unit in paired:
        counts = np.bincount([place[value] for value in unit], minlength=len(values)).astype(float)
        coincidences += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    totals = coincidences.sum(axis=1)
    distances = _distances(values, totals, level)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    return 1.0 - float((coincidences * distances).sum() / (expected * distances).sum())


def _in_order(values: set[Hashable], level: Level) -> list[Hashable]:
    if level == "nominal":
        return sorted(values, key=lambda value: (str(type(value)), str(value)))
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{value!r} is no finite number, which {level} ratings are")
    return sorted(values)  # type: ignore[type-var]


def _distances(values: Sequence[Hashable], totals: NDArray[np.float64], level: Level) -> NDArray[np.float64]:
    """The squared distance between each two values."""
    if level == "nominal":
        return 1.0 - np.eye(len(values))
    if level == "interval":
        numbers = np.array(values, dtype=np.float64)
        return np.asarray((numbers[:, None] - numbers[None, :]) ** 2)
    # Ordinal: the ratings from one value to the other, with half of those at each end.
    middles = np.cumsum(totals) - totals / 2
    return np.asarray((middles[:, None] - middles[None, :]) ** 2)


class Kappa(msgspec.Struct, kw_only=True, frozen=True):
    """Agreement of two raters beyond chance, with its interval."""

    value: float | None
    """1 for full agreement, 0 for what chance gives; None where both gave one and the same value throughout."""
    ci_lower: float | None
    ci_upper: float | None
    stderr: float | None
    """None where there is no spread to tell it from."""
    observed: float
    """Share of units on which the two agree."""
    expected: float
    """Share on which they would agree by chance."""
    n: int
    level: float = 0.95
    """The interval's confidence level."""
    method: str = "cohen, asymptotic"


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    values: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Kappa:
    """Cohen's kappa of two raters' labels of the same units, with the large-sample interval, cut to [-1, 1].

    `weights` counts a disagreement by how far apart the two labels stand in `values` (by default sorted). Fleiss, Cohen
    and Everitt 1969 give the standard error. `ValueError` where lengths differ, nothing is rated, or a label is none of
    `values`.
    """
    checked_level(level)
    if len(first) != len(second):
        raise ValueError(f"{len(first)} labels of one rater, {len(second)} of the other")
    if not first:
        raise ValueError("no unit is rated")
    known = list(values) if values is not None else sorted({*first, *second})  # type: ignore[type-var]
    place: Mapping[Hashable, int] = {value: at for at, value in enumerate(known)}
    for label in (*first, *second):
        if label not in place:
            raise ValueError(f"{label!r} is none of {', '.join(map(repr, known))}")
    n, size = len(first), len(known)
    shares = np.zeros((size, size))
    for one, other in zip(first, second, strict=True):
        shares[place[one], place[other]] += 1 / n
    agreement = _agreement(size, weights)
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    observed = float((shares * agreement).sum())
    expected = float((np.outer(rows, columns) * agreement).sum())
    method = f"cohen, {weights} weights, asymptotic" if weights else "cohen, asymptotic"
    if expected >= 1 - 1e-12:
        return Kappa(
            value=None, ci_lower=None, ci_upper=None, stderr=None, observed=observed, expected=expected, n=n,
            level=level, method="none: both raters gave one and the same value throughout",
        )  # fmt: skip
    kappa = (observed - expected) / (1 - expected)
    lean = agreement @ columns[:, None] + (agreement.T @ rows[:, None]).T  # mean weight of each row and column
    spread = float((shares * (agreement - lean * (1 - kappa)) ** 2).sum()) - (kappa - expected * (1 - kappa)) ** 2
    stderr = math.sqrt(max(0.0, spread) / n) / (1 - expected)
    interval = _around(kappa, stderr, level)
    return Kappa(
        value=kappa,
        ci_lower=interval[0] if interval else None,
        ci_upper=interval[1] if interval else None,
        stderr=stderr if interval else None,
        observed=observed,
        expected=expected,
        n=n,
        level=level,
        method=method if interval else f"{method}: full agreement or disagreement carries no interval",
    )


def _agreement(size: int, weights: str | None) -> NDArray[np.float64]:
    """How much each pair of labels counts as agreement, 0 to 1."""
    if weights is None or size == 1:
        return np.eye(size)
    steps = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :]) / (size - 1)
    return np.asarray(1 - (steps if weights == "linear" else steps**2))


def _around(value: float, stderr: float, level: float) -> Interval | None:
    if stderr < 1e-12:
        return None
    half = normal_quantile(level) * stderr
    return max(-1.0, value - half), min(1.0, value + half)
