"""The solvers of one request: `ChatSolver`, `VLMSolver` (images) and `CompletionSolver` (plain text).

Config `type: simple` chooses among them with `simple_solver`. The solver's own system prompt replaces the benchmark's,
and its generation parameters replace the service's, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nel.core.errors import UsageError
from nel.environments.base import SeedResult
from nel.inference.client import ModelClient
from nel.inference.request import ModelRequest
from nel.observability.records import ModelResponse
from nel.solvers.base import BaseSolver, SolveResult


class _OneRequestSolver(BaseSolver):
    """Renders a problem as one request and takes each choice of the reply as an answer."""

    kind = "chat"

    def __init__(
        self,
        client: ModelClient,
        *,
        system_prompt: str | None = None,
        generation: Mapping[str, Any] | None = None,
        choices: int = 1,
    ) -> None:
        self.client = client
        self.system_prompt = system_prompt
        self.generation = dict(generation or {})
        self.choices = choices
        """Answers that one request asks for: a way of transport, no part of the identity."""
        self._sent = client.parameters(ModelRequest(generation=self.generation))
        if choices > 1 and "seed" in self._sent:
            raise UsageError(
                "generation.n above 1 cannot go with generation.seed: the choices of one reply share their seed",
                hint="Leave out `n`; repeats are asked one by one, each with its own seed.",
            )

    def identity(self) -> dict[str, Any]:
        """Service, parameters as sent, prompts and settings; not `n`, which is only a way of transport."""
        service = self.client.identity()
        service.pop("generation", None)
        return {
            "solver": self.kind,
            "version": self.version,
            "service": service,
            "generation": self._sent,
            "system_prompt": self.system_prompt,
        }

    async def solve(self, task: SeedResult) -> SolveResult:
        """The answer to one problem."""
        return (await self.solve_many(task, 1))[0]

    async def solve_many(self, task: SeedResult, count: int) -> list[SolveResult]:
        """Answers for the repeats `task.repeat` to `task.repeat + count - 1`."""
        request = self._request(task)
        request.n = count
        responses = await self.client.generate(request)
        return [self._result(request, response, task.repeat + at) for at, response in enumerate(responses)]

    def _request(self, task: SeedResult) -> ModelRequest:
        raise NotImplementedError

    def _result(self, request: ModelRequest, response: ModelResponse, repeat: int) -> SolveResult:
        sent = self._sent
        if "seed" in sent:
            sent = {**sent, "seed": sent["seed"] + repeat}
        return SolveResult(
            response=response.content,
            model_response=response,
            messages=_with_images(request) if request.messages is not None else None,
            prompt=request.prompt,
            request=sent,
        )

    def _messages(self, task: SeedResult) -> list[dict[str, Any]]:
        system = self.system_prompt if self.system_prompt is not None else task.system
        if task.messages is None:
            user = {"role": "user", "content": task.prompt}
            return [{"role": "system", "content": system}, user] if system else [user]
        messages = task.messages
        if system:
            rest = messages[1:] if messages and messages[0].get("role") == "system" else messages
            messages = [{"role": "system", "content": system}, *rest]
        return messages


class ChatSolver(_OneRequestSolver):
    """One chat request (or one on the responses protocol) for each attempt; images go before the problem's text."""

    image_detail: str | None = None

    def _request(self, task: SeedResult) -> ModelRequest:
        return ModelRequest(
            messages=self._messages(task),
            tools=task.tools,
            images=task.images,
            image_detail=self.image_detail,
            generation=self.generation,
            repeat=task.repeat,
        )


class VLMSolver(ChatSolver):
    """`ChatSolver` for problems with images, which it asks to be read in `image_detail` (`auto`, `low`, `high`)."""

    def __init__(
        self,
        client: ModelClient,
        *,
        system_prompt: str | None = None,
        generation: Mapping[str, Any] | None = None,
        choices: int = 1,
        image_detail: str | None = None,
    ) -> None:
        super().__init__(client, system_prompt=system_prompt, generation=generation, choices=choices)
        self.image_detail = image_detail

    def identity(self) -> dict[str, Any]:
        """As `ChatSolver`, and the detail that images are read in where it is asked for."""
        own = super().identity()
        return {**own, "image_detail": self.image_detail} if self.image_detail is not None else own


class CompletionSolver(_OneRequestSolver):
    """One text completion for each attempt; a system prompt stands before the prompt, a blank line between."""

    kind = "completion"

    def _request(self, task: SeedResult) -> ModelRequest:
        if task.messages is not None or task.images or task.tools:
            raise UsageError(
                "The problem is a conversation (messages, images or tools), which a text completion cannot carry",
                hint="Use a service with `protocol: chat_completions`.",
            )
        system = self.system_prompt if self.system_prompt is not None else task.system
        return ModelRequest(
            prompt=f"{system}\n\n{task.prompt}" if system else task.prompt,
            generation=self.generation,
            repeat=task.repeat,
        )


def simple_solver(
    client: ModelClient,
    *,
    images: bool = False,
    system_prompt: str | None = None,
    generation: Mapping[str, Any] | None = None,
    choices: int = 1,
    image_detail: str | None = None,
) -> ChatSolver | CompletionSolver:
    """The solver that config `type: simple` means: by the service's protocol, and whether the problems have images."""
    if client.settings.protocol == "completions":
        return CompletionSolver(client, system_prompt=system_prompt, generation=generation, choices=choices)
    if images:
        return VLMSolver(
            client, system_prompt=system_prompt, generation=generation, choices=choices, image_detail=image_detail
        )
    return ChatSolver(client, system_prompt=system_prompt, generation=generation, choices=choices)


def _with_images(request: ModelRequest) -> list[dict[str, Any]]:
    """The messages as sent, each image by its reference."""
    messages = [dict(message) for message in request.messages or ()]
    if request.images:
        parts = [{"type": "image_url", "image_url": {"url": image}} for image in request.images]
        for message in reversed(messages):
            if message.get("role") == "user":
                message["content"] = [*parts, *_parts(message["content"])]
                break
    return messages


def _parts(content: str | Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
