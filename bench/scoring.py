"""Stored answers graded again: regex scorers on one core, a whole rescoring, mathematics with its processes."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import million

ANSWERS = [
    "Let me think. First 12 + 30 = 42.\nThe answer is **42**.",
    "So we get $\\boxed{{{n}}}$.",
    "Step 1: add. Step 2: check.\n\nAnswer: {n}",
    "I believe it is {n} apples, since {n} - 3 is what is left, and that makes {n}.",
    "#### {n}",
]
FORMULAS = [
    ("\\frac{{{n}}}{{4}}", "{n}/4"),
    ("{n}", "{n}.0"),
    ("2\\sqrt{{{n}}}", "\\sqrt{{4 \\cdot {n}}}"),
    ("({n}, \\infty)", "x > {n}"),
    ("{n}\\%", "{n}"),
    ("x^2 + {n}", "{n} + x^2"),
    ("\\{{1, {n}\\}}", "{n}, 1"),
    ("\\sin({n})", "\\cos({n})"),
]


def regex_rate(count: int) -> float:
    """Answers a second on one core, by the four scorers in turn."""
    from nel.scoring import ScorerInput, answer_line, exact_match, multichoice_regex, numeric_match

    draw = random.Random(1)
    samples = [
        ScorerInput(draw.choice(ANSWERS).format(n=draw.randrange(10_000)), str(draw.randrange(10_000)))
        for _ in range(count // 2)
    ]
    letters = [ScorerInput(f"Because of this.\nAnswer: {draw.choice('ABCD')}", "C") for _ in range(count // 2)]
    begin = time.perf_counter()
    for sample in samples:
        numeric_match(sample)
    for sample in letters[: count // 4]:
        multichoice_regex(sample)
    for sample in letters[count // 4 :]:
        exact_match(sample)
    taken = time.perf_counter() - begin
    assert answer_line(samples[0]) is not None
    return count / taken


def math_rate(count: int) -> float:
    """Equivalences a second on two cores, by `math_match` in threads, as the engine calls it."""
    from nel.scoring import ScorerInput, math_match

    draw = random.Random(2)
    samples = []
    for _ in range(count):
        said, gold = draw.choice(FORMULAS)
        n = draw.randrange(2, 900)
        samples.append(ScorerInput(f"So it is $\\boxed{{{said.format(n=n)}}}$.", gold.format(n=n)))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(math_match, samples[:50]))
        begin = time.perf_counter()
        list(threads.map(math_match, samples))
        return count / (time.perf_counter() - begin)


def rescoring_rate(count: int) -> float:
    """Stored attempts a second through the whole of a rescoring: read, grade, append durably, derive."""
    from nel.engine.rescore import rescore_cell
    from nel.engine.session import Session

    with tempfile.TemporaryDirectory() as folder:
        run = million.repeated(million.real_run(Path(folder)), Path(folder) / "run", count, 0.7, 1)
        begin = time.perf_counter()
        with Session.open(run, resume=True) as session:
            (key,) = session.run.manifest.cells
            env = harness.sums(Path(folder) / "rows.jsonl")
            env.version = "2"
            asyncio.run(rescore_cell(session, key, env))
        return count / (time.perf_counter() - begin)


if __name__ == "__main__":
    maths = math_rate(int(sys.argv[1]) // 50)
    harness.pin(0)
    print(
        json.dumps(
            {
                "regex_per_second": round(regex_rate(int(sys.argv[1]))),
                "rescored_per_second": round(rescoring_rate(int(sys.argv[1]) // 5)),
                "math_per_second": round(maths),
            }
        )
    )
