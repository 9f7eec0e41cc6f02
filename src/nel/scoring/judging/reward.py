"""`RewardModelMetric`: a reward model's score of an answer, as one number, as one of several aspects, or against the
expected answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from nel.core.errors import AttemptError
from nel.inference.client import ModelClient
from nel.inference.request import ModelRequest
from nel.observability.records import MetricScore, Outcome
from nel.scoring.judging.asking import RETRY_STRIDE
from nel.scoring.judging.measurement import Measurement, missing, version_of
from nel.scoring.judging.prompts import expected_text
from nel.scoring.judging.verdict import Verdict
from nel.scoring.metric import JudgedSample

Mode = Literal["single", "multi_aspect", "pairwise"]

_NUMBER = r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,3})?"
_ALONE = re.compile(rf"(?:(?:reward|score)\s*[:=]\s*)?({_NUMBER})", re.IGNORECASE)
_ASPECT = re.compile(rf"([A-Za-z][\w -]{{0,60}}?)\s*[:=]\s*({_NUMBER})")


class RewardModelMetric:
    """Sends the conversation with the answer as the last turn, and reads the reply, which is nothing but numbers.

    The value is the score as a share of `score_range`; with `threshold` it is 1 from that score on, else 0. Mode
    `pairwise` scores the expected answer too: 1 where the answer has the higher score, 0.5 where both are equal.
    """

    VERSION = "1"
    bounds = (0.0, 1.0)

    def __init__(
        self,
        name: str,
        client: ModelClient,
        *,
        generation: Mapping[str, Any] | None = None,
        mode: Mode = "single",
        aspect: str | None = None,
        score_range: tuple[float, float] = (0.0, 1.0),
        threshold: float | None = None,
        timeout: float = 120.0,
        max_retries: int = 2,
    ) -> None:
        self.name = name
        self.client = client
        self.mode = mode
        self.aspect = aspect
        self.score_range = score_range
        self.threshold = threshold
        self.timeout = timeout
        self.max_retries = max_retries
        self._generation = {key: value for key, value in (generation or {}).items() if key != "n"}
        client.check(ModelRequest(messages=[{"role": "user", "content": ""}], generation=self._generation))

    def identity(self) -> dict[str, Any]:
        """The service, and how its reply becomes a value."""
        service = self.client.identity()
        service.pop("generation", None)
        return {
            "metric": "reward_model",
            "version": self.VERSION,
            "service": service,
            "generation": self.client.parameters(ModelRequest(generation=self._generation)),
            "mode": self.mode,
            "aspect": self.aspect,
            "score_range": list(self.score_range),
            "threshold": self.threshold,
        }

    @cached_property
    def version(self) -> str:
        """The version in each of its scores."""
        return version_of(self.VERSION, self.identity())

    async def score(self, sample: JudgedSample) -> MetricScore:
        """The reward of the answer, 0 to 1."""
        measurement = Measurement(sample)
        texts = {"answer": sample.response}
        if self.mode == "pairwise":
            if sample.target is None:
                reason = "the problem has no expected answer to compare with"
                none = Verdict(outcome=Outcome.UNSCORED, category="unscorable", error=reason)
                return measurement.result(none, self.version)
            texts["expected"] = expected_text(sample.target)
        found = await asyncio.gather(*(self._reward(measurement, key, text) for key, text in texts.items()))
        lacking = missing(found)
        if lacking is not None:
            return measurement.result(lacking, self.version)
        return measurement.result(self._verdict([verdict.score or 0.0 for verdict in found]), self.version)

    def _verdict(self, scores: list[float]) -> Verdict:
        score = scores[0]
        low, high = self.score_range
        if self.mode == "pairwise":
            value = 0.5 if score == scores[1] else float(score > scores[1])
        elif self.threshold is not None:
            value = float(score >= self.threshold)
        else:
            value = (score - low) / (high - low)
        return Verdict(value=value, score=score)

    async def _reward(self, measurement: Measurement, key: str, text: str) -> Verdict:
        known = measurement.known(key)
        verdict = known or await self._ask(measurement, text)
        measurement.verdicts[key] = verdict
        return verdict

    async def _ask(self, measurement: Measurement, text: str) -> Verdict:
        sample = measurement.sample
        messages = [*sample.messages, {"role": "assistant", "content": text}]
        fresh = tries = 0
        while True:
            request = ModelRequest(
                messages=messages, generation=self._generation, repeat=sample.repeat + tries * RETRY_STRIDE
            )
            try:
                async with asyncio.timeout(self.timeout) as limit:
                    (response,) = await self.client.generate(request)
            except TimeoutError:
                if not limit.expired():
                    raise
                late = f"reward model {self.client.settings.name}: no score within {self.timeout:g} s"
                return Verdict(outcome=Outcome.ERROR, category="model_timeout", error=late)
            except AttemptError as error:
                return Verdict(outcome=Outcome.ERROR, category=error.category, error=f"reward model: {error.message}")
            measurement.usage.add(response)
            tries += 1
            fresh += not response.cached
            score = self._read(response.content)
            if isinstance(score, float):
                return Verdict(score=score, value=score, reply=response.content)
            measurement.usage.unreadable += 1
            if fresh > self.max_retries:
                return Verdict(
                    outcome=Outcome.UNSCORED,
                    category="judge_unparsable",
                    error=f"reward model {self.client.settings.name}: {score}",
                    reply=response.content,
                )

    def _read(self, reply: str) -> float | str:
        """The score, or why there is none."""
        found = read_rewards(reply)
        if self.mode == "multi_aspect":
            score = found.get((self.aspect or "").casefold())
            if score is None:
                return f"the reply has no aspect {self.aspect!r}: {reply[:80]!r}"
        elif len(found) == 1:
            score = next(iter(found.values()))
        else:
            return f"the reply is no single score: {reply[:80]!r}"
        low, high = self.score_range
        if not low <= score <= high:
            return f"{score:g} lies outside score_range, {low:g} to {high:g}"
        return score


def read_rewards(reply: str) -> dict[str, float]:
    """The scores of a reply that holds nothing else, by lower-case name ("" for a lone number); none in any other.

    Forms: `-3.5`, `reward: 0.7`, `helpfulness:3.1,correctness:2`, one to a line, or a flat JSON object of numbers.
    """
    text = reply.strip()
    if len(text) > 10_000:
        return {}
    if alone := _ALONE.fullmatch(text):
        return {"": float(alone[1])}
    if text.startswith("{"):
        try:
            pairs = json.loads(text, object_pairs_hook=list)
            numbers = [float(value) for _, value in pairs if type(value) in {int, float}]
        except (ValueError, RecursionError, OverflowError):
            return {}
        values = dict(zip((name.casefold() for name, _ in pairs), numbers, strict=False))
        return values if len(values) == len(pairs) else {}
    found: dict[str, float] = {}
    for part in re.split(r"[,;\n]", text):
        match = _ASPECT.fullmatch(part.strip())
        if match is None or match[1].casefold() in found:
            return {}
        found[match[1].casefold()] = float(match[2])
    return found
