"""`ConfidenceSequence`: an interval for a mean that may be looked at after every value, as often as one likes."""

from __future__ import annotations

import math

METHOD = "confidence sequence (empirical Bernstein)"


class ConfidenceSequence:
    """The predictable plug-in empirical-Bernstein sequence of Waudby-Smith and Ramdas, "Estimating means of bounded
    random variables by betting" (2023), theorem 2, with running intersection.

    With probability `level` the mean lies in every one of its intervals at once, whatever rule decides when to stop. It
    holds for values in `bounds` whose conditional mean is the same at every step, as for problems in random order.
    Values are taken one by one in constant memory.
    """

    def __init__(self, bounds: tuple[float, float] = (0.0, 1.0), level: float = 0.95) -> None:
        if not bounds[0] < bounds[1]:
            raise ValueError(f"bounds {bounds} hold no interval")
        self._low, self._width = bounds[0], bounds[1] - bounds[0]
        self._log = math.log(2 / (1 - level))
        self.n = 0
        self._sum = 0.0
        self._squares = 0.25
        self._bets = 0.0
        self._weighted = 0.0
        self._variance = 0.0
        self._lower, self._upper = 0.0, 1.0

    def add(self, value: float) -> None:
        """Takes the next value; `ValueError` for one outside the bounds."""
        x = (value - self._low) / self._width
        if not -1e-12 <= x <= 1 + 1e-12:
            raise ValueError(f"{value} lies outside [{self._low}, {self._low + self._width}]")
        x = min(1.0, max(0.0, x))
        guess = (0.5 + self._sum) / (self.n + 1)
        spread = self._squares / (self.n + 1)
        self.n += 1
        bet = min(0.5, math.sqrt(2 * self._log / (spread * self.n * math.log(1 + self.n))))
        self._bets += bet
        self._weighted += bet * x
        self._variance += 4 * (x - guess) ** 2 * (-math.log1p(-bet) - bet) / 4
        self._sum += x
        self._squares += (x - (0.5 + self._sum) / (self.n + 1)) ** 2
        middle = self._weighted / self._bets
        half = (self._log + self._variance) / self._bets
        self._lower = max(self._lower, middle - half)
        self._upper = min(self._upper, middle + half)

    @property
    def mean(self) -> float | None:
        """The mean so far."""
        return self._low + self._width * self._sum / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """The narrowest interval so far; the bounds themselves before any value."""
        lower, upper = sorted((self._lower, self._upper))  # an empty intersection is one point's width of chance
        return self._low + self._width * lower, self._low + self._width * upper
