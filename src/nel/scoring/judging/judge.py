"""`JudgeMetric`: a model grades each answer by a rubric. `Grader`: what can answer a benchmark's own questions."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from nel.observability.records import MetricScore
from nel.scoring.judging import prompts
from nel.scoring.judging.asking import Judge
from nel.scoring.judging.measurement import Measurement, missing, version_of
from nel.scoring.judging.request import JudgeQuestion
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Verdict
from nel.scoring.metric import JudgedSample


class Grader(ABC):
    """A metric that decides questions about an answer, one by one."""

    VERSION = "1"
    bounds = (0.0, 1.0)

    def __init__(
        self, name: str, *, rubric: str | None = None, scale: Scale | None = None, reference_free: bool = False
    ) -> None:
        self.name = name
        self.rubric = rubric
        self.scale = scale
        self.reference_free = reference_free

    @property
    def is_open(self) -> bool:
        """Whether it has no rubric or scale of its own, so that a benchmark may say what it goes by."""
        return self.rubric is None and self.scale is None

    def identity(self) -> dict[str, Any]:
        """Judges, prompts, rubric and scale, with the versions of what reads the replies."""
        return {
            "version": self.VERSION,
            "prompt": prompts.VERSION,
            "rubric": prompts.RUBRIC if self.rubric is None else self.rubric,
            "scale": msgspec.to_builtins(self.scale or Scale()),
            "reference_free": self.reference_free,
        }

    @cached_property
    def version(self) -> str:
        """The version in each of its scores."""
        return version_of(self.VERSION, self.identity())

    async def score(self, sample: JudgedSample) -> MetricScore:
        """The grade by the rubric, 0 for the worst score and 1 for the best."""
        measurement = Measurement(sample)
        verdicts = await self.decide(measurement, {"": JudgeQuestion()})
        return measurement.result(verdicts[""], self.version)

    async def decide(self, measurement: Measurement, questions: Mapping[str, JudgeQuestion]) -> dict[str, Verdict]:
        """The verdict on each question."""
        found = await asyncio.gather(*(self._decide(measurement, *item) for item in questions.items()))
        return dict(zip(questions, found, strict=True))

    @abstractmethod
    async def _decide(self, measurement: Measurement, name: str, question: JudgeQuestion) -> Verdict: ...

    def scale_of(self, question: JudgeQuestion) -> Scale:
        """What may be answered: what the question says, else the metric's own scale."""
        return question.scale or self.scale or Scale()

    def prompt(self, sample: JudgedSample, question: JudgeQuestion, *, structured: bool, swapped: bool = False) -> str:
        """What a judge is asked; `swapped` shows the answer before the expected one."""
        if question.prompt is not None:
            return question.prompt
        rubric = question.rubric or self.rubric or prompts.RUBRIC
        parts = [("ANSWER", sample.response)]
        if self.shows_expected(sample, question):
            rubric = f"{rubric}\n\n{prompts.REFERENCE}"
            expected = ("EXPECTED ANSWER", prompts.expected_text(sample.target))
            parts = [*parts, expected] if swapped else [expected, *parts]
        asked = prompts.conversation(sample.messages)
        return prompts.grading_prompt(asked, parts, rubric, self.scale_of(question), structured=structured)

    def shows_expected(self, sample: JudgedSample, question: JudgeQuestion) -> bool:
        """Whether the judge sees the expected answer."""
        known = question.prompt is None and question.show_expected and sample.target is not None
        return known and not self.reference_free


class JudgeMetric(Grader):
    """One judge. With `swap_check` it sees answer and expected answer in both orders, and its scores are averaged."""

    def __init__(
        self,
        name: str,
        judge: Judge,
        *,
        rubric: str | None = None,
        scale: Scale | None = None,
        reference_free: bool = False,
        swap_check: bool = False,
    ) -> None:
        super().__init__(name, rubric=rubric, scale=scale, reference_free=reference_free)
        self.judge = judge
        self.swap_check = swap_check

    def identity(self) -> dict[str, Any]:
        """The judge, what it goes by, and whether both orders are asked."""
        own = {"metric": "judge", "judge": self.judge.identity(), "swap_check": self.swap_check}
        return {**super().identity(), **own}

    async def _decide(self, measurement: Measurement, name: str, question: JudgeQuestion) -> Verdict:
        sample, structured = measurement.sample, self.judge.settings.structured
        orders = [False, True] if self.swap_check and self.shows_expected(sample, question) else [False]
        verdicts = await asyncio.gather(
            *(
                measurement.ask(
                    key_of(name, "swapped" if swapped else "first" if len(orders) > 1 else ""),
                    self.judge,
                    self.prompt(sample, question, structured=structured, swapped=swapped),
                    self.scale_of(question),
                )
                for swapped in orders
            )
        )
        lacking = missing(verdicts)
        if lacking is not None or len(verdicts) == 1:
            return lacking or verdicts[0]
        first, second = verdicts
        agree = first.score == second.score
        measurement.notes.setdefault("consistent", {})[name or "verdict"] = agree
        assert first.value is not None
        assert second.value is not None
        return Verdict(
            value=(first.value + second.value) / 2,
            score=((first.score or 0.0) + (second.score or 0.0)) / 2,
            label=first.label if agree else None,
        )


def key_of(*parts: str) -> str:
    """The name of one verdict among those of a measurement."""
    return "/".join(part for part in parts if part) or "verdict"
