"""`nel judge`: what is to be known of a judge before its scores are trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nel.cli.lazy import Entry, LazyGroup
from nel.cli.options import json_option, verbose_option
from nel.cli.output import print_json

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

COMMANDS = {
    "calibrate": Entry("nel.cli.judge:calibrate", "Compare a judge with human labels."),
}

group = LazyGroup(name="judge", entries=COMMANDS, help="Check judges before their scores are trusted.")

_OF_QUICK = (
    "judge_id",
    "api_key",
    "protocol",
    "max_tokens",
    "rubric",
    "rubric_file",
    "scale",
    "min_score",
    "max_score",
)


@click.command()
@click.argument("labels", metavar="LABELS", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--config", "-c", metavar="FILE", type=click.Path(path_type=Path, exists=True), help="Config that holds the judge."
)
@click.option("--metric", metavar="NAME", help="Which judge of the config; not needed where it has one.")
@click.option("--judge-url", metavar="URL", help="Endpoint of the judge, instead of a config.")
@click.option("--judge-id", metavar="ID", help="Its model name; not needed where the endpoint has only one model.")
@click.option("--api-key", metavar="KEY", help="Key of the endpoint; better in a variable.")
@click.option(
    "--protocol",
    type=click.Choice(["chat_completions", "completions", "responses"]),
    help="Where the URL does not end in its path.",
)
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Most tokens of a reply.")
@click.option("--rubric", metavar="TEXT", help="What the judge goes by.")
@click.option("--rubric-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="The same as a file.")
@click.option("--scale", multiple=True, metavar="LABEL=SCORE", help="What the judge may say; repeatable.")
@click.option("--min-score", type=float, metavar="NUMBER", help="Worst score, where it gives numbers.")
@click.option("--max-score", type=float, metavar="NUMBER", help="Best score.  [default: 5]")
@click.option("--reference-free", is_flag=True, help="Do not show the expected answer.")
@click.option("--structured-output", is_flag=True, help="Ask for JSON by a schema.")
@click.option("--prompt-field", default="prompt", show_default=True, metavar="COLUMN", help="Column of the question.")
@click.option("--response-field", default="response", show_default=True, metavar="COLUMN", help="Column of the answer.")
@click.option(
    "--target-field",
    default="target",
    show_default=True,
    metavar="COLUMN",
    help="Column of the expected answer, if any.",
)
@click.option("--label-field", default="label", show_default=True, metavar="COLUMN", help="Column of the human label.")
@click.option("--threshold", type=float, metavar="SCORE", help="Labels are yes or no; a score from here on is a yes.")
@click.option("--min-kappa", type=click.FloatRange(-1, 1), metavar="NUMBER", help="Fail below this agreement.")
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Keep every verdict as JSONL.")
@json_option
@verbose_option
@click.pass_context
def calibrate(ctx: click.Context, /, labels: Path, as_json: bool, output: Path | None, **given: Any) -> int:
    """Compare a judge with human labels.

    LABELS is a JSONL or CSV file with a question, an answer and a label in each row, and an expected answer where there
    is one. Printed are accuracy and Cohen's kappa with intervals, who said what, and what could not be read. The exit
    code is 1 when nothing was judged or kappa is below --min-kappa, 2 when only its interval reaches below, 3 when more
    than 5 % of the rows could not be judged.
    """
    import asyncio

    from nel.cli.calibration import decided, print_calibration
    from nel.orchestration.calibrate import Columns
    from nel.orchestration.calibrate import calibrate as run

    columns = Columns(
        prompt=given["prompt_field"],
        response=given["response_field"],
        target=given["target_field"],
        label=given["label_field"],
    )
    found, rows = asyncio.run(
        run(_loaded(ctx, given), labels, metric=given["metric"], columns=columns, threshold=given["threshold"])
    )
    if output is not None:
        _keep(output, rows)
    code, verdict = decided(found, given["min_kappa"])
    if as_json:
        import msgspec

        print_json({**msgspec.to_builtins(found), "verdict": verdict, "exit_code": code})
    else:
        print_calibration(found, verdict)
    return code


def _loaded(ctx: click.Context, given: dict[str, Any]) -> LoadedConfig:
    if (given["config"] is None) == (given["judge_url"] is None):
        raise click.UsageError("Give either --config FILE, or --judge-url URL.", ctx=ctx)
    if given["config"] is None:
        return _quick(given)
    for name in (*_OF_QUICK, "reference_free", "structured_output"):
        if given[name]:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} goes with --judge-url; a config says it in scoring.metrics.", ctx=ctx)
    from nel.config.load import load_config

    return load_config(given["config"])


def _quick(given: dict[str, Any]) -> LoadedConfig:
    """The config that the flags mean: a judge, in an entry of which nothing else is used."""
    import json

    from nel.cli.quick import load_quick
    from nel.config.expand import escape

    if given["metric"] is not None:
        raise click.UsageError("--metric goes with --config.")
    metric: dict[str, Any] = {"type": "judge", "name": "judge", "service": "model", "allow_self_judge": True}
    for name in ("rubric", "rubric_file"):
        if given[name] is not None:
            metric[name] = escape(given[name])
    for name in ("min_score", "max_score", "reference_free", "structured_output"):
        if given[name]:
            metric[name] = given[name]
    if given["min_score"] == 0:
        metric["min_score"] = 0
    if given["scale"]:
        metric["labels"] = dict(_labelled(item) for item in given["scale"])
    quick = {
        "bench": ["calibration"],
        "model_url": given["judge_url"],
        "model_id": given["judge_id"],
        **{name: given[name] for name in ("api_key", "protocol", "max_tokens")},
        **dict.fromkeys(("system_prompt", "temperature", "dataset", "max_concurrent", "shuffle_seed")),
    }
    overrides = [f"benchmarks[0].scoring={json.dumps({'metrics': [metric]})}"]
    if given["max_tokens"] is not None:
        overrides.append(f"services.model.generation.max_tokens={given['max_tokens']}")
    return load_quick(quick, overrides=overrides)


def _labelled(item: str) -> tuple[str, float]:
    label, _, score = item.rpartition("=")
    try:
        return label, float(score)
    except ValueError:
        raise click.UsageError(f"--scale {item!r} is not LABEL=SCORE.") from None


def _keep(path: Path, rows: list[dict[str, Any]]) -> None:
    from nel.core.contract import encode_json
    from nel.core.disk import write_atomic

    write_atomic(path, b"".join(encode_json(row) + b"\n" for row in rows))
