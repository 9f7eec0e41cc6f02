"""Runs of many rows, made by repeating one real row: what comparison, report and viewer are measured with."""

from __future__ import annotations

import asyncio
import json
import random
from hashlib import sha256
from pathlib import Path

import harness


def real_run(folder: Path) -> Path:
    """A run of one problem."""
    from nel.engine.run import run_evaluation
    from nel.solvers.simple import ChatSolver

    rows = folder / "rows.jsonl"
    harness.write_rows(rows, 1)

    async def act() -> None:
        with harness.server("--instant", "700") as url:
            client = harness.client(url)
            solver = ChatSolver(client, generation={"temperature": 0.0})
            await run_evaluation(harness.sums(rows), solver, {"max_concurrent": 1}, output_dir=folder / "one")
            await client.close()

    asyncio.run(act())
    return folder / "one"


def repeated(one: Path, target: Path, count: int, rate: float, seed: int) -> Path:
    """The run `one` with `count` rows, each another problem, right with chance `rate`."""
    cell = target / "sums"
    cell.mkdir(parents=True)
    draw = random.Random(seed)
    attempt = json.loads((one / "sums/trajectories.jsonl").read_text())
    score = json.loads((one / "sums/results.jsonl").read_text())
    attempt["messages"] = [{"role": "user", "content": "What is the answer?"}]
    attempt["seed_metadata"] = {}
    right = 0
    with (cell / "trajectories.jsonl").open("w") as attempts, (cell / "results.jsonl").open("w") as scores:
        for number in range(count):
            key = sha256(b"%d" % number).hexdigest()[:32]
            reward = float(draw.random() < rate)
            right += int(reward)
            attempt |= {"attempt": key, "content": key, "problem_idx": number, "step_id": f"p{number}_r0"}
            score |= {"attempt": key, "score": key, "problem_idx": number, "reward": reward}
            attempts.write(json.dumps(attempt, separators=(",", ":")) + "\n")
            scores.write(json.dumps(score, separators=(",", ":")) + "\n")
    _adjusted(one, target, count, right)
    return target


def _adjusted(one: Path, target: Path, count: int, right: int) -> None:
    """Manifest and bundle with the numbers of the larger run."""
    (target / "manifest.json").write_bytes((one / "manifest.json").read_bytes())
    for name in ("checkpoint.json", "config.yaml"):
        if (one / name).exists():
            (target / name).write_bytes((one / name).read_bytes())
    for name in ("runtime_stats.json", "failure_analysis.json"):
        (target / "sums" / name).write_bytes((one / "sums" / name).read_bytes())
    bundle = json.loads((one / "sums/eval-sums.json").read_text())
    bundle["counts"] |= {"planned": count, "attempted": count, "scored": count}
    bundle["benchmark"]["samples"] = bundle["n_results"] = count
    for estimate in bundle["benchmark"]["scores"].values():
        estimate |= {"value": right / count, "n": count, "scored": count, "ci_lower": 0.0, "ci_upper": 1.0}
    (target / "sums/eval-sums.json").write_text(json.dumps(bundle))
