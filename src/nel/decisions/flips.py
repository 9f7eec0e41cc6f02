"""Flips: problems that one run solves and the other does not, with both answers where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from nel.core.errors import RecordError
from nel.decisions.columns import Source
from nel.decisions.metric import Metric
from nel.decisions.pairing import Pairs, is_binary
from nel.metrics.grouping import Floats, Ints
from nel.reporting.run_view import Direction

if TYPE_CHECKING:
    from nel.decisions.compare import CompareOptions


class Flip(msgspec.Struct, kw_only=True):
    """One problem on which the runs differ; texts are those of its first attempt in each run."""

    problem: str
    """Its id, else its place in the data."""
    category: str | None
    baseline: float
    candidate: float
    prompt: str = ""
    expected: Any = None
    baseline_answer: str = ""
    candidate_answer: str = ""


class Flips(msgspec.Struct, kw_only=True):
    """How many problems got worse and better, and some of them."""

    right: str
    """What counts as right; empty where scores have no right and wrong and every change counts."""
    regressions: int
    improvements: int
    both_right: int | None
    """None where scores have no right and wrong, as `both_wrong`."""
    both_wrong: int | None
    shown_regressions: list[Flip] = []
    shown_improvements: list[Flip] = []


def find_flips(baseline: Source, candidate: Source, pairs: Pairs, metric: Metric, options: CompareOptions) -> Flips:
    """The flips of the paired problems; `show_flips` of each kind come with their texts, the largest changes first."""
    threshold = options.correct_above
    if threshold is None and is_binary(np.concatenate([pairs.baseline, pairs.candidate])):
        threshold = 0.0
    damage = metric.sign * (pairs.candidate - pairs.baseline)
    if threshold is None:
        flips = Flips(
            right="",
            regressions=int((damage > 0).sum()),
            improvements=int((damage < 0).sum()),
            both_right=None,
            both_wrong=None,
        )
    else:
        left, right = _right(pairs.baseline, threshold, metric), _right(pairs.candidate, threshold, metric)
        flips = Flips(
            right=f"{metric.name} {'above' if metric.direction is Direction.HIGHER else 'at most'} {threshold:g}",
            regressions=int((left & ~right).sum()),
            improvements=int((~left & right).sum()),
            both_right=int((left & right).sum()),
            both_wrong=int((~left & ~right).sum()),
        )
        damage = np.where(left != right, damage, 0.0)
    if options.show_flips:
        chosen = [_largest(sign * damage, options.show_flips) for sign in (1, -1)]
        shown = iter(_with_texts(baseline, candidate, pairs, np.concatenate(chosen)))
        flips.shown_regressions, flips.shown_improvements = ([next(shown) for _ in part] for part in chosen)
    return flips


def _right(values: Floats, threshold: float, metric: Metric) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """What is better than the threshold: above it, or at most it where lower is better."""
    return values > threshold if metric.direction is Direction.HIGHER else values <= threshold


def _largest(damage: Floats, count: int) -> Ints:
    order = np.argsort(-damage, kind="stable")[:count]
    return order[damage[order] > 0]


def _with_texts(baseline: Source, candidate: Source, pairs: Pairs, chosen: Ints) -> Iterator[Flip]:
    left = _details(baseline, pairs.baseline_rows[chosen])
    right = _details(candidate, pairs.candidate_rows[chosen])
    for at in chosen.tolist():
        before, after = left[int(pairs.baseline_rows[at])], right[int(pairs.candidate_rows[at])]
        code = int(pairs.categories[at])
        yield Flip(
            problem=after["problem"],
            category=pairs.category_names[code] if code >= 0 else None,
            baseline=float(pairs.baseline[at]),
            candidate=float(pairs.candidate[at]),
            prompt=before["prompt"],
            expected=before["expected"],
            baseline_answer=before["answer"],
            candidate_answer=after["answer"],
        )


def _details(source: Source, rows: Ints) -> dict[int, dict[str, Any]]:
    """The texts of the units at these places of the stream, which is read no further than needed."""
    view, cell = source
    wanted = set(rows.tolist())
    last = max(wanted, default=-1)
    found: dict[int, dict[str, Any]] = {}
    for row, unit in enumerate(view.units(cell)) if wanted else ():
        if row in wanted:
            found[row] = {"problem": unit.problem_id or str(unit.problem_idx)} | _texts(source, unit)
        if row >= last:
            break
    return found


def _texts(source: Source, unit: Any) -> dict[str, Any]:
    view, cell = source
    try:
        detail = view.detail(cell, unit)
    except RecordError as error:
        return {"prompt": "", "expected": None, "answer": f"(cannot be read: {error.message})"}
    content = detail.messages[-1].get("content") if detail.messages else ""
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return {"prompt": str(content or ""), "expected": detail.expected, "answer": detail.answer}
