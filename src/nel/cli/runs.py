"""`nel eval status|logs|stop|resume`: what can be done with a run that was started."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from nel.cli.options import json_option, override_option, retry_errors_option, run_dir_argument, verbose_option
from nel.cli.output import print_json, print_table

_ENDED = {"scored": 0, "unscored": 0, "error": 0}


@click.command()
@run_dir_argument
@click.option("--watch", "-w", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Print again until the run ends.")
@json_option
@verbose_option
def status(run_dir: Path, watch: float | None, as_json: bool) -> int:
    """Tell how far a run is.

    Each benchmark with its attempts so far, by outcome. A run that was killed is told from one that is still going.
    """
    while True:
        state = run_state(run_dir)
        if as_json:
            print_json(state)
        else:
            _print_state(state)
        if watch is None or not state["running"]:
            return 0
        time.sleep(watch)


def run_state(run_dir: Path) -> dict[str, Any]:
    """What is known of a run: its stage, whether something is still working on it, and its cells."""
    from nel.executors import detect_executor
    from nel.reporting.run_view import open_run

    view = open_run(run_dir, unfinished=True)
    executor = detect_executor(run_dir)
    process = executor.status(run_dir) if executor is not None else None
    manifest = view.manifest
    cells = [
        {"cell": cell.name, "stage": str(cell.stage)}
        | _counts(view, cell, manifest.cells[cell.key].info if cell.key in manifest.cells else {})
        for cell in view.cells()
    ]
    return {
        "run_dir": str(run_dir),
        "run_id": manifest.run_id,
        "stage": str(manifest.stage),
        "executor": executor.name if executor is not None else None,
        "running": bool(process and process.running),
        "cells": cells,
    }
