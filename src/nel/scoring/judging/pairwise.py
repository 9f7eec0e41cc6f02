"""`PairwiseMetric`: a judge prefers the answer (1), the baseline's (0), or neither (0.5)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

from nel.core.errors import AttemptError
from nel.inference.client import ModelClient
from nel.inference.request import ModelRequest
from nel.observability.records import MetricScore, Outcome
from nel.scoring.judging import prompts
from nel.scoring.judging.asking import Judge
from nel.scoring.judging.measurement import Measurement, missing, version_of
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Usage, Verdict
from nel.scoring.metric import JudgedSample

PREFERENCE = Scale.of_labels({"A": 1.0, "tie": 0.5, "B": 0.0})
TIE = 0.5


class Baseline(Protocol):
    """Whose answers are compared with."""

    def identity(self) -> Mapping[str, Any]:
        """All that its answers depend on."""
        ...

    async def answer(self, sample: JudgedSample, usage: Usage) -> str | Verdict:
        """Its answer to the problem of a sample, or why there is none."""
        ...


class ExpectedBaseline:
    """The expected answer itself."""

    def identity(self) -> dict[str, Any]:
        """It is part of a score's identity already."""
        return {"baseline": "expected answer"}

    async def answer(self, sample: JudgedSample, usage: Usage) -> str | Verdict:  # noqa: ARG002 - asks nobody
        """The expected answer as text; a problem without one cannot be compared."""
        if sample.target is None:
            reason = "the problem has no expected answer to compare with"
            return Verdict(outcome=Outcome.UNSCORED, category="unscorable", error=reason)
        return prompts.expected_text(sample.target)


class ServiceBaseline:
    """A model that is asked the same, repeat by repeat, with its own parameters."""

    def __init__(self, client: ModelClient, generation: Mapping[str, Any]) -> None:
        self.client = client
        self._generation = {name: value for name, value in generation.items() if name != "n"}

    def identity(self) -> dict[str, Any]:
        """The service and its parameters as sent."""
        service = self.client.identity()
        service.pop("generation", None)
        sent = self.client.parameters(ModelRequest(generation=self._generation))
        return {"baseline": service, "generation": sent}

    async def answer(self, sample: JudgedSample, usage: Usage) -> str | Verdict:
        """What it says to the messages that the model was sent."""
        if self.client.settings.protocol == "completions":
            request = ModelRequest(prompt=prompts.conversation(sample.messages))
        else:
            request = ModelRequest(messages=sample.messages)
        request.generation, request.repeat = self._generation, sample.repeat
        try:
            (response,) = await self.client.generate(request)
        except AttemptError as error:
            return Verdict(outcome=Outcome.ERROR, category=error.category, error=f"baseline: {error.message}")
        usage.add(response)
        return response.content


class PairwiseMetric:
    """One judge, two answers. With `swap_check` both orders are asked, and verdicts that differ are a tie; without it
    the order is chosen by a digest of the texts, so that either place is as likely."""

    VERSION = "1"
    bounds = (0.0, 1.0)

    def __init__(
        self, name: str, judge: Judge, baseline: Baseline, *, rubric: str | None = None, swap_check: bool = True
    ) -> None:
        self.name = name
        self.judge = judge
        self.baseline = baseline
        self.rubric = rubric or prompts.PAIRWISE_RUBRIC
        self.swap_check = swap_check

    def identity(self) -> dict[str, Any]:
        """Judge, baseline, rubric, prompt and the rule for both orders."""
        return {
            "metric": "pairwise_judge",
            "version": self.VERSION,
            "prompt": prompts.VERSION,
            "judge": self.judge.identity(),
            "rubric": self.rubric,
            "swap_check": self.swap_check,
            **self.baseline.identity(),
        }

    @cached_property
    def version(self) -> str:
        """The version in each of its scores."""
        return version_of(self.VERSION, self.identity())

    async def score(self, sample: JudgedSample) -> MetricScore:
        """1 where the answer is preferred, 0 where the baseline's is, 0.5 for a tie."""
        measurement = Measurement(sample)
        other = measurement.earlier.get("baseline")
        if other is None:
            other = await self.baseline.answer(sample, measurement.usage)
        if isinstance(other, Verdict):
            return measurement.result(other, self.version)
        measurement.notes["baseline"] = other
        orders = [False, True] if self.swap_check else [_coin(sample.response, other)]
        verdicts = await asyncio.gather(*(self._ask(measurement, other, swapped=swapped) for swapped in orders))
        lacking = missing(verdicts)
        if lacking is not None:
            return measurement.result(lacking, self.version)
        values = {verdict.value for verdict in verdicts}
        if self.swap_check:
            measurement.notes["consistent"] = len(values) == 1
        return measurement.result(Verdict(value=values.pop() if len(values) == 1 else TIE), self.version)

    async def _ask(self, measurement: Measurement, other: str, *, swapped: bool) -> Verdict:
        sample = measurement.sample
        texts = (other, sample.response) if swapped else (sample.response, other)
        prompt = prompts.grading_prompt(
            prompts.conversation(sample.messages),
            [("ANSWER A", texts[0]), ("ANSWER B", texts[1])],
            self.rubric,
            PREFERENCE,
            structured=self.judge.settings.structured,
        )
        key = "baseline first" if swapped else "answer first"
        return await measurement.ask(key, self.judge, prompt, PREFERENCE, reverse=swapped)


def _coin(*texts: str) -> bool:
    return bool(hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()[0] & 1)
