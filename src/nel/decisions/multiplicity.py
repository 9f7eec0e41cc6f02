"""Several tests at once: p-values that keep their promise although one looks at many."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from nel.metrics.grouping import Floats


class Correction(StrEnum):
    """What is controlled over a family of tests."""

    HOLM = "holm"
    """The chance of any false finding."""
    BH = "bh"
    """The expected share of false findings among the findings."""


def adjust(p_values: Sequence[float], correction: Correction = Correction.HOLM) -> list[float]:
    """The adjusted p-values, in the order given: each may be compared with the level that a single test would use.

    Holm 1979 (step-down Bonferroni, any dependence) or Benjamini and Hochberg 1995 (step-up, positive dependence).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = _holm(p[order]) if correction is Correction.HOLM else _benjamini_hochberg(p[order])
    capped: list[float] = np.minimum(adjusted, 1.0).tolist()
    return capped


def _holm(ascending: Floats) -> Floats:
    return np.maximum.accumulate(ascending * np.arange(ascending.size, 0, -1))


def _benjamini_hochberg(ascending: Floats) -> Floats:
    scaled = ascending * ascending.size / np.arange(1, ascending.size + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]
