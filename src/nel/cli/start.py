"""Hands a loaded config to its executor and prints what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig
    from nel.executors import RunOutcome


def start(
    loaded: LoadedConfig,
    *,
    resume: bool,
    retry_errors: Literal["transient", "all"],
    dry_run: bool,
    background: bool,
    as_json: bool,
    arguments: Iterable[str],
) -> int:
    """Run, or with `dry_run` only plan, what a config says; the exit code."""
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    from nel.executors import get_executor

    outcome = get_executor(loaded.config.cluster.type).run(
        loaded,
        dry_run=dry_run,
        resume=resume,
        background=background,
        retry_errors=retry_errors,
        command=["nel", *arguments],
    )
    if outcome.plan is not None:
        from nel.cli.plan import print_plan

        print_plan(outcome.plan, as_json=as_json)
        return outcome.exit_code
    if not outcome.begun:
        click.echo("Stopped before the run began; nothing was written.", err=True)
        return outcome.exit_code
    if background:
        return _print_started(outcome, as_json=as_json)
    from nel.cli.outcome import print_outcome

    return print_outcome(outcome.run_dir, exit_code=outcome.exit_code, as_json=as_json)


def _print_started(outcome: RunOutcome, *, as_json: bool) -> int:
    if as_json:
        from nel.cli.output import print_json

        print_json({"run_dir": str(outcome.run_dir), "exit_code": outcome.exit_code, "pid": outcome.pid})
    else:
        where = outcome.run_dir
        click.echo(f"Running in the background, in {where} (process {outcome.pid}).")
        click.echo(f"Follow it: nel eval status {where}, nel eval logs {where} -f; end it: nel eval stop {where}")
    return outcome.exit_code
