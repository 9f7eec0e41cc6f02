"""What a scorer says to a judge: `needs_judge` asks, `judge_score` is the answer when the scorer is called again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nel.core.errors import UsageError
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Verdict
from nel.scoring.sample import ScorerInput

ASKED = "needs_judge"
"""The key of a scorer's result, and then of the scoring details, that holds the questions."""
ANSWERED = "__judge_verdicts__"
"""The key of the sample's metadata that holds the verdicts."""


class JudgeQuestion(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One thing that a judge shall decide of an answer."""

    rubric: str | None = None
    """What it goes by; None: what the config says, or the usual rubric."""
    labels: dict[str, float] | None = None
    """What it may answer, and what each answer is worth."""
    low: float | None = None
    high: float | None = None
    """Worst and best score, where the answer is a number."""
    prompt: str | None = None
    """The whole prompt, instead of the one that shows question, answer, expected answer and rubric. It must say how to
    reply: with a JSON object that has `verdict` (a label) or `score`, or with a last line `Verdict: ...`."""
    show_expected: bool = True

    def __post_init__(self) -> None:
        if self.labels is not None and (self.low is not None or self.high is not None):
            raise UsageError("a judge's question has either labels, or a worst and a best score")
        self.scale  # noqa: B018 - refuses labels and ranges that make no scale, where the question is made

    @property
    def scale(self) -> Scale | None:
        """What may be answered; None where nothing is said of it."""
        if self.labels is not None:
            return Scale.of_labels(self.labels)
        if self.low is None and self.high is None:
            return None
        return Scale(low=1.0 if self.low is None else self.low, high=5.0 if self.high is None else self.high)

    @property
    def is_open(self) -> bool:
        """Whether the config may say what the judge goes by."""
        return self.rubric is None and self.prompt is None and self.scale is None


def needs_judge(questions: Mapping[str, JudgeQuestion] | JudgeQuestion | None = None, **one: Any) -> dict[str, Any]:
    """A scorer's result that leaves the verdict to the judge of `scoring.metrics`.

    `needs_judge(rubric=..., labels={"correct": 1, "wrong": 0})` asks one question (see `JudgeQuestion` for its keys);
    several are a mapping from names. When all are answered, the scorer is called again and finds the verdicts with
    `judge_score`. A scorer that asks a single question and does not look leaves its reward to the judge: 0 for the
    worst answer of the scale, 1 for the best. Without a judge the answer is unscored.
    """
    if questions is not None and one:
        raise UsageError("needs_judge takes either questions, or the keys of a single one")
    if questions is None:
        questions = JudgeQuestion(**one)
    named = {"": questions} if isinstance(questions, JudgeQuestion) else dict(questions)
    if not named:
        raise UsageError("needs_judge was given no question")
    return {
        "outcome": "unscored",
        "reason": "the benchmark needs a judge, and scoring.metrics names none that could decide",
        ASKED: {name: msgspec.to_builtins(question) for name, question in named.items()},
    }


def judge_score(sample: ScorerInput, name: str = "") -> Verdict | None:
    """What the judge decided on a question: `label`, `score` and `value` (0 to 1). None where it was not asked yet.

    `KeyError` names a question that was not among those asked.
    """
    verdicts = sample.metadata.get(ANSWERED)
    if verdicts is None:
        return None
    if name not in verdicts:
        raise KeyError(f"the judge was not asked {name!r}, but: {', '.join(map(repr, verdicts))}")
    return msgspec.convert(verdicts[name], Verdict)


def questions_of(details: Mapping[str, Any]) -> dict[str, JudgeQuestion]:
    """The questions that a verdict's details ask; none where it was reached without a judge."""
    asked = details.get(ASKED)
    if not asked:
        return {}
    return {str(name): msgspec.convert(question, JudgeQuestion) for name, question in asked.items()}
