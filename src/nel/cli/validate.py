"""`nel validate`: a few problems end to end, with question, answer and verdict of each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nel.cli.options import json_option, override_option, verbose_option
from nel.cli.output import print_json
from nel.cli.quick import load_quick, quick_options, refuse_quick_flags

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig
    from nel.reporting.run_view import CellView, RunView, Unit

_LINES = 12
"""Lines of a question or an answer that are shown; --full shows all."""


@click.command()
@click.argument("config", metavar="[CONFIG]", nargs=-1, type=click.Path(path_type=Path))
@quick_options(amounts=False)
@click.option(
    "--samples", "-s", type=click.IntRange(min=1), default=5, show_default=True, help="Problems of each benchmark."
)
@click.option("--full", is_flag=True, help="Show questions and answers whole.")
@click.option(
    "--self-test",
    "is_self_test",
    is_flag=True,
    help="Test how benchmarks grade, without a model: the arguments are their names, or `all`.",
)
@override_option
@json_option
@verbose_option
@click.pass_context
def validate(
    ctx: click.Context,
    /,
    config: tuple[Path, ...],
    samples: int,
    full: bool,
    is_self_test: bool,
    override: tuple[str, ...],
    as_json: bool,
    **quick: Any,
) -> int:
    """Try a few problems end to end before a long run.

    Everything is as in the run itself: prompts, parameters, extraction and scorers. Only the directory is a temporary
    one. A low score is no failure; the exit code is 1 when a benchmark could not be measured at all.

    With --self-test no model is asked: benchmarks grade their own example rows, and replies that are right, empty or
    meant for another row must get what they are worth.
    """
    if is_self_test:
        return _self_test(ctx, [str(name) for name in config], as_json=as_json)
    if len(config) > 1 or bool(config) == bool(quick["bench"]):
        raise click.UsageError("Give either a config file, or --bench NAME --model-url URL.", ctx=ctx)
    path = config[0] if config else None
    if path is not None:
        refuse_quick_flags(ctx)

    from nel.orchestration.suite import run_local
    from nel.reporting.run_view import open_run

    with tempfile.TemporaryDirectory(prefix="nel-validate-") as folder:
        loaded = _loaded(path, quick, override, samples, folder)
        result = run_local(loaded)
        view = open_run(result.run_dir, unfinished=True)
        cells = [_tried(view, cell) for cell in view.cells()]
    if as_json:
        print_json({"cells": cells, "failed": result.failed})
    else:
        for cell in cells:
            _print(cell, full=full)
        for place, reason in result.failed.items():
            click.echo(f"error: {place}: {reason}", err=True)
    measured = bool(cells) and all(cell["scored"] for cell in cells) and not result.failed
    return 0 if measured else 1


def _self_test(ctx: click.Context, names: list[str], *, as_json: bool) -> int:
    from nel.cli.self_test import self_test

    if not names:
        raise click.UsageError("Name the benchmarks to test, or `all`: nel validate --self-test all", ctx=ctx)
    for parameter in ctx.command.params:
        name = str(parameter.name)
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in {"config", "is_self_test", "as_json"}:
            raise click.UsageError(f"{parameter.opts[0]} says nothing to --self-test, which asks no model.", ctx=ctx)
    return self_test(names, as_json=as_json)


def _loaded(
    config: Path | None, quick: dict[str, Any], override: tuple[str, ...], samples: int, folder: str
) -> LoadedConfig:
    from nel.config.load import load_config

    def load(more: list[str]) -> LoadedConfig:
        if config is not None:
            return load_config(config, overrides=[*override, *more])
        return load_quick(quick, overrides=[*override, *more])

    count = len(load([]).config.benchmarks)
    few = [
        f"benchmarks[{index}].{key}={value}"
        for index in range(count)
        for key, value in (("max_problems", samples), ("repeats", 1))
    ]
    return load([*few, f"output.dir={folder}", "output.timestamped=false", "output.report=[]"])


def _tried(view: RunView, cell: CellView) -> dict[str, Any]:
    units = [_unit(view, cell, unit) for unit in view.units(cell)]
    return {
        "cell": cell.name,
        "benchmark": cell.benchmark,
        "model": cell.model,
        "scored": sum(unit["outcome"] == "scored" for unit in units),
        "attempts": units,
    }


def _unit(view: RunView, cell: CellView, unit: Unit) -> dict[str, Any]:
    detail = view.detail(cell, unit)
    return {
        "problem_idx": unit.problem_idx,
        "outcome": str(unit.outcome),
        "reward": unit.values.get("reward"),
        "messages": detail.messages,
        "answer": detail.answer,
        "extracted": detail.extracted,
        "expected": detail.expected,
        "failure_category": unit.failure_category,
        "error": detail.error,
    }


def _print(cell: dict[str, Any], *, full: bool) -> None:
    units = cell["attempts"]
    click.secho(f"{cell['cell']}: {cell['scored']} of {len(units)} attempts scored", bold=True)
    for unit in units:
        click.echo(f"\n--- problem {unit['problem_idx']}: {_verdict(unit)}")
        for message in unit["messages"]:
            _print_text(f"{message.get('role', '?')}: ", _text_of(message), full=full)
        if unit["error"]:
            _print_text("error: ", unit["error"], full=full)
        else:
            _print_text("answer: ", unit["answer"], full=full)
            click.echo(f"extracted: {unit['extracted']!r}, expected: {unit['expected']!r}")
    click.echo()


def _verdict(unit: dict[str, Any]) -> str:
    why = f" ({unit['failure_category']})" if unit["failure_category"] else ""
    return f"reward {unit['reward']:g}{why}" if unit["outcome"] == "scored" else f"{unit['outcome']}{why}"


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(_parts(content))


def _parts(content: list[dict[str, Any]]) -> Iterator[str]:
    for part in content:
        yield part["text"] if part.get("type") == "text" else f"[{part.get('type', 'part')}]"


def _print_text(label: str, text: str, *, full: bool) -> None:
    lines = text.splitlines() or [""]
    shown = lines if full else lines[:_LINES]
    click.echo(f"{label}{shown[0]}")
    for line in shown[1:]:
        click.echo(f"    {line}")
    if len(shown) < len(lines):
        click.echo(f"    ... {len(lines) - len(shown)} more lines; --full shows them")
