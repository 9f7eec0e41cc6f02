"""Which number is compared: a metric's name as a value per problem, with its direction."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from nel.core.errors import UsageError
from nel.reporting.run_view import CellView, Direction

if TYPE_CHECKING:
    from nel.decisions.pairing import PerProblem
    from nel.metrics.grouping import Floats, Ints

_OF_K = re.compile(r"pass([@^])(\d+)")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that has a value for each problem."""

    name: str
    of: str
    """The key of `Unit.values` that it is made of."""
    direction: Direction
    """Higher or lower, never unknown."""
    unit: str
    per_problem: PerProblem | None
    """What is made of a problem's mean and number of scored attempts; None: the mean itself."""
    bounds: tuple[float, float] | None
    """The range of its values, where it is known."""

    @property
    def sign(self) -> float:
        """Turns a difference (candidate minus baseline) into damage: positive is worse."""
        return -1.0 if self.direction is Direction.HIGHER else 1.0


def resolve(name: str | None, baseline: CellView, candidate: CellView, *, direction: Direction | None = None) -> Metric:
    """The metric called `name` of two cells, or their headline; `direction` says what the cells do not.

    `UsageError` where a cell lacks it, where it has no value per problem, or where nobody says which way is better.
    """
    name = name or baseline.headline
    if name is None:
        raise UsageError(f"{baseline.name} has no metric.", hint="See what became of it with `nel eval report`.")
    described = baseline.metrics.get(name) or candidate.metrics.get(name)
    of = _source(name, baseline, candidate)
    way = direction or (described.direction if described else Direction.UNKNOWN)
    if way is Direction.UNKNOWN and of == "reward":
        way = Direction.HIGHER
    if way is Direction.UNKNOWN:
        raise UsageError(
            f"Nobody says whether more or less of {name} is better, so a difference is neither damage nor gain.",
            hint="Say it: --direction higher or --direction lower; in a policy, `direction: higher_is_better`.",
        )
    of_k = _OF_K.fullmatch(name)
    bounds = baseline.bounds or candidate.bounds if of == "reward" else None
    return Metric(
        name=name,
        of=of,
        direction=way,
        unit=described.unit if described else "",
        per_problem=_at_k(of_k[1], int(of_k[2])) if of_k and int(of_k[2]) > 1 else None,
        bounds=(0.0, 1.0) if of_k else (bounds[0], bounds[1]) if bounds else None,
    )


def _source(name: str, baseline: CellView, candidate: CellView) -> str:
    """The key of `Unit.values` behind a metric; `mean_reward` and `pass@1` are the mean reward whatever its values."""
    if name in {"mean_reward", "pass@1"} or _OF_K.fullmatch(name):
        return "reward"
    for cell in (baseline, candidate):
        if name in cell.metrics:
            continue
        known = list(cell.metrics)
        near = get_close_matches(name, known, n=1)
        raise UsageError(
            f"{cell.name} has no metric {name!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Its metrics: {', '.join(known)}.",
        )
    of = baseline.metrics[name].of
    if of is None:
        able = [known for known, metric in baseline.metrics.items() if metric.of or _OF_K.fullmatch(known)]
        raise UsageError(
            f"{name} has no value for each problem, so it cannot be compared in pairs.",
            hint=f"Metrics that have one: {', '.join(able)}.",
        )
    return of


def _at_k(kind: str, k: int) -> Callable[[Floats, Ints], Floats]:
    def per_problem(means: Floats, scored: Ints) -> Floats:
        import numpy as np

        from nel.metrics.passk import pass_at_k, pass_hat_k

        formula = pass_at_k if kind == "@" else pass_hat_k
        right = means * scored
        known = right[scored > 0]
        if (np.abs(known - np.rint(known)) > 1e-9).any() or (known < 0).any() or (means[scored > 0] > 1).any():
            raise UsageError(f"pass{kind}{k} needs rewards of 0 and 1.", hint="Compare the mean: --metric mean_reward.")
        cases = {(int(n), int(c)) for n, c in zip(scored, np.rint(np.nan_to_num(right)), strict=True)}
        table = {(n, c): formula(n, c, k) if n >= k else np.nan for n, c in cases}
        return np.array(
            [table[int(n), int(c)] for n, c in zip(scored, np.rint(np.nan_to_num(right)), strict=True)],
            dtype=np.float64,
        )

    return per_problem
