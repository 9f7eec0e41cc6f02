"""The root of a monotone function, to the last bit."""

from __future__ import annotations

from collections.abc import Callable


def bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where `rising` passes zero between `low` and `high`; the nearer end where it does not."""
    while low < (middle := (low + high) / 2) < high:
        if rising(middle) > 0:
            high = middle
        else:
            low = middle
    return low if abs(rising(low)) < abs(rising(high)) else high
