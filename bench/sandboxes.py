"""Checks of small programs a second, in each sandbox that works here, beside the bare thing that each is made from."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = "nel-test/base:1"
PROGRAM = "```python\ndef add(a, b):\n    return a + b\n```"
TESTS = "assert add(1, 2) == 3\n"
AT_ONCE = 4


async def rate(count: int, check: Callable[[], Awaitable[None]]) -> float:
    """Calls of `check` a second, four at once."""
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await check()

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))  # the sandboxes are there, and their files cached
    left, begin = iter(range(count)), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return count / (time.perf_counter() - begin)


async def sandboxed(backend: str, count: int) -> float:
    """Checks a second through NEL."""
    from nel.sandbox.backends import get_backend
    from nel.sandbox.manager import SandboxManager
    from nel.scoring.code_check import CODE_SPEC, code_sandbox
    from nel.scoring.sample import ScorerInput

    spec = replace(CODE_SPEC, image=IMAGE if backend == "docker" else None)
    async with SandboxManager(get_backend(backend), concurrency=AT_ONCE) as manager:

        async def check() -> None:
            async with manager.reused(spec) as sandbox:
                found = await code_sandbox(ScorerInput(PROGRAM, sandbox=sandbox), tests=TESTS, entry_point="add")
            assert found["correct"], found

        return await rate(count, check)


async def bare(command: list[str], count: int) -> float:
    """Runs a second of the same program without NEL."""

    async def check() -> None:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        assert await process.wait() == 0

    return await rate(count, check)


async def acquired(count: int, at_once: int) -> float:
    """MB by which `count` waiting acquires, `at_once` of them served, let the memory grow."""
    import psutil

    from nel.sandbox.backends import get_backend
    from nel.sandbox.base import SandboxSpec
    from nel.sandbox.manager import SandboxManager

    me = psutil.Process(os.getpid())
    async with SandboxManager(get_backend("bwrap"), concurrency=at_once) as manager:

        async def use() -> None:
            async with manager.sandbox(SandboxSpec()) as sandbox:
                await sandbox.exec(["true"])

        await asyncio.gather(*(use() for _ in range(at_once)))
        before = me.memory_info().rss
        await asyncio.gather(*(use() for _ in range(count)))
        return (me.memory_info().rss - before) / 2**20


def main(count: int) -> None:
    program = "def add(a, b):\n    return a + b\nassert add(1, 2) == 3\n"
    found: dict[str, float] = {}
    found["subprocess"] = asyncio.run(bare(["/usr/bin/python3", "-I", "-c", program], count))
    found["bwrap"] = asyncio.run(sandboxed("bwrap", count))
    found["acquire_growth_mb"] = asyncio.run(acquired(200, 8))
    if subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode == 0:
        name = "nel-bench"
        subprocess.run(["docker", "rm", "-f", name], capture_output=True, check=False)
        hold = ["docker", "run", "-d", "--name", name, "--network", "none", IMAGE, "sleep", "600"]
        subprocess.run(hold, check=True, capture_output=True)
        try:
            found["docker_exec"] = asyncio.run(
                bare(["docker", "exec", name, "python3", "-I", "-c", program], count // 4)
            )
        finally:
            subprocess.run(["docker", "rm", "-f", name], check=True, capture_output=True)
        found["docker"] = asyncio.run(sandboxed("docker", count // 4))
    data = ROOT.parent / "shared" / "data" / "HumanEval.jsonl.gz"
    if data.exists():
        found["humaneval_s"] = humaneval(data)
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


def humaneval(data: Path) -> float:
    """Seconds for the 164 canonical programs in bwrap."""
    import gzip

    from nel.sandbox.backends import get_backend
    from nel.sandbox.manager import SandboxManager
    from nel.scoring.code_check import CODE_SPEC, code_sandbox
    from nel.scoring.sample import ScorerInput

    with gzip.open(data) as file:
        rows = [json.loads(line) for line in file]

    async def act() -> float:
        async with SandboxManager(get_backend("bwrap"), concurrency=AT_ONCE) as manager:

            async def one(row: dict[str, str]) -> bool:
                async with manager.reused(CODE_SPEC) as sandbox:
                    found = await code_sandbox(
                        ScorerInput(row["prompt"] + row["canonical_solution"], sandbox=sandbox),
                        tests=f"{row['test']}\ncheck({row['entry_point']})\n",
                        entry_point=row["entry_point"],
                        prefix=row["prompt"],
                    )
                return bool(found["correct"])

            begin = time.perf_counter()
            assert all(await asyncio.gather(*map(one, rows)))
            return time.perf_counter() - begin

    return asyncio.run(act())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main(int(sys.argv[1]))
