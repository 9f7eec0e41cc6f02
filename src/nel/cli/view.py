"""`nel view`: runs in a browser."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from nel.cli.options import RESULTS, verbose_option

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@click.command()
@click.argument("directories", metavar="[DIR...]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8420, show_default=True, help="0 takes any free one."
)
@click.option(
    "--host",
    metavar="NAME",
    default="127.0.0.1",
    show_default=True,
    help="Another address needs the token that is printed.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@verbose_option
def view(directories: tuple[Path, ...], port: int, host: str, open_browser: bool) -> int:
    """Show runs in the browser, until Ctrl-C.

    Every run below the directories is listed; without one, those in ./eval_results. Runs in progress update by
    themselves. Nothing is written into a run directory.
    """
    import secrets

    from nel.reporting.viewer.app import listen
    from nel.reporting.viewer.index import cache_directory
    from nel.reporting.viewer.library import Library

    library = Library(directories or (Path(RESULTS),), cache_directory())
    token = None if host in LOOPBACK else secrets.token_urlsafe(24)
    serve, bound = listen(library, host, port, token)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{bound}/{f'?token={token}' if token else ''}"
    click.echo(address)
    click.echo("Ctrl-C ends the viewer.", err=True)
    if open_browser:
        click.launch(address)
    with contextlib.suppress(KeyboardInterrupt):
        serve()
    return 0
