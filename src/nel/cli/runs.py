"""`nel eval status|logs|stop|resume`: what can be done with a run that was started."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nel.cli.options import (
    json_option,
    override_option,
    retry_errors_option,
    run_dir_argument,
    verbose_option,
    yaml_text,
)
from nel.cli.output import print_json, print_table

if TYPE_CHECKING:
    from nel.engine.settings import RetryErrors
    from nel.executors import Executor
    from nel.reporting.run_view import CellView, RunView


@click.command()
@run_dir_argument
@click.option(
    "--watch", "-w", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Print again until the run ends."
)
@json_option
@verbose_option
def status(run_dir: Path, watch: float | None, as_json: bool) -> int:
    """Tell how far a run is.

    Each benchmark with its attempts so far, by outcome. A run that was killed is told from one that is still going,
    unless it was started on another machine.
    """
    while True:
        state = _state(run_dir)
        if as_json:
            print_json(state)
        else:
            _print_state(state)
        if watch is None or state["running"] is False:
            return 0
        time.sleep(watch)


def _state(run_dir: Path) -> dict[str, Any]:
    from nel.core.rundir import Stage
    from nel.executors import detect_executor
    from nel.reporting.run_view import open_run

    executor = detect_executor(run_dir)
    process = executor.status(run_dir) if executor is not None else None
    view = open_run(run_dir, unfinished=True)
    running: bool | None = process is not None and process.running
    if view.manifest.stage is Stage.RUNNING and (process is None or "elsewhere" in process.details):
        running = None
    return {
        "run_dir": str(run_dir),
        "run_id": view.manifest.run_id,
        "stage": str(view.manifest.stage),
        "executor": executor.name if executor is not None else None,
        "running": running,
        "process": process.details if process is not None else None,
        "cells": [_progress(view, cell) for cell in view.cells()],
    }


def _progress(view: RunView, cell: CellView) -> dict[str, Any]:
    entry = view.manifest.cells.get(cell.key)
    counts = Counter(str(unit.outcome) for unit in view.units(cell)) if entry else Counter[str]()
    return {
        "cell": cell.name,
        "stage": str(cell.stage),
        "planned": entry.info.get("planned", 0) if entry else 0,
        "scored": counts["scored"],
        "unscored": counts["unscored"],
        "error": counts["error"],
        "reason": cell.error,
    }


def _print_state(state: dict[str, Any]) -> None:
    stage, process = state["stage"], state["process"]
    if state["running"]:
        stage = f"running (process {process['pid']})" if "pid" in process else stage
    elif state["running"] is None:
        why = process["elsewhere"] if process else "`nel eval run` did not start it, so its process is not known"
        stage = f"is running or was killed: {why}"
    elif stage == "running":
        stage = f"was killed; `nel eval resume {state['run_dir']}` continues it"
    click.echo(f"Run {state['run_id']} in {state['run_dir']}: {stage}")
    rows = [
        (
            cell["cell"],
            cell["stage"],
            f"{cell['scored'] + cell['unscored'] + cell['error']:,}",
            f"{cell['planned']:,}",
            *(f"{cell[name]:,}" for name in ("scored", "unscored", "error")),
        )
        for cell in state["cells"]
    ]
    if rows:
        print_table(rows, header=("Cell", "Stage", "Done", "Planned", "Scored", "Unscored", "Errors"))
    for cell in state["cells"]:
        if cell["reason"]:
            click.echo(f"{cell['cell']}: {cell['reason']}")


@click.command()
@run_dir_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the run ends.")
@click.option("--tail", "-n", type=click.IntRange(min=0), metavar="N", help="Only the last lines.")
@verbose_option
def logs(run_dir: Path, follow: bool, tail: int | None) -> None:
    """Print, or follow, the log of a run."""
    for line in _executor_of(run_dir).logs(run_dir, follow=follow, tail=tail):
        click.echo(line)


@click.command()
@run_dir_argument
@verbose_option
def stop(run_dir: Path) -> int:
    """Stop a run; what it has measured stays.

    The exit code is 1 when nothing was running.
    """
    if _executor_of(run_dir).stop(run_dir):
        click.echo(f"Stopped; `nel eval resume {run_dir}` continues it.", err=True)
        return 0
    click.echo(f"Nothing to stop: no run is going on in {run_dir}.", err=True)
    return 1


def _executor_of(run_dir: Path) -> Executor:
    from nel.core.errors import RunDirError
    from nel.executors import detect_executor
    from nel.reporting.run_view import open_run

    executor = detect_executor(run_dir)
    if executor is None:
        open_run(run_dir, unfinished=True)  # says what a directory that is no run is instead
        raise RunDirError(
            f"The run in {run_dir} was not started by `nel eval run`.", hint="See to it where it was started."
        )
    return executor


@click.command()
@run_dir_argument
@click.option("--api-key", metavar="KEY", help="Key of the endpoint, where the run got one on the command line.")
@override_option
@retry_errors_option
@click.option("--background", is_flag=True, help="Return at once; see `nel eval status` and `nel eval logs`.")
@json_option
@verbose_option
@click.pass_context
def resume(
    ctx: click.Context,
    /,
    run_dir: Path,
    api_key: str | None,
    override: tuple[str, ...],
    retry_errors: RetryErrors | None,
    background: bool,
    as_json: bool,
) -> int:
    """Continue a run that was stopped, killed or had errors.

    The config is the one that the run stored. Attempts that are missing or ended in errors are made, and what has
    changed since is done again; a run that is complete makes no request.
    """
    from nel.cli.start import start
    from nel.config.load import load_config
    from nel.core.errors import RunDirError
    from nel.core.rundir import RunDir

    shard = RunDir.read(run_dir).shard
    config = run_dir / "config.yaml"
    if not config.is_file():
        raise RunDirError(
            f"{run_dir} has no config.yaml, so it was not started by `nel eval run`.",
            hint="Continue it where it was started: run_evaluation(..., resume=True).",
        )
    if shard is not None:
        os.environ |= {"NEL_SHARD_IDX": str(shard["index"]), "NEL_TOTAL_SHARDS": str(shard["total"])}
        if run_dir.resolve().name != f"shard_{shard['index']}":
            raise RunDirError(
                f"{run_dir} holds shard {shard['index']} of {shard['total']} under another name.",
                hint=f"Rename it to shard_{shard['index']}, then resume it.",
            )
    here = str(run_dir.resolve().parent if shard is not None else run_dir)
    loaded = load_config(
        config,
        overrides=[*override, f"output.dir={yaml_text(here)}", "output.timestamped=false"],
        api_key=api_key,
        use_defaults=False,
    )
    return start(
        loaded,
        resume=True,
        retry_errors=retry_errors or "transient",
        dry_run=False,
        background=background,
        as_json=as_json,
        arguments=ctx.obj.arguments,
    )
