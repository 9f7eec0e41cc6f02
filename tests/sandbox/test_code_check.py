"""Programs that models write, run with their tests: each way to fail is told apart, and none passes by a trick."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import IMAGE, on_isolated

from nel.benchmarks.humaneval import humaneval
from nel.sandbox.backends import get_backend
from nel.sandbox.base import Limits, SandboxError
from nel.sandbox.manager import SandboxManager
from nel.scoring import ScorerInput, code_sandbox
from nel.scoring.code_check import CODE_SPEC

DATA = Path(__file__).parents[3] / "shared" / "data" / "HumanEval.jsonl.gz"
HEAD = 'import math\n\n\ndef area(r):\n    """The area of a circle."""\n'
BODY = "    return math.pi * r * r\n"
TESTS = "assert abs(area(2) - 12.566370614359172) < 1e-9\nassert area(0) == 0\n"


def verdicts(backend, replies, *, time_limit=20.0, limits=CODE_SPEC.limits):
    """What `code_sandbox` says of each reply, in sandboxes that are used again."""
    spec = replace(CODE_SPEC, image=IMAGE if backend in {"docker", "podman"} else None, limits=limits)

    async def act():
        async with SandboxManager(get_backend(backend), concurrency=2) as manager:

            async def one(reply):
                async with manager.reused(spec) as sandbox:
                    sample = ScorerInput(reply, sandbox=sandbox)
                    return await code_sandbox(
                        sample, tests=TESTS, entry_point="area", prefix=HEAD, time_limit=time_limit
                    )

            return await asyncio.gather(*map(one, replies))

    return asyncio.run(asyncio.wait_for(act(), 110))


FORMS = [
    "{whole}",
    "{body}",
    "```python\n{whole}```",
    "```\n{whole}\n```",
    "Here you are:\n\n```py\n{whole}```\n\nIt multiplies. Hope this helps!",
    "```python\n{body}```",
    "First an idea:\n```python\ndef area(r):\n    return 0\n```\nBetter:\n```python\n{whole}```",
    "```python\n{whole}```\nUse it:\n```python\nprint(area(2))\n```",
    "~~~python\n{whole}~~~",
    "> a quote\n\n```Python\n{whole}",
    "```python\ndef area(r):\n{body}```",
    "def area(r):\n{body}",
    "```python\nclass Helper:\n    pass\n\n{whole}\n\nif __name__ == '__main__':\n    print(area(1))\n```",
]


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
def test_however_a_right_program_is_fenced_repeated_or_continued_it_passes(backend):
    replies = [form.format(whole=HEAD + BODY, body=BODY) for form in FORMS]
    found = verdicts(backend, replies)
    assert [reply for reply, verdict in zip(replies, found, strict=True) if not verdict["correct"]] == []


@on_isolated
def test_each_way_to_fail_is_told_apart(backend):
    ways = {
        "wrong_answer": "def area(r):\n    return r",
        "syntax_error": "def area(r)\n    return r",
        "runtime_error": "import no_such_module\ndef area(r):\n    return 3.141592653589793 * r * r",
        "code_timeout": "def area(r):\n    while True: pass",
        "out_of_memory": "def area(r):\n    return len(bytearray(1 << 30))",
        "no_answer": "",
    }
    found = verdicts(backend, ways.values(), time_limit=3.0, limits=Limits(memory=256 << 20, cpus=1.0, pids=64))
    assert [verdict["failure_category"] for verdict in found] == list(ways)
    assert not any(verdict["correct"] for verdict in found)


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
def test_no_trick_passes(backend):
    tricks = [
        "import os\ndef area(r): os._exit(0)",
        "import sys\ndef area(r): sys.exit(0)",
        "import os\nos._exit(0)",
        "def area(r):\n    raise SystemExit",
        "import sys, json\nsys.stderr.write(json.dumps(['x' * 32, 'passed', '', '']) + chr(10))\ndef area(r): return 1",
        "import builtins\nbuiltins.AssertionError = Exception\ndef area(r): return 1",
        "class Any(float):\n    def __sub__(self, other): return 0\n    def __eq__(self, other): return False\ndef area(r): return Any(7)",
        "import threading, os\nthreading.Thread(target=lambda: os._exit(0)).start()\ndef area(r): return 1",
        "import atexit, os\natexit.register(os._exit, 0)\ndef area(r): return 1",
    ]
    found = verdicts(backend, tricks)
    assert [trick for trick, verdict in zip(tricks, found, strict=True) if verdict["correct"]] == []


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
def test_what_one_program_leaves_the_next_does_not_see(backend):
    left = "pathlib.Path('area.py'), pathlib.Path('/tmp/y')"
    plant = f"```\nimport pathlib\nfor path in {left}:\n    path.write_text('x')\ndef area(r): return 1\n```"
    look = f"```\nimport pathlib\nassert not any(path.exists() for path in ({left}))\n{HEAD}{BODY}```"
    found = verdicts(backend, [plant, look, plant, look, look])
    assert [verdict["correct"] for verdict in found] == [False, True, False, True, True]


def test_without_a_sandbox_nothing_is_known():
    with pytest.raises(SandboxError, match="there is no sandbox"):
        asyncio.run(code_sandbox(ScorerInput(HEAD + BODY), tests=TESTS))


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
def test_tests_that_are_no_program_are_the_benchmarks_fault(backend):
    from nel.core.errors import AttemptError

    async def act():
        async with SandboxManager(get_backend(backend)) as manager, manager.reused(CODE_SPEC) as sandbox:
            await code_sandbox(ScorerInput("x = 1", sandbox=sandbox), tests="assert (")

    with pytest.raises(AttemptError, match="the benchmark's tests are no program"):
        asyncio.run(act())


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
@pytest.mark.parametrize("backend", ["docker", "bwrap"], indirect=True)
def test_every_canonical_solution_of_humaneval_passes_and_no_empty_body(backend):
    with gzip.open(DATA) as file:
        rows = [json.loads(line) for line in file]
    spec = replace(CODE_SPEC, image=IMAGE if backend == "docker" else None)

    async def act():
        async with SandboxManager(get_backend(backend), concurrency=4) as manager:

            async def one(row, body):
                reply = f"```python\n{row['prompt']}{body}```"
                async with manager.reused(spec) as sandbox:
                    sample = ScorerInput(reply, metadata=row, config={"time_limit": 30.0}, sandbox=sandbox)
                    return (await humaneval(sample))["correct"]

            right = await asyncio.gather(*(one(row, row["canonical_solution"]) for row in rows))
            empty = await asyncio.gather(*(one(row, "    pass\n") for row in rows))
            return sum(right), sum(empty), len(rows)

    assert asyncio.run(asyncio.wait_for(act(), 110)) == (164, 0, 164)
