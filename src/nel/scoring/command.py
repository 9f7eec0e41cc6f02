"""`CommandMetric`: a command of one's own looks at the answer in a sandbox; its exit code is the score."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import msgspec

from nel.observability.records import MetricScore
from nel.sandbox.base import ExecResult, Limits, Sandbox, SandboxError, SandboxSpec
from nel.sandbox.manager import SandboxManager
from nel.scoring.judging.measurement import version_of
from nel.scoring.metric import JudgedSample

COMMAND_SPEC = SandboxSpec(limits=Limits(memory=1 << 30, cpus=1.0, pids=128, disk=256 << 20), readonly_root=True)
"""What a check has where the benchmark says nothing: no network, and a work directory in memory."""
ANSWER = "answer.txt"
_NOT_RUN = (126, 127)
_SHOWN = 4000


class CommandMetric:
    """1 where the command exits with 0, else 0; what it printed stands in the details.

    The answer is in `answer.txt`, where the command starts. On standard input is one JSON object with `prompt`,
    `response`, `target` and `metadata`. A command that cannot be run is an error, and one whose time is up a 0.
    """

    VERSION = "1"
    bounds = (0.0, 1.0)

    def __init__(
        self, name: str, command: str, *, spec: SandboxSpec, manager: SandboxManager | None, time_limit: float = 600.0
    ) -> None:
        self.name = name
        self.command = command
        self.spec = spec
        self.manager = manager
        self.time_limit = time_limit

    def identity(self) -> dict[str, Any]:
        """The command, its time, and what the sandbox is made from."""
        return {
            "metric": "sandbox",
            "version": self.VERSION,
            "command": self.command,
            "time_limit": self.time_limit,
            "image": self.spec.image,
            "network": self.spec.network,
            "limits": msgspec.to_builtins(self.spec.limits),
        }

    @cached_property
    def version(self) -> str:
        """The version in each of its scores."""
        return version_of(self.VERSION, self.identity())

    async def score(self, sample: JudgedSample) -> MetricScore:
        """The command's verdict; `SandboxError` where nothing is known of the answer."""
        if self.manager is None:
            raise SandboxError("there is no sandbox to run the command in", permanent=True)
        async with self.manager.reused(self.spec) as box:
            await _write(box, sample.response)
            told = {name: getattr(sample, name) for name in ("prompt", "response", "target", "metadata")}
            done = await box.exec(
                self.command, time_limit=self.time_limit, stdin=json.dumps(told, default=str).encode(), keep=1 << 16
            )
        return self._score(done)

    def _score(self, done: ExecResult) -> MetricScore:
        if done.return_code in _NOT_RUN:
            raise SandboxError(f"the command was not run: {done.error_text.strip()[-_SHOWN:]}", permanent=True)
        details: dict[str, Any] = {"exit_code": done.return_code}
        if output := (done.text + done.error_text).strip():
            details["output"] = output[-_SHOWN:]
        if done.timed_out:
            details["category"] = "code_timeout"
        elif done.out_of_memory:
            details["category"] = "out_of_memory"
        return MetricScore(value=float(done.ok), version=self.version, details=details)


async def _write(box: Sandbox, answer: str) -> None:
    done = await box.exec(["sh", "-c", f"cat > {ANSWER}"], stdin=answer.encode("utf-8", "surrogatepass"))
    if not done.ok:
        raise SandboxError(f"the answer could not be written: {done.error_text.strip()[-_SHOWN:]}")
