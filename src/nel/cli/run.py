"""`nel eval run`: from a config file, or from flags alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nel.cli.options import json_option, override_option, retry_errors_option, verbose_option, yaml_text
from nel.cli.quick import load_quick, quick_options, refuse_quick_flags

if TYPE_CHECKING:
    from nel.engine.settings import RetryErrors


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@quick_options()
@click.option("--output-dir", "-o", metavar="DIR", help="The run directory.  [default: ./eval_results/TIME]")
@override_option
@click.option(
    "--resume", is_flag=True, help="Continue the run in the directory; only what is missing or changed is asked."
)
@retry_errors_option
@click.option("--dry-run", is_flag=True, help="Print what would be asked, with estimates, and write nothing.")
@click.option("--background", is_flag=True, help="Return at once; see `nel eval status` and `nel eval logs`.")
@json_option
@verbose_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    config: Path | None,
    output_dir: str | None,
    override: tuple[str, ...],
    resume: bool,
    retry_errors: RetryErrors | None,
    dry_run: bool,
    background: bool,
    as_json: bool,
    **quick: Any,
) -> int:
    """Run benchmarks against a model.

    Either CONFIG, a YAML or JSON file that says everything (docs/config.md), or quick mode: --bench and --model-url.
    An earlier run in the same directory is continued by --resume, and is otherwise set aside under previous/.
    """
    if config is not None and quick["bench"]:
        raise click.UsageError("Give a config file or --bench, not both.", ctx=ctx)
    if config is None and not quick["bench"]:
        raise click.UsageError("Give a config file, or --bench NAME --model-url URL.", ctx=ctx)
    if retry_errors is not None and not resume:
        raise click.UsageError("--retry-errors says what --resume repeats; give --resume too.", ctx=ctx)
    if dry_run and background:
        raise click.UsageError("--dry-run runs nothing, so there is nothing to put in the background.", ctx=ctx)

    from nel.cli.start import start
    from nel.config.load import load_config

    if config is not None:
        refuse_quick_flags(ctx)
        folder = [f"output.dir={yaml_text(output_dir)}"] if output_dir is not None else []
        loaded = load_config(config, overrides=[*override, *folder])
    else:
        loaded = load_quick(quick, output_dir=output_dir, overrides=override)
    return start(
        loaded,
        resume=resume,
        retry_errors=retry_errors or "transient",
        dry_run=dry_run,
        background=background,
        as_json=as_json,
        arguments=ctx.obj.arguments,
    )
