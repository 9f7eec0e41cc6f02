"""`nel compare`: is the candidate worse than the baseline; of several runs, which is best."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from nel.cli.deliver import deliver, output_option, report_option, strict_option
from nel.cli.options import verbose_option

_SHOWN_FLIPS = 20
_OF_TWO = {
    "max_drop": "--max-drop",
    "correct_above": "--correct-above",
    "show_flips": "--show-flips",
    "compact": "--compact",
    "test": "--test",
    "one_sided": "--one-sided",
    "correction": "--correction",
    "strict": "--strict",
}
"""Options that mean something for two runs only."""


@click.command()
@click.argument("runs", metavar="BASELINE CANDIDATE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--max-drop", "-t", type=float, default=0.05, show_default=True, help="The drop that is acceptable, in score units."
)
@click.option("--metric", metavar="NAME", help="What to compare.  [default: the baseline's headline]")
@click.option(
    "--direction", type=click.Choice(["higher", "lower"]), help="What is better, for a metric that does not say."
)
@click.option("--cell", "cells", multiple=True, metavar="NAME", help="Compare only this cell or benchmark; repeatable.")
@click.option(
    "--test",
    type=click.Choice(["auto", "mcnemar", "sign", "permutation"]),
    default="auto",
    show_default=True,
    help="The test that is reported beside the verdict.",
)
@click.option("--one-sided", is_flag=True, help="Test only whether the candidate is worse.")
@click.option("--correct-above", type=float, metavar="X", help="Count scores above X as right, others as wrong.")
@click.option(
    "--correction",
    type=click.Choice(["holm", "bh"]),
    default="holm",
    show_default=True,
    help="How the categories' p-values are corrected: Holm, or Benjamini-Hochberg.",
)
@click.option("--show-flips", is_flag=True, help=f"Show up to {_SHOWN_FLIPS} flips each way, with both answers.")
@click.option("--compact", is_flag=True, help="Only the verdict, the table and the warnings.")
@strict_option
@click.option(
    "--format", "-f", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True
)
@output_option
@report_option
@verbose_option
def compare(runs: tuple[Path, ...], form: str, output: Path | None, report: Path | None, **given: Any) -> int:
    """Compare a candidate with a baseline, problem by problem.

    BASELINE and CANDIDATE are run directories, cells of them, or bundles. The verdict is the exit code: PASS 0, BLOCK
    1, WARN or INCONCLUSIVE 2. Of three runs or more a ranking is made.
    """
    from nel.core.errors import UsageError

    ctx = click.get_current_context()
    if len(runs) < 2:
        raise UsageError("Only one run was named.", hint="Name the baseline, then the candidate.")
    if given["compact"] and form == "json":
        raise UsageError("--compact shortens text and Markdown; the JSON form is always whole.", hint="Leave one out.")
    if len(runs) > 2:
        for name, flag in _OF_TWO.items():
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise UsageError(f"{flag} compares two runs; {len(runs)} are ranked.", hint="Leave it out.")
        return _rank(runs, given, form, output, report)
    return _compare(runs, given, form, output, report, verbose=ctx.obj is not None and ctx.obj.verbose)


def _compare(
    runs: tuple[Path, ...], given: dict[str, Any], form: str, output: Path | None, report: Path | None, *, verbose: bool
) -> int:
    from nel.decisions.compare import CompareOptions, compare_runs
    from nel.decisions.multiplicity import Correction
    from nel.decisions.paired_tests import TestKind
    from nel.decisions.selection import open_cells
    from nel.decisions.show_compare import compare_page
    from nel.reporting.run_view import Direction

    options = CompareOptions(
        max_drop=given["max_drop"],
        metric=given["metric"],
        direction=Direction(given["direction"]) if given["direction"] else None,
        test=TestKind(given["test"]),
        one_sided=given["one_sided"],
        correct_above=given["correct_above"],
        correction=Correction(given["correction"]),
        show_flips=_SHOWN_FLIPS if given["show_flips"] else 0,
    )
    baseline, candidate = (open_cells(path) for path in runs)
    found = compare_runs(baseline, candidate, options, cells=given["cells"])
    page = compare_page(found, compact=given["compact"], verbose=verbose)
    deliver(found, page, form=form, output=output, markdown=report)
    return int(found.verdict.exit_code) if given["strict"] else 0


def _rank(runs: tuple[Path, ...], given: dict[str, Any], form: str, output: Path | None, report: Path | None) -> int:
    from nel.decisions.compare import CompareOptions
    from nel.decisions.ranking import rank_runs
    from nel.decisions.selection import open_cells
    from nel.decisions.show_compare import ranking_page
    from nel.reporting.run_view import Direction

    direction = Direction(given["direction"]) if given["direction"] else None
    options = CompareOptions(metric=given["metric"], direction=direction)
    ranked = rank_runs([open_cells(path) for path in runs], options, cells=given["cells"])
    deliver(ranked, ranking_page(ranked), form=form, output=output, markdown=report)
    return 0
