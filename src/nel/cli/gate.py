"""`nel gate`: GO, NO-GO or INCONCLUSIVE for a release, by a policy."""

from __future__ import annotations

from pathlib import Path

import click

from nel.cli.deliver import deliver, output_option, report_option, show, strict_option
from nel.cli.options import verbose_option


@click.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--policy", "-p", required=True, type=click.Path(path_type=Path), help="The policy, a YAML file.")
@strict_option
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["text", "markdown", "json", "junit"]),
    default="text",
    show_default=True,
)
@output_option
@report_option
@verbose_option
def gate(
    baseline: Path, candidate: Path, policy: Path, strict: bool, form: str, output: Path | None, report: Path | None
) -> int:
    """Decide on a release by a policy, candidate against baseline.

    BASELINE and CANDIDATE are run directories (or cells of them). The verdict is the exit code: GO 0, NO-GO 1,
    INCONCLUSIVE 2.
    """
    from nel.decisions.gate import gate_runs
    from nel.decisions.policy import load_policy
    from nel.decisions.selection import open_cells
    from nel.decisions.show_gate import gate_junit, gate_page

    rules = load_policy(policy)
    found = gate_runs(open_cells(baseline), open_cells(candidate), rules, policy_name=str(policy))
    if form == "junit":
        show(gate_junit(found))
    deliver(found, gate_page(found), form=form, output=output, markdown=report)
    return int(found.verdict.exit_code) if strict else 0
