"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

RESULTS = "eval_results"
"""Where runs go that were given no directory."""


def _set_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and ctx.obj is not None:
        import logging

        ctx.obj.verbose = True
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("nel").setLevel(logging.DEBUG)


verbose_option: Decorator = click.option(
    "--verbose",
    "-v",
    is_flag=True,
    expose_value=False,
    callback=_set_verbose,
    help="Show debug messages, and the traceback of an internal error.",
)

json_option: Decorator = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout instead of text."
)


def _given_or_newest(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path:
    if value is not None:
        return value
    from nel.core.errors import UsageError
    from nel.core.rundir import is_run_dir

    results = Path(RESULTS)
    runs = [path for path in (results, *results.glob("*")) if is_run_dir(path)]
    if not runs:
        raise UsageError(
            f"No run directory was named, and ./{RESULTS} holds none.",
            hint="Name the directory that was given to `nel eval run` with -o.",
        )
    return max(runs, key=lambda path: (path / "manifest.json").stat().st_mtime)


run_dir_argument: Decorator = click.argument(
    "run_dir", metavar="[DIR]", required=False, type=click.Path(path_type=Path), callback=_given_or_newest
)
"""A run directory; without one, the newest run in ./eval_results."""

override_option: Decorator = click.option(
    "--override",
    "-O",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the config: benchmarks[0].repeats=4; any YAML value; repeatable.",
)

retry_errors_option: Decorator = click.option(
    "--retry-errors",
    type=click.Choice(["transient", "all"]),
    help="Which errors a resume tries again: all includes refusals (4xx).  [default: transient]",
)


def yaml_text(text: str) -> str:
    """A text as the VALUE of an override that is that text, whatever it looks like."""
    from nel.config.expand import escape

    return "'" + escape(text).replace("'", "''") + "'"
