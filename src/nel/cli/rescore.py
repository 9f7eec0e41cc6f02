"""`nel eval rescore`: the second half of a run alone."""

from __future__ import annotations

from pathlib import Path

import click

from nel.cli.options import json_option, run_dir_argument, verbose_option


@click.command()
@run_dir_argument
@json_option
@verbose_option
def rescore(run_dir: Path, as_json: bool) -> int:
    """Grade the stored answers again, without asking a model.

    The benchmarks' present scorers measure what the run keeps: expected answers come from the run itself, so neither
    endpoint nor data are needed. Scores that are replaced move to superseded.jsonl.
    """
    from nel.cli.outcome import print_outcome
    from nel.orchestration.rescore import rescore as rescore_run

    rescore_run(run_dir)
    return print_outcome(run_dir, as_json=as_json)
