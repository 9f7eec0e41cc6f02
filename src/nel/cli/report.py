"""`nel eval report`: a run in one of the formats of a report."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nel.cli.options import run_dir_argument, verbose_option


@click.command()
@run_dir_argument
@click.option(
    "--format",
    "-f",
    "form",
    metavar="FORMAT",
    default="console",
    show_default=True,
    help="console, markdown, json, html, csv or latex.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead.")
@verbose_option
def report(run_dir: Path, form: str, output: Path | None) -> None:
    """Print or write the report of a run.

    A run that is still going, or was killed, is reported as it stands, with a warning.
    """
    from nel.core.rundir import write_atomic
    from nel.reporting.formats import render
    from nel.reporting.run_view import open_run

    view = open_run(run_dir, unfinished=True)
    if output is not None:
        write_atomic(output, render(view, form))
        click.echo(str(output), err=True)
    elif form == "console":
        from nel.reporting.console import print_console

        print_console(view, sys.stdout)
    else:
        click.echo(render(view, form), nl=False)
