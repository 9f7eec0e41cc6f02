"""`make bench`: every promise about speed and memory, measured in one run and shown beside its limit.

Ratios and CPU time compare; wall times depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent

Row = tuple[str, str, str, bool]


def measured(script: str, *arguments: object) -> dict[str, Any]:
    """What one script of this folder printed, run as a process of its own."""
    command = [sys.executable, HERE / f"{script}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{script} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def start_up(*command: object, times: int = 7) -> float:
    """Median seconds of a command, from start to exit."""
    taken = []
    for _ in range(times + 1):
        begin = time.perf_counter()
        subprocess.run([*map(str, command)], capture_output=True, check=True)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[1:])


def limit(name: str, value: float, bound: float, unit: str, *, at_least: bool = False) -> Row:
    """A row of the table: what was measured, what was promised, and whether it holds."""
    holds = value >= bound if at_least else value <= bound
    return name, f"{value:g} {unit}".strip(), f"{'>=' if at_least else '<='} {bound:g} {unit}".strip(), holds


def throughput(samples: int) -> list[Row]:
    found = measured("throughput", samples, 5)
    return [
        ("bare aiohttp loop", f"{found['bare_per_second']}/s", "", True),
        ("NEL, durable log", f"{found['nel_per_second']}/s", "", True),
        limit("ratio to the bare loop", found["ratio"], 0.45, "", at_least=True),
        limit("CPU a sample over the bare loop", found["cpu_ms_over_bare"], 0.4, "ms"),
    ]


def scale(samples: int) -> list[Row]:
    found = measured("scale", samples)
    return [
        ("samples", f"{found['samples']:,} in {found['seconds']} s", "", True),
        limit("time to the first request", found["first_request_s"], 1.0, "s"),
        limit("index a sample, while asking", found["bytes_per_sample"], 200, "bytes"),
        limit("peak memory, with deriving", found["peak_mb"], 150, "MB"),
        limit("resume: scan of both logs", found["resume_scan_s"], 2.0, "s"),
        ("resume: whole run, one row added", f"{found['resume_whole_s']} s", "", True),
        limit("three reports", found["report_s"], 5.0, "s"),
    ]


def storm(samples: int) -> list[Row]:
    found = measured("storm", samples)
    return [
        ("storm of 429 and 503", f"{found['errors']:,} errors in {found['samples']:,}", "", True),
        limit("event-loop lag, p99", found["lag_p99_ms"], 50, "ms"),
    ]


def sandboxes(checks: int) -> list[Row]:
    found = measured("sandboxes", checks)
    rows = [
        ("bare subprocess", f"{found['subprocess']}/s", "", True),
        limit("code checks in bwrap", found["bwrap"], 50, "/s", at_least=True),
        ("  ratio to the bare subprocess", f"{found['bwrap'] / found['subprocess']:.2f}", "", True),
        limit("200 acquires, 8 at once: memory", found["acquire_growth_mb"], 20, "MB"),
    ]
    if "docker" in found:
        rows += [
            ("bare docker exec", f"{found['docker_exec']}/s", "", True),
            limit("code checks in docker", found["docker"], 8, "/s", at_least=True),
            ("  ratio to the bare docker exec", f"{found['docker'] / found['docker_exec']:.2f}", "", True),
        ]
    if "humaneval_s" in found:
        rows.append(limit("164 HumanEval programs in bwrap", found["humaneval_s"], 20, "s"))
    return rows


def scoring(answers: int) -> list[Row]:
    found = measured("scoring", answers)
    return [
        limit("regex scorers, one core", found["regex_per_second"], 20_000, "/s", at_least=True),
        ("a whole rescoring, durable", f"{found['rescored_per_second']}/s", "", True),
        limit("mathematics, two cores", found["math_per_second"], 300, "/s", at_least=True),
    ]


def decisions(rows: int) -> list[Row]:
    found = measured("decisions", rows)
    return [
        ("comparison: rows in each run", f"{found['rows']:,}, {', '.join(found['tests'])}", "", True),
        limit("comparison: time", found["compare_s"], 15, "s"),
        limit("comparison: memory", found["compare_mb"], 500, "MB"),
        limit("bootstrap, 10,000 draws of 14,042", found["bootstrap_ms"], 10, "ms"),
    ]


def reports(rows: int) -> list[Row]:
    found = measured("report", rows)
    return [
        limit("HTML report of 14,000 samples", found["report_s"], 5, "s"),
        limit("  its size", found["report_mb"], 25, "MB"),
        ("viewer: index of the large run", f"{found['index_s']} s", "", True),
        limit("viewer: a page of it", found["page_ms"], 100, "ms"),
    ]


def starts() -> list[Row]:
    return [
        limit("nel --help", round(start_up(BIN / "nel", "--help"), 3), 0.15, "s"),
        limit("nel list", round(start_up(BIN / "nel", "list"), 3), 0.3, "s"),
        limit("import nel", round(start_up(sys.executable, "-c", "import nel"), 3), 0.1, "s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000, help="of the large run")
    options = parser.parse_args()
    parts: list[Callable[[], list[Row]]] = [
        starts,
        lambda: throughput(max(2000, options.samples // 16)),
        lambda: scale(options.samples),
        lambda: storm(max(2000, options.samples // 20)),
        lambda: scoring(options.samples),
        lambda: decisions(options.samples * 10),
        lambda: reports(options.samples * 10),
        lambda: sandboxes(max(100, options.samples // 500)),
    ]
    rows: list[Row] = []
    for part in parts:
        rows += part()
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = "  ".join(row[column].ljust(widths[column]) for column in range(3))
        print(f"{cells}  {'' if not row[2] else 'ok' if row[3] else 'MISSED'}".rstrip())


if __name__ == "__main__":
    main()
