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

    return print_outcome(merge_results(directory), as_json=as_json)
