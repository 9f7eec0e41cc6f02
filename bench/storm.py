"""Event-loop lag while half of all requests are answered 429 or 5xx."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import harness


async def lag(stop: asyncio.Event, lags: list[float]) -> None:
    while not stop.is_set():
        begin = time.perf_counter()
        await asyncio.sleep(0.005)
        lags.append(time.perf_counter() - begin - 0.005)


async def run(url: str, rows: Path, directory: Path) -> tuple[list[float], dict[str, int]]:
    from nel.engine.run import run_evaluation
    from nel.solvers.simple import simple_solver

    client = harness.client(url, max_retries=2)
    stop, lags = asyncio.Event(), []
    watcher = asyncio.create_task(lag(stop, lags))
    bundle = await run_evaluation(
        harness.sums(rows),
        simple_solver(client),
        {"max_concurrent": 256, "max_error_rate": 1.0},
        output_dir=directory,
    )
    stop.set()
    await watcher
    await client.close()
    return lags, bundle["counts"]


def main(count: int) -> None:
    harness.pin(0)
    arguments = ("--fail", "429=0.3", "--fail", "503=0.3")
    with tempfile.TemporaryDirectory() as folder, harness.server(*arguments) as url:
        rows = Path(folder) / "rows.jsonl"
        harness.write_rows(rows, count)
        lags, counts = asyncio.run(run(url, rows, Path(folder) / "run"))
    lags.sort()
    print(
        json.dumps(
            {
                "samples": count,
                "errors": counts["error"],
                "lag_p50_ms": round(lags[len(lags) // 2] * 1000, 2),
                "lag_p99_ms": round(lags[int(len(lags) * 0.99)] * 1000, 2),
                "lag_max_ms": round(lags[-1] * 1000, 1),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
