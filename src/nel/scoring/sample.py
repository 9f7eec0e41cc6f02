"""`ScorerInput`: everything a scorer may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nel.observability.records import ModelResponse


@dataclass(slots=True)
class ScorerInput:
    """One answer to be graded."""

    response: str
    """The answer's text, without the model's reasoning."""
    target: Any = None
    """The expected answer; a list means that any of its members will do."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The row's own columns, and what the environment added. The same when a stored run is scored again."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The benchmark's `extra`."""
    sandbox: Any = None
    model_response: ModelResponse | None = None
    """The reply as a whole: log-probabilities, finish reason, token counts."""
