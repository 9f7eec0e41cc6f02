"""A click group that knows its commands by name and one line of help, and imports one only when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is, and what its group's help says of it."""

    target: str
    """`module:attribute` of a click command."""
    help: str


class LazyGroup(click.Group):
    """A group over a table of entries, in the table's order."""

    def __init__(self, *, entries: Mapping[str, Entry], name: str, help: str) -> None:  # noqa: A002 - click's own name
        super().__init__(name=name, help=help)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names in the table's order."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command, imported now."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Click's lookup, with the nearest names where there is no such command."""
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.entries, n=3)
            names = " or ".join(repr(name) for name in near) or ", ".join(self.entries)
            known = f"Did you mean {names}?" if near else f"Commands: {names}."
            raise click.UsageError(f"No such command {args[0]!r}. {known}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table itself: no command is imported for the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])
