"""`nel eval merge`: the shards of a directory as one run."""

from __future__ import annotations

from pathlib import Path

import click

from nel.cli.options import json_option, verbose_option


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@json_option
@verbose_option
def merge(directory: Path, as_json: bool) -> int:
    """Make one run of the shards in a directory.

    DIR holds shard_0, shard_1, ... of one config; the whole run is written to DIR/merged, equal to one that was never
    sharded. Shards that are missing, unfinished or of another plan are named, and nothing is written.
    """
    from nel.cli.outcome import print_outcome
    from nel.engine.merge import merge_results
    from nel.orchestration.suite import write_reports
    from nel.reporting.formats import SUFFIXES

    merged = merge_results(directory)
    formats = [name for name, suffix in SUFFIXES.items() if (directory / "shard_0" / f"report{suffix}").is_file()]
    write_reports(merged, formats)
    return print_outcome(merged, as_json=as_json)
