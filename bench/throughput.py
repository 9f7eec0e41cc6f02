"""Samples a second and CPU a sample: NEL with its durable log against a bare aiohttp loop that posts a fixed body."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import harness


async def bare(url: str, count: int) -> tuple[float, float]:
    """Wall and CPU seconds of posting one body `count` times and reading the replies without decoding them."""
    import aiohttp

    question = harness.PROMPT.format(a=1, b=2)
    body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": question}]}).encode()
    left = iter(range(count))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def worker() -> None:
            for _ in left:
                async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as reply:
                    await reply.read()

        cpu, wall = harness.cpu(), time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(harness.IN_FLIGHT)))
        return time.perf_counter() - wall, harness.cpu() - cpu


async def nel(url: str, rows: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a whole run over `rows`, from `run_evaluation()` to its bundle."""
    from nel.engine.run import run_evaluation
    from nel.solvers.simple import simple_solver

    client = harness.client(url)
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = harness.cpu(), time.perf_counter()
        bundle = await run_evaluation(
            harness.sums(rows),
            simple_solver(client, generation={"temperature": 0.0}),
            {"max_concurrent": harness.IN_FLIGHT},
            output_dir=Path(folder) / "run",
        )
        taken = time.perf_counter() - wall, harness.cpu() - cpu
    await client.close()
    assert bundle["counts"]["scored"] == bundle["counts"]["planned"]
    return taken


def main(count: int, rounds: int) -> None:
    harness.pin(0)
    ratios, over, rates = [], [], []
    with tempfile.TemporaryDirectory() as folder, harness.server("--instant", "700") as url:
        rows = Path(folder) / "rows.jsonl"
        harness.write_rows(rows, count)
        asyncio.run(nel(url, rows))  # imports, and what the system caches
        for _ in range(rounds):
            bare_wall, bare_cpu = asyncio.run(bare(url, count))
            nel_wall, nel_cpu = asyncio.run(nel(url, rows))
            ratios.append(bare_wall / nel_wall)
            over.append((nel_cpu - bare_cpu) / count * 1000)
            rates.append((count / bare_wall, count / nel_wall))
    middle = statistics.median
    print(
        json.dumps(
            {
                "bare_per_second": round(middle(rate[0] for rate in rates)),
                "nel_per_second": round(middle(rate[1] for rate in rates)),
                "ratio": round(middle(ratios), 3),
                "cpu_ms_over_bare": round(middle(over), 3),
                "samples": count,
                "rounds": rounds,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
