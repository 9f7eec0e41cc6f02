"""What the measurements share: the fake server on one core, this process on the other, and a benchmark to run."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVER = ROOT / "tests" / "fakes" / "openai_server.py"
IN_FLIGHT = 64
PROMPT = "What is {a} + {b}? Think step by step, then give the number on a line of its own. " * 14


@contextlib.contextmanager
def server(*arguments: str, core: int = 1) -> Iterator[str]:
    """URL of the chat endpoint of a fake server that has a core to itself."""
    process = subprocess.Popen(
        ["taskset", "-c", str(core), sys.executable, SERVER, "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip() + "/v1/chat/completions"
    finally:
        process.kill()
        process.wait()


def pin(core: int) -> None:
    """Keep this process on one core, where the system lets it."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setaffinity(0, {core})


def cpu() -> float:
    """CPU seconds of this process, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_mb() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_rows(path: Path, count: int) -> None:
    """A JSONL benchmark of `count` rows of about 1.2 KB."""
    import json

    with path.open("w") as file:
        for n in range(count):
            file.write(json.dumps({"id": n, "question": PROMPT.format(a=n, b=n + 1), "answer": str(2 * n + 1)}) + "\n")


def sums(path: Path):
    """The benchmark over those rows, made as a user would."""
    from nel.environments.registry import get_environment

    return get_environment(f"{Path(__file__).parent / 'sums.py'}:sums", dataset=str(path))


def client(url: str, **options):
    """A client of the fake server."""
    from nel.inference.client import ModelClient
    from nel.inference.settings import ServiceSettings

    return ModelClient(
        ServiceSettings(**{"name": "fake", "urls": [url], "model": "fake", "max_concurrent": IN_FLIGHT} | options)
    )
