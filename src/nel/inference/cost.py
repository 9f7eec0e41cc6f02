"""`Prices`: what a reply costs."""

from __future__ import annotations

from dataclasses import dataclass

from nel.observability.records import ModelResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Price of a million tokens, in one currency of the user's choice."""

    prompt: float
    completion: float
    cached: float | None = None
    """For the part of the prompt that the server had cached; None: as `prompt`."""

    def cost_of(self, response: ModelResponse) -> float:
        """Cost of one answer; its cached tokens are among the prompt's, its reasoning tokens among the completion's."""
        cached = min(response.cached_tokens, response.prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        prompt = (response.prompt_tokens - cached) * self.prompt + cached * cached_price
        return (prompt + response.completion_tokens * self.completion) / 1_000_000
