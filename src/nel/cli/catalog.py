"""`nel list`: the benchmarks that can be run by name, from a table; none is loaded."""

from __future__ import annotations

from typing import Any

import click

from nel.cli.options import json_option, verbose_option
from nel.cli.output import print_json, print_table

SOURCES = ("all", "built-in", "plug-in", "address")


@click.command("list")
@click.option("--source", type=click.Choice(SOURCES), default="all", help="Where they come from.  [default: all]")
@click.option("--search", metavar="TEXT", help="Only those with this text in name, description or category.")
@click.option("--long", is_flag=True, help="All that is known of each: data, revision, licence, published score.")
@json_option
@verbose_option
def list_benchmarks(source: str, search: str | None, long: bool, as_json: bool) -> int:
    """List the benchmarks that can be run by name.

    Addresses (scheme://...) reach benchmarks of other tools. A benchmark of one's own needs no entry: name its file.
    The exit code is 1 when nothing is found.
    """
    from nel.environments.catalog import SCHEMES
    from nel.environments.registry import list_benchmarks as known

    wanted = (search or "").lower()
    found = [
        info
        for info in known()
        if source in ("all", info.source) and wanted in f"{info.name} {info.description} {info.category}".lower()
    ]
    schemes = {
        name: scheme
        for name, scheme in SCHEMES.items()
        if scheme.loader and source in ("all", "address") and wanted in f"{name} {scheme.description}".lower()
    }
    if as_json:
        addresses = [
            {"scheme": name, "description": item.description, "needs": item.needs} for name, item in schemes.items()
        ]
        print_json({"benchmarks": [info.to_dict() for info in found], "addresses": addresses})
    elif not found and not schemes:
        click.echo("No benchmark matches.", err=True)
    elif long:
        _print_long([info.to_dict() for info in found])
    else:
        rows = [
            (
                info.name,
                "-" if info.size is None else f"{info.size:,}",
                info.category or "-",
                info.metric or "-",
                ", ".join(info.needs) or "-",
                info.description or info.location,
            )
            for info in found
        ]
        rows += [(f"{name}://...", "-", "address", "-", "-", item.description) for name, item in schemes.items()]
        print_table(rows, header=("Name", "Problems", "Category", "Metric", "Needs", "Description"))
    return 0 if found or schemes else 1


def _print_long(found: list[dict[str, Any]]) -> None:
    """A block of lines for each benchmark; what is not known of it has no line."""
    for number, info in enumerate(found):
        click.secho(("\n" if number else "") + info.pop("name"), bold=True)
        for key, value in info.items():
            text = ", ".join(value) if isinstance(value, tuple) else str(value)
            if value not in (None, "", ()):
                click.echo(f"  {key}: {text}")
