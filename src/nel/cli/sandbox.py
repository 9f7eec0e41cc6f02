"""`nel sandbox`: what sandboxes there are on this machine, which work, and what ended runs left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nel.cli.lazy import Entry, LazyGroup
from nel.cli.options import json_option, verbose_option
from nel.cli.output import print_json, print_table

if TYPE_CHECKING:
    from nel.sandbox.base import Leftover

group = LazyGroup(
    name="sandbox",
    entries={
        "ls": Entry("nel.cli.sandbox:ls", "List the backends and what stands of sandboxes on this machine."),
        "prune": Entry("nel.cli.sandbox:prune", "Remove what ended runs left of their sandboxes."),
    },
    help="Look at sandboxes, and clean up after runs that were killed.",
)


@click.command("ls")
@json_option
@verbose_option
def ls(as_json: bool) -> int:
    """List the backends and what stands of sandboxes on this machine.

    Each backend is told with what it runs on, or why it cannot be used here; then everything that a sandbox left or a
    run that goes on has, with the process that owns it.
    """
    import asyncio

    backends, found = asyncio.run(_look())
    if as_json:
        print_json({"backends": backends, "sandboxes": [_plain(item) for item in found]})
        return 0
    rows = [(item["name"], "yes" if item["works"] else "no", item["what"]) for item in backends]
    print_table(rows, header=("Backend", "Works", "Runs on, or why not"))
    if found:
        click.echo()
        table = [
            (item.backend, item.kind, item.name, item.owner, "ended" if item.stale else "goes on") for item in found
        ]
        print_table(table, header=("Backend", "Kind", "Name", "Owner", "Its run"))
    return 0


@click.command("prune")
@json_option
@verbose_option
def prune(as_json: bool) -> int:
    """Remove what ended runs left of their sandboxes.

    Containers, networks, folders and control groups whose process has ended, with every process in them. What belongs
    to a run that goes on is left alone, and so is what another machine or user owns. A new run does the same at its
    start.
    """
    import asyncio

    removed = asyncio.run(_prune())
    if as_json:
        print_json({"removed": [_plain(item) for item in removed]})
    else:
        for item in removed:
            click.echo(f"removed {item.backend} {item.kind} {item.name}")
        click.echo(f"{len(removed)} removed" if removed else "Nothing was left.")
    return 0


async def _look() -> tuple[list[dict[str, Any]], list[Leftover]]:
    from nel.sandbox.backends import BUILT_IN, get_backend
    from nel.sandbox.base import SandboxError

    backends, found = [], []
    for name in BUILT_IN:
        backend = get_backend(name)
        try:
            what = await backend.check()
        except SandboxError as error:
            backends.append({"name": name, "works": False, "what": error.message})
            continue
        backends.append({"name": name, "works": True, "what": what})
        found += await backend.leftovers()
    return backends, found


async def _prune() -> list[Leftover]:
    from nel.sandbox.backends import BUILT_IN, get_backend
    from nel.sandbox.base import SandboxError
    from nel.sandbox.manager import reap

    removed = []
    for name in BUILT_IN:
        backend = get_backend(name)
        try:
            await backend.check()
        except SandboxError:
            continue
        removed += await reap(backend)
    return removed


def _plain(item: Leftover) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(item)
