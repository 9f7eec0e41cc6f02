"""What every scorer reads and returns: the acceptable answers, and the verdict with what was taken for the answer."""

from __future__ import annotations

from typing import Any

from nel.scoring.extract import Extraction
from nel.scoring.sample import ScorerInput
from nel.scoring.text import is_empty

Verdict = dict[str, Any]

_MAX_EXTRACTED = 1000


def targets(target: Any) -> list[str]:
    """The acceptable answers as text; `ValueError` where there is none."""
    values = list(target) if isinstance(target, list | tuple | set | frozenset) else [target]
    if not values or any(value is None for value in values):
        raise ValueError(f"the expected answer is {target!r}")
    return [str(value) for value in values]


def verdict_on(
    method: str,
    sample: ScorerInput,
    score: bool | float,
    *,
    extracted: str | None = None,
    found: Extraction | None = None,
    **more: Any,
) -> Verdict:
    """The verdict: a bool as `correct`, a number as `reward`; an answer that was not in the final text is flagged."""
    verdict: Verdict = {
        "correct" if isinstance(score, bool) else "reward": score,
        "extracted": shortened(found.text if found else extracted),
        "method": method,
    }
    if found is not None:
        verdict["rule"] = found.rule
        verdict["span"] = [found.start, found.end]
        if found.source != "reply":
            verdict["from"] = found.source
    if verdict["extracted"] is None:
        verdict["failure_category"] = "empty_response" if is_empty(sample.response) else "no_answer"
    if more:
        verdict |= more
    return verdict


def shortened(text: str | None) -> str | None:
    """`text` as it is kept: at most 1,000 characters."""
    return text if text is None or len(text) <= _MAX_EXTRACTED else text[: _MAX_EXTRACTED - 1] + "…"
