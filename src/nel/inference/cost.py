"""`Prices`: what a reply costs."""

from __future__ import annotations

from dataclasses import dataclass

from nel.observability.records import ModelResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Price of a million tokens, in one currency of the user's choice."""

    input: float
    output: float
    cached_input: float | None = None
    """For the part of the prompt that the server had cached; None: as `input`."""

    def cost_of(self, response: ModelResponse) -> float:
        """Cost of one answer; its cached tokens are among the prompt's, its reasoning tokens among the completion's."""
        cached = min(response.cached_tokens, response.prompt_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        prompt = (response.prompt_tokens - cached) * self.input + cached * cached_price
        return (prompt + response.completion_tokens * self.output) / 1_000_000
