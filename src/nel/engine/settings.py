"""`EvaluationSettings`: how one benchmark is run, whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Literal

from nel.core.errors import UsageError
from nel.engine.stopping import StopRule

ErrorPolicy = Literal["exclude", "zero", "abort"]
RetryErrors = Literal["transient", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """How one benchmark is run; `UsageError` names a value out of range.

    Only what changes an answer or a score is part of an identity, and none of these does: they choose problems, bound
    work and say what an error means.
    """

    repeats: int = 1
    max_problems: int | None = None
    """Take only the first problems, after selection and shuffling."""
    problem_range: tuple[int, int] | None = None
    """Positions [start, end) among the selected problems."""
    select_ids: tuple[str, ...] = ()
    """Only problems with these ids (or, for problems without an id, with these indexes)."""
    select_where: Mapping[str, Any] = field(default_factory=dict)
    """Only problems whose metadata field has the value, or one of the values in a list."""
    shuffle_seed: int | None = None
    """Order of the problems; None is the data's own."""
    max_concurrent: int = 32
    timeout: float | None = 1800.0
    """Seconds for one attempt, solver and model together."""
    max_system_retries: int = 3
    """Further tries after a crash of solver, sandbox or server."""
    error_policy: ErrorPolicy = "exclude"
    """What an error is in the headline: left out, a zero, or the end of the benchmark."""
    max_error_rate: float = 0.05
    """Errors over planned attempts above which the benchmark ends as degraded."""
    retry_errors: RetryErrors = "transient"
    """On resume: `all` repeats also what a service refused for good."""
    instruction_template: str | None = None
    """Text around each prompt, with `{prompt}` in it (`{{` and `}}` are braces)."""

    stop_when: StopRule | None = None
    """When enough is known to end early."""

    def __post_init__(self) -> None:
        for name, low in (("repeats", 1), ("max_concurrent", 1), ("max_problems", 1), ("max_system_retries", 0)):
            value = getattr(self, name)
            if value is not None and value < low:
                raise UsageError(f"{name} is {value}; it must be {low} or more")
        if not 0 <= self.max_error_rate <= 1:
            raise UsageError(f"max_error_rate is {self.max_error_rate}; it must be between 0 and 1")
        if self.timeout is not None and not self.timeout > 0:
            raise UsageError(f"timeout is {self.timeout}; it must be greater than 0")
        if self.problem_range is not None:
            start, end = self.problem_range
            if not 0 <= start <= end:
                raise UsageError(f"problem_range is [{start}, {end}); it must be 0 <= start <= end")
        if self.instruction_template is not None and "{prompt}" not in self.instruction_template:
            raise UsageError("instruction_template has no {prompt} in it")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> EvaluationSettings:
        """The settings that a mapping gives; an unknown name is refused with the nearest valid one."""
        known = [item.name for item in fields(cls)]
        for name in values:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                raise UsageError(f"unknown setting {name!r}", hint=f"Did you mean {near[0]!r}?" if near else None)
        return cls(**values)
