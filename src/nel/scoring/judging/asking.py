"""`Judge`: asks one service for one verdict, again while it cannot be read, and never turns an outage into a score."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nel.core.errors import AttemptError
from nel.inference.client import ModelClient
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse, Outcome
from nel.scoring.judging import parsing, prompts
from nel.scoring.judging.parsing import Unreadable, read_verdict
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Usage, Verdict

RETRY_STRIDE = 100_000
"""How far apart the repeats of a judge's tries are: further than those of a problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How a judge is asked, whatever it is asked."""

    system_prompt: str = prompts.SYSTEM
    temperature: float | None = 0.0
    """None: not sent."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """The judge's own parameters (`max_tokens`, `seed`, ...)."""
    timeout: float = 120.0
    """Seconds for one reply, the client's retries included."""
    max_retries: int = 2
    """Further tries after a reply that cannot be read."""
    structured: bool = False
    """Ask for JSON by a schema (`response_format`)."""


class Judge:
    """A service in the role of a judge."""

    def __init__(self, client: ModelClient, settings: JudgeSettings) -> None:
        self.client = client
        self.settings = settings
        self.name = client.settings.name
        generation = dict(settings.generation)
        generation.pop("n", None)
        if settings.temperature is not None:
            generation["temperature"] = settings.temperature
        self._generation = generation
        client.check(self._request("", Scale(), 0))

    def identity(self) -> dict[str, Any]:
        """All that a verdict depends on beside the prompt: the service, what is sent, how replies are read."""
        service = self.client.identity()
        service.pop("generation", None)
        return {
            "service": service,
            "generation": self.client.parameters(ModelRequest(generation=self._generation)),
            "system_prompt": self.settings.system_prompt,
            "structured": self.settings.structured,
            "parsing": parsing.VERSION,
        }

    async def ask(self, prompt: str, scale: Scale, *, repeat: int, usage: Usage) -> Verdict:
        """The verdict on one prompt.

        A reply that cannot be read is asked for again as another repeat, so that no cache answers; one that a cache
        kept from an earlier run does not use up the budget. What the service fails to answer is an error with the
        category of its failure.
        """
        unreadable: list[str] = []
        reply, reason, fresh = "", "", 0
        for tries in itertools.count():
            try:
                async with asyncio.timeout(self.settings.timeout) as limit:
                    (response,) = await self.client.generate(
                        self._request(prompt, scale, repeat + tries * RETRY_STRIDE)
                    )
            except TimeoutError:
                if not limit.expired():
                    raise
                late = f"judge {self.name}: no verdict within {self.settings.timeout:g} s"
                return Verdict(outcome=Outcome.ERROR, unreadable=unreadable, category="model_timeout", error=late)
            except AttemptError as error:
                return Verdict(
                    outcome=Outcome.ERROR,
                    unreadable=unreadable,
                    category=error.category,
                    error=f"judge: {error.message}",
                )
            usage.add(response)
            found = self._read(response, scale)
            if not isinstance(found, Unreadable):
                return Verdict(
                    value=scale.value(found.score),
                    score=found.score,
                    label=found.label,
                    reply=response.content,
                    unreadable=unreadable,
                )
            usage.unreadable += 1
            reply, reason = response.content, found.reason
            fresh += not response.cached
            if fresh > self.settings.max_retries:
                break
            unreadable = [*unreadable, reply][-max(1, self.settings.max_retries) :]
        return Verdict(
            outcome=Outcome.UNSCORED,
            reply=reply,
            unreadable=unreadable,
            category="judge_unparsable",
            error=f"judge {self.name}: {reason}",
        )

    def _read(self, response: ModelResponse, scale: Scale) -> parsing.Reading | Unreadable:
        if response.finish_reason == "length" and not self.settings.structured:
            return Unreadable("the reply was cut at its token limit")
        return read_verdict(response.content, scale, whole=self.settings.structured)

    def _request(self, prompt: str, scale: Scale, repeat: int) -> ModelRequest:
        generation = self._generation
        if self.settings.structured:
            schema = {"name": "verdict", "strict": True, "schema": scale.schema()}
            generation = {**generation, "response_format": {"type": "json_schema", "json_schema": schema}}
        system = self.settings.system_prompt
        if self.client.settings.protocol == "completions":
            return ModelRequest(prompt=f"{system}\n\n{prompt}\n", generation=generation, repeat=repeat)
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        return ModelRequest(messages=messages, generation=generation, repeat=repeat)
