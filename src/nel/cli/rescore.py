"""`nel eval rescore`: the second half of a run alone."""

from __future__ import annotations

from pathlib import Path

import click

from nel.cli.options import json_option, run_dir_argument, verbose_option
from nel.cli.output import print_json, print_table
from nel.observability.format import format_number


@click.command()
@run_dir_argument
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Measure as the `scoring` of this config says: other metrics, another judge.",
)
@json_option
@verbose_option
def rescore(run_dir: Path, config: Path | None, as_json: bool) -> None:
    """Grade the stored answers again, without asking the evaluated model.

    The benchmarks' present scorers measure what the run keeps: expected answers come from the run itself, so neither
    endpoint nor data are needed; judges are asked for what the run does not hold. Scores that are replaced move to
    superseded.jsonl.
    """
    from dataclasses import asdict

    from nel.orchestration.rescore import rescore as rescore_run

    cells = rescore_run(run_dir, config=config)
    if as_json:
        print_json({"run_dir": str(run_dir), "cells": [asdict(cell) for cell in cells]})
        return
    rows = [
        (cell.cell, cell.metric, _shown(cell.before), _shown(cell.after), "changed" if cell.changed else "the same")
        for cell in cells
    ]
    print_table(rows, header=("Cell", "Metric", "Before", "After", "Scorers"))


def _shown(value: float | None) -> str:
    return "-" if value is None else format_number(value)
