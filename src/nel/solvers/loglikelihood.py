"""`LoglikelihoodSolver`: decides among a problem's options by how likely the model finds each as its continuation.

A problem names its options in `metadata["options"]`: texts that follow the prompt as they stand, the space before them
included. Where the text before an option differs, `metadata["option_contexts"]` has one for each, instead of a prompt.
The server must speak text completions and return the log-probabilities of the prompt (`echo` with `logprobs`); one that
returns none is an error of the attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from nel.core.errors import AttemptError, UsageError
from nel.environments.base import SeedResult
from nel.inference.client import ModelClient
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse, OptionLikelihood
from nel.solvers.base import BaseSolver, SolveResult

ENDPOINT_TYPE = "loglikelihood"
"""The `endpoint_type` of benchmarks that are decided so."""
OPTIONS = "options"
CONTEXTS = "option_contexts"

_SENT: Final[dict[str, Any]] = {"max_tokens": 1, "temperature": 0.0, "logprobs": True}
"""One token, because some servers refuse to answer with none."""


class LoglikelihoodSolver(BaseSolver):
    """One request for each option, all at once; the answer is the option with the highest log-likelihood.

    The record has the sum, and the sum per byte, of every option. Generation parameters of the service are not sent:
    none changes the log-probabilities of a prompt. `UsageError` where the service speaks another protocol.
    """

    kind = "loglikelihood"
    reads_metadata = (OPTIONS, CONTEXTS)

    def __init__(self, client: ModelClient, *, system_prompt: str | None = None) -> None:
        if client.settings.protocol != "completions":
            raise UsageError(
                f"service {client.settings.name} speaks {client.settings.protocol}, which has no log-probabilities of "
                "the prompt",
                hint="Log-likelihoods need a service with `protocol: completions`.",
            )
        self.client = client
        self.system_prompt = system_prompt
        self._generation = {**dict.fromkeys(client.settings.generation), **_SENT}

    def identity(self) -> dict[str, Any]:
        """Service, what is sent, and the system prompt."""
        service = self.client.identity()
        service.pop("generation", None)
        return {
            "solver": self.kind,
            "version": self.version,
            "service": service,
            "generation": dict(_SENT),
            "system_prompt": self.system_prompt,
        }

    async def solve(self, task: SeedResult) -> SolveResult:
        """The likeliest option; `AttemptError` where the problem has none, or the server gives no log-probabilities."""
        contexts, options = continuations(task)
        system = self.system_prompt if self.system_prompt is not None else task.system
        if system:
            contexts = [f"{system}\n\n{context}" for context in contexts]
        requests = [
            ModelRequest(
                prompt=context + option,
                generation=self._generation,
                repeat=task.repeat,
                echo=True,
                keep_raw=True,
                stream=False,
            )
            for context, option in zip(contexts, options, strict=True)
        ]
        answers = await asyncio.gather(*map(self.client.generate, requests), return_exceptions=True)
        replies = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            replies.append(answer[0])
        found = [self._likelihood(option, reply) for option, reply in zip(options, replies, strict=True)]
        best = max(range(len(found)), key=lambda at: found[at].sum)
        return SolveResult(
            response=options[best].strip(),
            model_response=_joined(replies, options[best].strip(), found),
            prompt=contexts[0] if len(set(contexts)) == 1 else None,
            request={**_SENT, "echo": True},
        )

    def _likelihood(self, option: str, reply: ModelResponse) -> OptionLikelihood:
        raw = reply.raw_response or {}
        found = likelihood(option, raw["choices"][0].get("logprobs"), reply.completion_tokens)
        if isinstance(found, str):
            raise AttemptError(f"service {self.client.settings.name}: {found}", category="bad_response")
        return found


def continuations(task: SeedResult) -> tuple[list[str], list[str]]:
    """The texts before the options, and the options; `AttemptError` where the problem has no options."""
    options = task.metadata.get(OPTIONS)
    if not isinstance(options, list) or not options or not all(isinstance(o, str) and o.strip() for o in options):
        raise AttemptError(
            f"the problem has no list of texts as its `{OPTIONS}`, so there is nothing to choose from",
            category="seed_error",
            permanent=True,
        )
    contexts = task.metadata.get(CONTEXTS) or [task.prompt] * len(options)
    if len(contexts) != len(options) or not all(isinstance(c, str) and c.strip() for c in contexts):
        raise AttemptError(
            f"each of the problem's {len(options)} options needs a text before it (the prompt, or `{CONTEXTS}`)",
            category="seed_error",
            permanent=True,
        )
    return list(contexts), options


def likelihood(option: str, table: Any, generated: int) -> OptionLikelihood | str:
    """The log-likelihood of the option that an echoed prompt ends in, or why there is none.

    Args:
        option: the text, which is the end of the prompt.
        table: `logprobs` of the reply: `tokens`, `token_logprobs` and, where they are given, `top_logprobs`.
        generated: how many tokens after the prompt the server counts.

    A token that holds the end of the text before the option and the option's beginning counts as the option's.
    """
    table = table if isinstance(table, Mapping) else {}
    tokens, values = table.get("tokens"), table.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        return "returned no log-probabilities of the prompt (`echo` with `logprobs`), so options cannot be compared"
    end = next((end for end in _ends(tokens, generated) if "".join(map(str, tokens[:end])).endswith(option)), None)
    if end is None:
        return f"the tokens that it returned do not end in the option {option[-40:]!r}"
    start, missing = end, len(option)
    while start and (missing > 0 or not tokens[start - 1]):  # a token without text is the first part of a character
        start -= 1
        missing -= len(str(tokens[start]))
    if not all(isinstance(value, int | float) for value in values[start:end]):
        return f"a token of the option {option[-40:]!r} has no log-probability"
    total = float(sum(values[start:end]))
    size = len(option.strip().encode("utf-8", "surrogatepass"))
    tops = table.get("top_logprobs")
    greedy = None
    if isinstance(tops, list) and len(tops) == len(tokens) and all(isinstance(top, Mapping) for top in tops[start:end]):
        greedy = all(values[at] >= max(tops[at].values(), default=values[at]) for at in range(start, end))
    return OptionLikelihood(sum=total, per_byte=total / size, tokens=end - start, greedy=greedy)


def _ends(tokens: list[Any], generated: int) -> list[int]:
    """Where the prompt may end: before the tokens that the server counts as its own, else before the last, or there."""
    counted = [len(tokens) - generated] if generated else []
    return [end for end in (*counted, len(tokens) - 1, len(tokens)) if end > 0]


def _joined(replies: list[ModelResponse], content: str, found: list[OptionLikelihood]) -> ModelResponse:
    """The replies to one problem's requests as one response."""
    costs = [reply.cost for reply in replies if reply.cost is not None]
    hashes = "".join(reply.request_hash for reply in replies), "".join(reply.response_hash for reply in replies)
    return ModelResponse(
        content=content,
        model=replies[0].model,
        finish_reason="stop",
        prompt_tokens=sum(reply.prompt_tokens for reply in replies),
        completion_tokens=sum(reply.completion_tokens for reply in replies),
        cached_tokens=sum(reply.cached_tokens for reply in replies),
        latency_ms=max(reply.latency_ms for reply in replies),
        loglikelihoods=found,
        request_hash=sha256(hashes[0].encode()).hexdigest(),
        response_hash=sha256(hashes[1].encode()).hexdigest(),
        cost=sum(costs) if costs else None,
        tries=max(reply.tries for reply in replies),
        cached=all(reply.cached for reply in replies),
        replica=replies[0].replica,
    )
