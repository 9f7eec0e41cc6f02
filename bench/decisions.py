"""Comparing two runs of a million rows; a bootstrap of 10,000 draws."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import million

COMPARE = """
import resource, sys, time
from nel.cli.main import main
begin = time.perf_counter()
main(["compare", sys.argv[1], sys.argv[2], "--no-strict", "--compact", "-o", sys.argv[3]])
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def bootstrap_ms() -> float:
    """Milliseconds of a bootstrap over 14,042 right or wrong answers."""
    import numpy as np

    from nel.metrics.bootstrap import bootstrap_ci

    values = (np.random.default_rng(1).random(14_042) < 0.6).astype(float)
    bootstrap_ci(values)
    begin = time.perf_counter()
    for _ in range(10):
        bootstrap_ci(values)
    return (time.perf_counter() - begin) * 100


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        one = million.real_run(here)
        baseline = million.repeated(one, here / "a", count, 0.70, 1)
        candidate = million.repeated(one, here / "b", count, 0.69, 2)
        command = [sys.executable, "-c", COMPARE, str(baseline), str(candidate), str(here / "out.json")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        seconds, peak = map(float, said[-1].split())
        told = json.loads((here / "out.json").read_text())
        tests = {found for found in json.dumps(told).split('"') if "McNemar" in found or "permutation" in found}
        print(
            json.dumps(
                {
                    "rows": count,
                    "compare_s": round(seconds, 1),
                    "compare_mb": round(peak),
                    "tests": sorted(tests)[:1],
                    "bootstrap_ms": round(bootstrap_ms(), 1),
                }
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
