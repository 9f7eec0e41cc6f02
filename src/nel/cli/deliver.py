"""What `compare`, `gate` and `plan` share: a report printed as text, Markdown or JSON, and written to files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nel.cli.options import Decorator

if TYPE_CHECKING:
    from nel.decisions.document import Block

output_option: Decorator = click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the JSON form to this file as well."
)
report_option: Decorator = click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the Markdown form to this file as well."
)
strict_option: Decorator = click.option(
    "--strict/--no-strict",
    default=True,
    show_default=True,
    help="Make the verdict the exit code; otherwise the exit code is 0 whatever it is.",
)


def deliver(report: Any, page: list[Block], *, form: str, output: Path | None, markdown: Path | None) -> None:
    """Print `report` in `form`: `text`, `markdown` or `json`; the caller prints any other. `page` is for people."""
    from nel.decisions.document import to_markdown, to_text

    if form == "json":
        show(_json(report))
    elif form == "markdown":
        show(to_markdown(page))
    elif form == "text":
        show(to_text(page))
    if output is not None:
        _write(output, _json(report))
    if markdown is not None:
        _write(markdown, to_markdown(page))


def show(text: str) -> None:
    """Print `text`, in ASCII where stdout can hold no more."""
    from nel.observability.format import to_ascii

    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    click.echo(text if unicode else "\n".join(map(to_ascii, text.split("\n"))), nl=False)


def _json(report: Any) -> str:
    import msgspec

    from nel.core.contract import encode_json

    return msgspec.json.format(encode_json(report), indent=2).decode() + "\n"


def _write(path: Path, text: str) -> None:
    from nel.core.disk import write_atomic
    from nel.core.errors import UsageError

    try:
        write_atomic(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.", hint="Name another file.") from None
    click.echo(str(path), err=True)
