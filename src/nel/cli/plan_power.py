"""`nel plan`: how many problems and repeats a comparison needs, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from nel.cli.deliver import deliver, output_option, report_option
from nel.cli.options import verbose_option


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--drop", type=float, required=True, metavar="X", help="The drop that shall be seen, in score units.")
@click.option("--power", type=float, default=0.8, show_default=True, help="The chance to see it.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the two-sided test.")
@click.option(
    "--repeats", "-n", type=int, multiple=True, help="Attempts at each problem; repeatable.  [default: 1 2 4 8]"
)
@click.option("--correlation", type=float, help="Between the models' scores, where no two runs tell.  [default: 0.5]")
@click.option("--rate", type=float, help="Without a run: the share of right answers.")
@click.option("--sd", type=float, help="Without a run: the standard deviation of scores.")
@click.option("--discordance", type=float, help="Without a run: the share of problems on which the models differ.")
@click.option("--problems", type=int, help="Without a run: how many problems there are.")
@click.option("--metric", metavar="NAME", help="Of the run.  [default: its headline]")
@click.option("--cell", metavar="NAME", help="Which cell or benchmark of the run.")
@click.option("--input-price", type=float, help="Of a million prompt tokens, where the run has no prices.")
@click.option("--output-price", type=float, help="Of a million completion tokens.")
@click.option(
    "--format", "-f", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True
)
@output_option
@report_option
@verbose_option
def plan(
    runs: tuple[Path, ...],
    drop: float,
    power: float,
    alpha: float,
    repeats: tuple[int, ...],
    correlation: float | None,
    rate: float | None,
    sd: float | None,
    discordance: float | None,
    problems: int | None,
    metric: str | None,
    cell: str | None,
    input_price: float | None,
    output_price: float | None,
    form: str,
    output: Path | None,
    report: Path | None,
) -> int:
    """Plan a comparison: problems and repeats that show a drop, and their cost.

    From a past RUN; better from two, whose difference shows how much problems differ; or from assumptions.
    """
    from nel.decisions.forecast import (
        CORRELATION,
        REPEATS,
        PlanOptions,
        assumed_spread,
        plan_from_assumptions,
        plan_from_runs,
    )
    from nel.decisions.selection import open_cells
    from nel.decisions.show_compare import plan_page

    assumed = {"--rate": rate, "--sd": sd, "--discordance": discordance, "--problems": problems}
    measured = {"--metric": metric, "--cell": cell, "--input-price": input_price, "--output-price": output_price}
    _refuse_mixed(runs, assumed, measured, correlation)
    options = PlanOptions(
        drop=drop,
        power=power,
        alpha=alpha,
        correlation=CORRELATION if correlation is None else correlation,
        metric=metric,
        repeats=sorted(set(repeats)) or REPEATS,
        prices=None if input_price is None or output_price is None else (input_price, output_price),
    )
    if runs:
        found = plan_from_runs([open_cells(path) for path in runs], options, cell=cell)
    else:
        spread = assumed_spread(options, rate=rate, deviation=sd, discordance=discordance)
        found = plan_from_assumptions(options, spread, available=problems)
    deliver(found, plan_page(found), form=form, output=output, markdown=report)
    return 0


def _refuse_mixed(
    runs: tuple[Path, ...], assumed: Mapping[str, object], measured: Mapping[str, object], correlation: float | None
) -> None:
    """Options that would have no effect."""
    from nel.core.errors import UsageError

    given = [name for name, value in (assumed if runs else measured).items() if value is not None]
    if given:
        reason = "is an assumption, and a run was named" if runs else "reads a run, and none was named"
        raise UsageError(f"{given[0]} {reason}.", hint="Leave one of the two out.")
    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs were named; a plan is made from one or two.", hint="Name two.")
    if correlation is not None and (len(runs) == 2 or assumed["--discordance"] is not None):
        raise UsageError("--correlation has no effect: what it would tell is known.", hint="Leave it out.")
    exclusive = [name for name in ("--rate", "--sd", "--discordance") if assumed[name] is not None]
    if len(exclusive) > 1:
        raise UsageError(f"{' and '.join(exclusive)} say the same in two ways.", hint="Give one of them.")
    prices = [name for name in ("--input-price", "--output-price") if measured[name] is not None]
    if len(prices) == 1:
        raise UsageError(f"{prices[0]} alone gives no cost.", hint="Give --input-price and --output-price.")
