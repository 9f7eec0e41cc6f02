"""`nel validate --self-test`: benchmarks grade replies that are known to be right, empty or another row's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from nel.cli.output import print_json, print_table

if TYPE_CHECKING:
    from nel.environments.self_test_run import SelfTestResult

ALL = "all"


def self_test(names: Sequence[str], *, as_json: bool) -> int:
    """Runs and prints the self-tests of `names` (`all`: of every benchmark that has a name); 1 where one fails."""
    import asyncio

    results, without = asyncio.run(_results(names))
    if as_json:
        found = [{**asdict(result), "passed": result.passed} for result in results]
        print_json({"benchmarks": found, "without": without})
    else:
        _print(results)
        for name in without:
            click.echo(f"{name}: no self-test", err=True)
    return 0 if results and all(result.passed for result in results) else 1


async def _results(names: Sequence[str]) -> tuple[list[SelfTestResult], list[str]]:
    from nel.environments.registry import list_benchmarks
    from nel.environments.self_test_run import has_self_test, run_self_test

    if ALL not in names:
        return [result for name in names for result in await run_self_test(name)], []
    known = [info.name for info in list_benchmarks()]
    without = [name for name in known if not has_self_test(name)]
    return [result for name in known if name not in without for result in await run_self_test(name)], without


def _print(results: Sequence[SelfTestResult]) -> None:
    rows = [
        (
            " ".join([result.benchmark, *(f"{key}={value}" for key, value in result.params.items())]),
            str(result.rows),
            *(_mean(value) for value in (result.gold, result.empty, result.shuffled, result.chance)),
            "passed" if result.passed else "FAILED",
        )
        for result in results
    ]
    if rows:
        print_table(rows, header=("Benchmark", "Rows", "Gold", "Empty", "Shuffled", "Chance", "Self-test"))
    for result in results:
        for fault in result.faults:
            click.echo(f"{result.benchmark}: {fault}", err=True)


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
