"""Prints what `--dry-run` resolved: cells, problems, requests, and estimates of tokens and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nel.cli.output import print_json, print_table
from nel.observability.format import format_count, format_money

if TYPE_CHECKING:
    from nel.orchestration.plan import Plan, PlannedCell

_HEADER = ("Cell", "Model", "Problems", "Repeats", "Requests", "Prompt tokens", "Completion tokens", "Cost")


def print_plan(plan: Plan, *, as_json: bool) -> None:
    """Print a plan, and why an entry cannot be planned."""
    if as_json:
        print_json(plan.to_dict())
    else:
        _print(plan)
    for place, reason in plan.errors.items():
        click.echo(f"error: {place}: {reason}", err=True)


def _print(plan: Plan) -> None:
    cells = f"{len(plan.cells)} cell{'' if len(plan.cells) == 1 else 's'}"
    click.echo(f"Would run {cells} in {plan.output_dir}; nothing was written and no question asked.\n")
    if not plan.cells:
        return
    rows = [_row(cell) for cell in plan.cells]
    requests, prompt = sum(cell.requests for cell in plan.cells), sum(cell.prompt_tokens for cell in plan.cells)
    if len(rows) > 1:
        rows.append(("total", "", "", "", format_count(requests), f"~{format_count(prompt)}", "", ""))
    print_table(rows, header=_HEADER)
    click.echo("\nPrompt tokens are estimated from the texts; completion tokens and cost are the most that it can be.")


def _row(cell: PlannedCell) -> tuple[str, ...]:
    return (
        cell.directory,
        cell.model or "-",
        format_count(cell.problems),
        str(cell.repeats),
        format_count(cell.requests),
        f"~{format_count(cell.prompt_tokens)}",
        "no limit" if cell.completion_tokens is None else f"<= {format_count(cell.completion_tokens)}",
        "-" if cell.cost is None else f"<= {format_money(cell.cost)}{f' {cell.currency}' if cell.currency else ''}",
    )
