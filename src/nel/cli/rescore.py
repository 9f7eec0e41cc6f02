"""`nel eval rescore`: the second half of a run alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nel.cli.options import json_option, run_dir_argument, verbose_option
from nel.cli.output import print_json, print_table
from nel.observability.format import format_count, format_number

if TYPE_CHECKING:
    from nel.engine.rescore import Changes
    from nel.orchestration.rescore import Rescored


@click.command()
@run_dir_argument
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Measure as the `scoring` of this config says: other metrics, another judge.",
)
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="NAME",
    help="Measure by this scorer too: a built-in one, or FILE.py:FUNCTION; repeatable, the first gives the reward.",
)
@click.option("--judge", metavar="SERVICE", help="Ask this service of the config instead of its judges.")
@click.option(
    "--override", "-O", "overrides", multiple=True, metavar="KEY=VALUE", help="Change the config; repeatable."
)
@json_option
@verbose_option
def rescore(
    run_dir: Path,
    config: Path | None,
    scorers: tuple[str, ...],
    judge: str | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Grade the stored answers again, without asking the evaluated model.

    The benchmarks' present scorers measure what the run keeps: expected answers come from the run itself, so neither
    endpoint nor data are needed; judges are asked for what the run does not hold. Scores that are replaced move to
    superseded.jsonl.
    """
    from dataclasses import asdict

    from nel.orchestration.rescore import rescore as rescore_run

    cells = rescore_run(run_dir, config=config, overrides=overrides, scorers=scorers, judge=judge)
    if as_json:
        print_json({"run_dir": str(run_dir), "cells": [{**asdict(cell), "changed": cell.changed} for cell in cells]})
        return
    rows = [(cell.cell, cell.metric, _shown(cell.before), _shown(cell.after), _answers(cell.changes)) for cell in cells]
    print_table(rows, header=("Cell", "Metric", "Before", "After", "Answers"))
    for cell in cells:
        _print_why(cell)


def _shown(value: float | None) -> str:
    return "-" if value is None else format_number(value)


def _answers(changes: Changes) -> str:
    counts = {
        "higher": changes.higher,
        "lower": changes.lower,
        "newly scored": changes.newly_scored,
        "no longer scored": changes.no_longer_scored,
    }
    return ", ".join(f"{format_count(count)} {what}" for what, count in counts.items() if count) or "as before"


def _print_why(cell: Rescored) -> None:
    if cell.why:
        click.echo(f"\n{cell.cell} is measured otherwise than before:")
        for line in cell.why:
            click.echo(f"  {line}")
    elif cell.changes.measured:
        click.echo(f"\n{cell.cell}: what had no complete score was measured again, by the same scorers")
