"""`nel doctor`: what is installed, reachable and missing, each with the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nel.cli.options import json_option, verbose_option

if TYPE_CHECKING:
    from nel.cli.checks import Check

_MARKS = {"ok": ("ok", "green"), "optional": ("--", "yellow"), "failed": ("!!", "red")}


@click.command()
@click.option("--model-url", metavar="URL", help="Ask this endpoint for its models.")
@click.option("--api-key", metavar="KEY", help="Key for --model-url; else the environment, as in `nel eval run`.")
@click.option("--network", is_flag=True, help="Ask the Hugging Face hub whether it can be reached.")
@json_option
@verbose_option
def doctor(model_url: str | None, api_key: str | None, network: bool, as_json: bool) -> int:
    """Tell what is installed, reachable and missing.

    Every line that is not ok comes with the next step. Nothing outside this machine is contacted unless --network or
    --model-url asks for it. The exit code is 1 when something that every run needs is missing, or something that was
    asked about cannot be reached.
    """
    from nel.cli import checks

    found = checks.local_checks()
    if model_url:
        found.append(checks.check_endpoint(model_url, api_key))
    if network:
        found.append(checks.check_hub())
    if as_json:
        from nel.cli.output import print_json

        print_json({"checks": [check.to_dict() for check in found], "ok": all(check.ok for check in found)})
    else:
        _print(found)
    return 0 if all(check.ok for check in found) else 1


def _print(found: list[Check]) -> None:
    width = max(len(check.name) for check in found)
    for check in found:
        mark, color = _MARKS[check.state]
        click.echo(f"{click.style(mark, fg=color)} {check.name:<{width}}  {check.detail}")
        if check.next_step:
            click.echo(f"   {'':<{width}}  -> {check.next_step}")
