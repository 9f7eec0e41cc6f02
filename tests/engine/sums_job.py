"""A run as a process of its own, to be killed: `sums_job.py URL DIR COUNT [MODE]`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "fakes"))

from conftest_engine import Sums, rows

from nel.engine.run import run_evaluation
from nel.environments.base import VerifyResult
from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings
from nel.solvers.simple import simple_solver


def deadly(count):
    """A scorer that kills the process at its `count`-th call."""
    calls = 0

    def verify(response, expected, _metadata):
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return VerifyResult(reward=float(response == expected), extracted_answer=response)

    return verify


async def main(url, directory, count, mode):
    client = ModelClient(ServiceSettings(name="fake", urls=[url], model="fake", max_retries=0))
    env = Sums(rows(int(count)), verify=deadly(int(mode.partition(":")[2])) if mode.startswith("verify:") else None)
    if mode.startswith("file:"):
        _die_in(mode.removeprefix("file:"))
    await run_evaluation(
        env,
        simple_solver(client, generation={"temperature": 0.0}),
        {"repeats": 2, "max_concurrent": 8},
        output_dir=directory,
        resume=True,
    )
    await client.close()


def _die_in(step):
    """Kill the process when the n-th file operation of a kind begins: `replace:3`, `fsync:10`."""
    from nel.core import disk

    name, _, number = step.partition(":")
    real, calls = getattr(os, name), 0

    def deadly_call(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    class DeadlyOs:
        def __getattr__(self, attribute):
            return deadly_call if attribute == name else getattr(os, attribute)

    disk.os = DeadlyOs()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4], sys.argv[4] if len(sys.argv) > 4 else ""))
