"""`Scale`: what a judge may answer, and what each answer is worth between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from nel.core.errors import UsageError


class Scale(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Numbers from `low` to `high`, or one of `labels`, each of which stands for a number in that range."""

    low: float = 1.0
    high: float = 5.0
    labels: dict[str, float] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise UsageError(f"a judge's scores go from {self.low:g} to {self.high:g}: the worst must be the lower one")
        for label, score in (self.labels or {}).items():
            if not label.strip() or not self.low <= score <= self.high:
                raise UsageError(f"the label {label!r} stands for {score:g}, outside {self.low:g} to {self.high:g}")
        folded = [label.strip().casefold() for label in self.labels or ()]
        if len(set(folded)) < len(folded):
            raise UsageError(f"two of the labels {', '.join(self.labels or ())} differ only in case or spaces")

    @classmethod
    def of_labels(cls, labels: Mapping[str, float]) -> Scale:
        """The scale from the worst label to the best; `UsageError` where all are worth the same."""
        scores = [float(score) for score in labels.values()]
        if len(set(scores)) < 2:
            raise UsageError(f"the labels {', '.join(labels) or '(none)'} do not stand for different scores")
        return cls(
            low=min(scores), high=max(scores), labels={str(name): float(score) for name, score in labels.items()}
        )

    @property
    def key(self) -> str:
        """The key of the verdict in a judge's JSON: `score`, or `verdict` where it is a label."""
        return "score" if self.labels is None else "verdict"

    def value(self, score: float) -> float:
        """A score as a share of the way from the worst to the best, 0 to 1."""
        return (score - self.low) / (self.high - self.low)

    def label(self, text: str) -> str | None:
        """The label that `text` is, whatever its case; None for any other text."""
        wanted = text.strip().casefold()
        return next((label for label in self.labels or () if label.strip().casefold() == wanted), None)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of a verdict: the reasoning first, so that the score follows from it."""
        if self.labels is None:
            verdict: dict[str, Any] = {"type": "number", "minimum": self.low, "maximum": self.high}
        else:
            verdict = {"type": "string", "enum": list(self.labels)}
        return {
            "type": "object",
            "properties": {"reasoning": {"type": "string"}, self.key: verdict},
            "required": ["reasoning", self.key],
            "additionalProperties": False,
        }
