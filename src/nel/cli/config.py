"""`nel config`: check and print configs, and the user's defaults."""

from __future__ import annotations

import os
from pathlib import Path

import click

from nel.cli.lazy import Entry, LazyGroup
from nel.cli.options import json_option, override_option, verbose_option
from nel.cli.output import print_json

COMMANDS = {
    "check": Entry("nel.cli.config:check", "Check a config, and say with file and line what is wrong."),
    "show": Entry("nel.cli.config:show", "Print a config composed and expanded, or the user's defaults."),
    "schema": Entry("nel.cli.config:schema", "Print the JSON Schema of a config, for editors."),
    "get": Entry("nel.cli.config:get", "Print one of the user's defaults."),
    "set": Entry("nel.cli.config:set_", "Set one of the user's defaults, which every config then builds on."),
    "unset": Entry("nel.cli.config:unset", "Remove one of the user's defaults."),
}

group = LazyGroup(name="config", entries=COMMANDS, help="Check and print configs; set the user's defaults.")

_config_argument = click.argument("config", metavar="CONFIG", type=click.Path(path_type=Path))


@click.command()
@_config_argument
@override_option
@json_option
@verbose_option
def check(config: Path, override: tuple[str, ...], as_json: bool) -> int:
    """Check a config, and say with file and line what is wrong.

    Keys, values, references between services and benchmarks, and what this version cannot do yet. Nothing is started
    and no data are read: `nel eval run --dry-run` goes further.
    """
    from nel.config.load import load_config
    from nel.config.planning import plan_check

    loaded = load_config(config, overrides=override)
    plan_check(loaded)
    if as_json:
        names = [entry.name for entry in loaded.config.benchmarks]
        files = [str(path) for path in loaded.files]
        print_json({"ok": True, "files": files, "benchmarks": names, "warnings": loaded.warnings})
        return 0
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    count = len(loaded.config.benchmarks)
    click.echo(f"{config}: a good config ({count} benchmark{'' if count == 1 else 's'})")
    return 0


@click.command()
@click.argument("config", metavar="[CONFIG]", required=False, type=click.Path(path_type=Path))
@override_option
@json_option
@verbose_option
@click.pass_context
def show(ctx: click.Context, /, config: Path | None, override: tuple[str, ...], as_json: bool) -> None:
    """Print a config composed and expanded, or the user's defaults.

    This is what a run stores as config.yaml: secrets stay as ${NAME}.
    """
    from nel.config.load import dump_yaml, load_config

    if config is None:
        if override:
            raise click.UsageError("-O changes a config: name one.", ctx=ctx)
        shown = _user_defaults()
    else:
        shown = load_config(config, overrides=override).composed
    if as_json:
        print_json(shown)
    elif shown:
        click.echo(dump_yaml(shown), nl=False)


def _user_defaults() -> object:
    from nel.config.defaults import defaults_path, user_defaults
    from nel.config.positions import plain
    from nel.core.secrets import redact_value

    click.echo(f"# {defaults_path(os.environ)}", err=True)
    return redact_value(plain(user_defaults(os.environ)))


@click.command()
@verbose_option
def schema() -> None:
    """Print the JSON Schema of a config, for editors."""
    from nel.config.schema import json_schema

    print_json(json_schema())


@click.command()
@click.argument("key")
@json_option
@verbose_option
def get(key: str, as_json: bool) -> None:
    """Print one of the user's defaults."""
    from nel.config.defaults import get_default
    from nel.config.load import dump_yaml

    value = get_default(key, os.environ)
    if isinstance(value, str) and not as_json:
        click.echo(value)
    elif isinstance(value, dict | list) and not as_json:
        click.echo(dump_yaml(value), nl=False)
    else:
        print_json(value)


@click.command("set")
@click.argument("key")
@click.argument("value")
@verbose_option
def set_(key: str, value: str) -> None:
    """Set one of the user's defaults, which every config then builds on.

    KEY is a path such as services.model.url, VALUE is any YAML value.
    """
    from nel.config.defaults import set_default

    click.echo(str(set_default(key, value, os.environ)), err=True)


@click.command()
@click.argument("key")
@verbose_option
def unset(key: str) -> None:
    """Remove one of the user's defaults."""
    from nel.config.defaults import unset_default

    click.echo(str(unset_default(key, os.environ)), err=True)
