"""`likeliest_option`: multiple choice, decided by the log-likelihoods of the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nel.observability.records import OptionLikelihood
from nel.scoring.sample import ScorerInput

_LACKING = "the reply has no log-likelihoods of the options (solver `loglikelihood`)"


def likeliest_option(sample: ScorerInput, *, per_byte: bool = False) -> dict[str, Any]:
    """Whether the likeliest option is the expected one, whose index (or one of a list of indexes) is the target.

    The reward goes by the sum of the log-probabilities, or with `per_byte` by the sum over the option's bytes, which
    does not favour short options; the other one of the two is a metric beside it (`by_sum`, `by_byte`). Of two options
    that are equally likely the first counts. A reply without log-likelihoods is unscored.
    """
    found = sample.model_response.loglikelihoods if sample.model_response is not None else None
    if not found:
        return {"outcome": "unscored", "reason": _LACKING}
    right = _indexes(sample.target, len(found))
    by_sum, by_byte = _best(found, "sum"), _best(found, "per_byte")
    other = {"by_sum": float(by_sum in right)} if per_byte else {"by_byte": float(by_byte in right)}
    chosen = by_byte if per_byte else by_sum
    return {"correct": chosen in right, **other, "extracted": chosen, "method": "loglikelihood"}


def _indexes(target: Any, count: int) -> set[int]:
    indexes = set(target) if isinstance(target, Sequence) and not isinstance(target, str) else {target}
    for index in indexes:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise ValueError(f"the expected option is {index!r}; an index from 0 to {count - 1} is needed")
    return indexes


def _best(found: Sequence[OptionLikelihood], by: str) -> int:
    return max(range(len(found)), key=lambda at: getattr(found[at], by))
