"""`Solver`: an inference strategy, told nothing of scoring."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from nel.environments.base import SeedResult
from nel.observability.records import ModelResponse


@dataclass(slots=True, kw_only=True)
class SolveResult:
    """One attempt's answer and how it came about."""

    response: str
    model_response: ModelResponse | None = None
    messages: list[dict[str, Any]] | None = None
    """What was really sent."""
    request: dict[str, Any] | None = None
    """Generation parameters and options as sent, without the messages."""
    prompt: str | None = None
    """The text that was sent, where it was no chat."""
    trajectory: list[dict[str, Any]] | None = None
    """ATIF documents, when there were several steps."""
    reward: float | None = None
    """A verdict that came with the answer; used only where the environment is told to trust it."""
    scoring_details: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Solver(Protocol):
    """Attempts one problem. An attempt that could not be made raises `AttemptError` (or any exception)."""

    async def solve(self, task: SeedResult) -> SolveResult:
        """The answer to `task`, whose `expected_answer` is withheld. `task.metadata` is for the keys in
        `reads_metadata` alone."""
        ...


class BaseSolver:
    """What the engine asks of a solver beside `solve`; a solver of one's own may leave any of it out."""

    version: ClassVar[str] = "1"
    reads_metadata: ClassVar[tuple[str, ...]] = ()
    """Metadata keys that `solve` reads; they are part of an attempt's identity."""

    def identity(self) -> dict[str, Any]:
        """All that can change an answer beside the problem: service, model, parameters, settings, prompts, version."""
        return {"solver": f"{type(self).__module__}:{type(self).__qualname__}", "version": self.version}

    async def close(self) -> None:
        """Release what the solver holds."""
