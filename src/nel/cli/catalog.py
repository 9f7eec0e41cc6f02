"""`nel list`: the benchmarks that can be run by name, from a table; none is loaded."""

from __future__ import annotations

import click

from nel.cli.options import json_option, verbose_option
from nel.cli.output import print_json, print_table

SOURCES = ("all", "built-in", "plug-in", "address")


@click.command("list")
@click.option("--source", type=click.Choice(SOURCES), default="all", help="Where they come from.  [default: all]")
@click.option("--search", metavar="TEXT", help="Only those with this text in name, description or category.")
@json_option
@verbose_option
def list_benchmarks(source: str, search: str | None, as_json: bool) -> int:
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
        from dataclasses import asdict

        addresses = [
            {"scheme": name, "description": item.description, "needs": item.needs} for name, item in schemes.items()
        ]
        print_json({"benchmarks": [asdict(info) for info in found], "addresses": addresses})
    else:
        rows = [
            (
                info.name,
                "-" if info.size is None else f"{info.size:,}",
                info.category or "-",
                info.description or info.location,
            )
            for info in found
        ]
        rows += [(f"{name}://...", "-", "address", item.description) for name, item in schemes.items()]
        if rows:
            print_table(rows, header=("Name", "Problems", "Category", "Description"))
        else:
            click.echo("No benchmark matches.", err=True)
    return 0 if found or schemes else 1
