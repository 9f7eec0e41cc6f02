"""`SandboxedEnvironment`: a benchmark whose answers are graded in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.observability.records import AttemptRecord, ModelResponse
from nel.sandbox.base import SandboxError, SandboxSpec
from nel.sandbox.manager import SandboxManager


class SandboxedEnvironment(EvalEnvironment):
    """Another environment, each of whose verdicts gets a sandbox by `spec`, emptied after every other one.

    Without a `manager` it can be planned with, and every verdict is an error.
    """

    def __init__(self, inner: EvalEnvironment, spec: SandboxSpec, manager: SandboxManager | None = None) -> None:
        self.inner = inner
        self.spec = spec
        self.manager = manager
        self.name = inner.name
        self.version = inner.version
        self.reward_bounds = inner.reward_bounds
        self.cluster_by = inner.cluster_by
        self.aggregates = inner.aggregates
        self.generation = inner.generation
        self.endpoint_type = inner.endpoint_type
        self.may_need_judge = inner.may_need_judge

    async def prepare(self) -> None:
        """Prepares the benchmark."""
        await self.inner.prepare()

    async def dataset_size(self) -> int:
        """How many problems the benchmark has."""
        return await self.inner.dataset_size()

    async def seed(self, idx: int) -> SeedResult:
        """The benchmark's problem."""
        return await self.inner.seed(idx)

    async def verify(
        self,
        response: str,
        expected: Any,
        sandbox: Any = None,
        *,
        metadata: Mapping[str, Any],
        model_response: ModelResponse | None = None,
    ) -> VerifyResult:
        """The benchmark's verdict, in a sandbox of its own unless one is given."""
        if sandbox is not None:
            return await self.inner.verify(
                response, expected, sandbox, metadata=metadata, model_response=model_response
            )
        if self.manager is None:
            raise SandboxError("there is no sandbox to grade the answer in", permanent=True)
        async with self.manager.reused(self.spec) as box:
            return await self.inner.verify(response, expected, box, metadata=metadata, model_response=model_response)

    async def verify_attempt(self, attempt: AttemptRecord, response: str, expected: Any) -> VerifyResult:
        """The verdict on a stored attempt."""
        return await self.verify(response, expected, metadata=attempt.seed_metadata, model_response=attempt.model)

    def scoring_identity(self) -> dict[str, Any]:
        """The benchmark's, and what the sandbox is made from."""
        limits = msgspec.to_builtins(self.spec.limits)
        made_from = {"image": self.spec.image, "network": self.spec.network, "limits": limits}
        return {**self.inner.scoring_identity(), "sandbox": made_from}

    def data_identity(self) -> dict[str, Any]:
        """What the benchmark's problems were made from."""
        return self.inner.data_identity()

    def kept_files(self) -> dict[str, bytes]:
        """The benchmark's files."""
        return self.inner.kept_files()

    async def close(self) -> None:
        """Closes the benchmark."""
        await self.inner.close()
