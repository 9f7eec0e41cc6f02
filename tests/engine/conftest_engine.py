"""A small benchmark whose every part can be changed, and a real server that answers it."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openai_server import FakeOpenAI

from nel.engine.run import run_evaluation
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings
from nel.observability.volatile import mask
from nel.solvers.simple import simple_solver


class Sums(EvalEnvironment):
    """Rows are (question, answer); an answer is right when it equals the expected one."""

    name = "sums"

    def __init__(self, rows, *, scorer_version="1", verify=None):
        self.rows = list(rows)
        self.scorer_version = scorer_version
        self.custom_verify = verify
        self.verified = 0

    async def dataset_size(self):
        return len(self.rows)

    async def seed(self, idx):
        question, answer = self.rows[idx]
        return SeedResult(
            prompt=question,
            expected_answer=answer,
            metadata={"question": question, "row": idx},
            category="short" if len(question) < 6 else "long",
        )

    async def verify(self, response, expected, sandbox=None, *, metadata, model_response=None):
        self.verified += 1
        if self.custom_verify is not None:
            return self.custom_verify(response, expected, metadata)
        return VerifyResult(reward=float(response == expected), extracted_answer=response)

    def scoring_identity(self):
        return {"scorer": "equal", "version": self.scorer_version}

    def data_identity(self):
        return {"source": "rows", "rows": self.rows}


def rows(count, start=0):
    return [(f"{n}+{n}", str(2 * n)) for n in range(start, start + count)]


def add(body: dict[str, Any]) -> str:
    """Right, but for sums of numbers that end in 3."""
    left, right = body["messages"][-1]["content"].split("+")
    return "?" if left.endswith("3") else str(int(left) + int(right))


@dataclass
class Lab:
    """Runs `Sums` against a server and reads what it left."""

    server: FakeOpenAI
    path: Path
    service: dict[str, Any] = field(default_factory=dict)

    def run(
        self, env, *, resume=False, generation=None, solver=None, choices=1, path=None, system_prompt=None, **config
    ):
        """The bundle of one run; `requests` then says how many requests it sent."""

        async def main():
            client = ModelClient(self.settings())
            try:
                chosen = solver or simple_solver(
                    client,
                    generation={"temperature": 0.0} if generation is None else generation,
                    choices=choices,
                    system_prompt=system_prompt,
                )
                before = self.server.count
                bundle = await run_evaluation(env, chosen, config, output_dir=path or self.path, resume=resume)
                self.requests = self.server.count - before
                return bundle
            finally:
                await client.close()

        return asyncio.run(main())

    def settings(self):
        url = f"{self.server.url}/v1/chat/completions"
        return ServiceSettings(**{"name": "fake", "urls": [url], "model": "fake", "max_retries": 0} | self.service)

    def lines(self, log, path=None, masked=False):
        file = (path or self.path) / "sums" / log
        if not file.exists():
            return []
        lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        return (
            [mask(line, "trajectories.jsonl" if "attempt/" in line["schema"] else "results.jsonl") for line in lines]
            if masked
            else lines
        )


@pytest.fixture
def lab(tmp_path):
    with FakeOpenAI(add) as server:
        yield Lab(server, tmp_path / "run")
