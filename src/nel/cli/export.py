"""`nel export`: runs for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nel.cli.options import json_option, verbose_option
from nel.cli.output import print_json


@click.command("export")
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--dest",
    "-d",
    required=True,
    metavar="NAME",
    help="Where to: csv, parquet, jsonl, junit, inspect, otel, wandb, mlflow, or one of a plug-in.",
)
@click.option("--override", "-O", "options", multiple=True, metavar="K=V", help="An option of the destination.")
@click.option(
    "--output-dir",
    "-o",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default="exports",
    show_default=True,
    help="Where files are written.",
)
@json_option
@verbose_option
def export(paths: tuple[Path, ...], dest: str, options: tuple[str, ...], output_dir: Path, as_json: bool) -> int:
    """Hand runs over to another tool.

    The runs are only read. One that cannot be handed over does not stop the others; the exit code is then 1.
    """
    from nel.core.errors import NelError
    from nel.exporters.base import get_exporter
    from nel.reporting.run_view import open_run

    exporter = get_exporter(dest, dict(map(_option, options)))
    done: list[dict[str, Any]] = []
    for path in paths:
        try:
            places = list(exporter.export(open_run(path), output_dir))
            done.append({"run": str(path), "places": places})
        except NelError as error:
            done.append({"run": str(path), "error": str(error)})
        except Exception as error:  # the other tool's own
            done.append({"run": str(path), "error": f"{type(error).__name__}: {error}"})
    failed = [item for item in done if "error" in item]
    if as_json:
        print_json({"dest": dest, "runs": done})
    else:
        for item in done:
            for place in item.get("places", []):
                click.echo(f"{item['run']} -> {place}")
        for item in failed:
            click.echo(f"error: {item['run']}: {item['error']}", err=True)
    return 1 if failed else 0


def _option(text: str) -> tuple[str, Any]:
    import json

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"-O {text!r} is not NAME=VALUE.")
    try:
        return name.replace("-", "_"), json.loads(value)
    except ValueError:
        return name.replace("-", "_"), value
