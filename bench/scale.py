"""A hundred thousand samples: memory, time to the first request, resume and report."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import harness


async def run(url: str, rows: Path, directory: Path, *, resume: bool) -> dict[str, float]:
    from nel.engine.run import run_evaluation
    from nel.solvers.simple import ChatSolver

    first: list[float] = []
    asking = 0.0
    count = 0

    class Timed(ChatSolver):
        async def solve(self, task):
            nonlocal asking, count
            if not first:
                first.append(time.perf_counter())
            count += 1
            if count % 1000 == 0:
                asking = harness.peak_mb()
            return await super().solve(task)

    client = harness.client(url)
    begin = time.perf_counter()
    await run_evaluation(
        harness.sums(rows),
        Timed(client, generation={"temperature": 0.0}),
        {"max_concurrent": harness.IN_FLIGHT, "max_error_rate": 1.0},
        output_dir=directory,
        resume=resume,
    )
    taken = time.perf_counter() - begin
    await client.close()
    return {"seconds": taken, "first": first[0] - begin if first else 0.0, "asking_mb": asking}


def report(directory: Path) -> float:
    from nel.reporting.formats import render
    from nel.reporting.run_view import open_run

    begin = time.perf_counter()
    for name in ("markdown", "json", "console"):
        render(open_run(directory), name)
    return time.perf_counter() - begin


def main(count: int) -> None:
    harness.pin(0)
    with tempfile.TemporaryDirectory() as folder, harness.server("--instant", "700") as url:
        rows, directory = Path(folder) / "rows.jsonl", Path(folder) / "run"
        harness.write_rows(rows, count)
        import nel.engine.run
        import nel.environments.byob
        import nel.inference.client
        import nel.solvers.simple  # noqa: F401

        small = Path(folder) / "small.jsonl"
        harness.write_rows(small, 1000)
        asyncio.run(run(url, small, Path(folder) / "warm", resume=False))
        base = harness.peak_mb()
        fresh = asyncio.run(run(url, rows, directory, resume=False))
        peak = harness.peak_mb()

        from nel.engine.ledger import Known

        begin = time.perf_counter()
        known = Known.scan(directory / "sums", permanent_errors=True)
        scan = time.perf_counter() - begin
        assert len(known.attempts) == count
        with rows.open("a") as file:  # one row more: everything is looked up, one request is sent
            file.write(json.dumps({"id": count, "question": "1+1", "answer": "2"}) + "\n")
        resumed = asyncio.run(run(url, rows, directory, resume=True))
        print(
            json.dumps(
                {
                    "samples": count,
                    "seconds": round(fresh["seconds"], 1),
                    "first_request_s": round(fresh["first"], 3),
                    "peak_mb": round(peak, 1),
                    "bytes_per_sample": round((fresh["asking_mb"] - base) * 1024 * 1024 / count),
                    "resume_scan_s": round(scan, 2),
                    "resume_whole_s": round(resumed["seconds"], 1),
                    "peak_after_resume_mb": round(harness.peak_mb(), 1),
                    "report_s": round(report(directory), 2),
                }
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
