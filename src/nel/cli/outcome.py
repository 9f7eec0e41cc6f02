"""What is printed when a run has ended: the table of scores, the reports, and why something failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from nel.cli.output import print_json


def print_outcome(run_dir: Path, *, exit_code: int = 0, as_json: bool) -> int:
    """Print the results of the run in `run_dir` (on stdout) and where its reports are; `exit_code` as it was given."""
    from nel.reporting.console import print_console
    from nel.reporting.formats import SUFFIXES, render
    from nel.reporting.run_view import open_run

    view = open_run(run_dir, unfinished=True)
    if as_json:
        report = json.loads(render(view, "json"))
        print_json({"run_dir": str(run_dir), "exit_code": int(exit_code), "report": report})
        return exit_code
    print_console(view, sys.stdout)
    files = [path for suffix in SUFFIXES.values() if (path := run_dir / f"report{suffix}").is_file()]
    click.echo(f"\nReport: {', '.join(map(str, files))}" if files else f"\nRun: {run_dir}")
    return exit_code
