"""`Verdict` of one judge, and `Usage`: what verdicts took."""

from __future__ import annotations

import msgspec

from nel.observability.records import ModelResponse, Outcome


class Verdict(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One verdict of one judge, or why there is none; what stands in a metric's details."""

    outcome: Outcome = Outcome.SCORED
    value: float | None = None
    """0 to 1; None unless scored."""
    score: float | None = None
    """On the judge's scale."""
    label: str | None = None
    reply: str = ""
    """The reply that the verdict was read from, or the last one that could not be read."""
    unreadable: list[str] = []
    """Earlier replies that could not be read, the last few of them."""
    category: str | None = None
    error: str | None = None


class Usage(msgspec.Struct, kw_only=True):
    """What verdicts took; replies of a cache cost nothing."""

    requests: int = 0
    unreadable: int = 0
    """Replies that could not be read."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """In the currency of the judge's price table; None without one."""
    latency_ms: float = 0.0
    """Of all replies together."""
    cached: int = 0
    """Replies that came from the response cache."""

    def add(self, response: ModelResponse) -> None:
        """Count one reply."""
        self.requests += 1
        self.prompt_tokens += response.prompt_tokens
        self.completion_tokens += response.completion_tokens
        self.latency_ms = round(self.latency_ms + (0.0 if response.cached else response.latency_ms), 3)
        self.cached += response.cached
        if response.cost is not None:
            self.cost = (self.cost or 0.0) + response.cost

    def join(self, other: Usage) -> None:
        """Count what another one counted."""
        for name in ("requests", "unreadable", "prompt_tokens", "completion_tokens", "latency_ms", "cached"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost
