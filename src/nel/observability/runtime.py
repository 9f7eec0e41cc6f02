"""`RuntimeStats`: how long a cell took, what it consumed and how the service behaved (`runtime_stats.json`)."""

from __future__ import annotations

import msgspec

from nel.core.contract import Record


class CacheStats(msgspec.Struct, kw_only=True):
    """Where the replies came from."""

    hits: int
    """Replies from the response cache."""
    misses: int
    """Replies from the service."""


class RuntimeStats(Record, tag="nel.runtime_stats/1", kw_only=True):
    """Runtime figures of the attempts of one cell, derived from their records alone; JSON keeps every field."""

    total_steps: int
    """Attempts, whatever their outcome."""
    total_tokens: int
    """Prompt plus completion tokens of all replies, cached ones included."""
    total_prompt_tokens: int
    total_completion_tokens: int
    """Includes the reasoning tokens."""
    total_reasoning_tokens: int
    total_cached_tokens: int
    """Prompt tokens that the service took from its own prefix cache."""
    elapsed_seconds: float
    """Time during which at least one attempt was in progress: the length of the union of the attempts' intervals, so
    that a pause between a run and its resumption does not count."""
    latency_percentiles_ms: dict[str, float]
    """`p50`, `p90`, `p99` over the requests that the service answered, linearly interpolated; empty without any."""
    ttft_percentiles_ms: dict[str, float]
    """Time to first token, likewise; empty where nothing was streamed."""
    tokens_per_second: float | None
    """Tokens that the service produced or read per elapsed second; None when no time passed."""
    steps_per_second: float | None
    model_errors: int
    """Attempts that ended without an answer."""
    errors_by_category: dict[str, int]
    """Attempts that were not measured, by failure category."""
    total_retries: int
    """Work that was repeated: attempts that the pool made again, and requests beyond an attempt's first."""
    total_tries: int
    """Requests that were sent for the final attempts."""
    finish_reason_counts: dict[str, int]
    cost: float | None
    """In the currency of the price table; None where no reply had a price."""
    cache: CacheStats
