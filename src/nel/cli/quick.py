"""Quick mode: a config from flags alone, as `nel eval run` and `nel validate` offer it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nel.cli.keys import BY_DOMAIN, api_key_variable

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

PROTOCOLS = ("chat_completions", "completions", "responses")


def _seed(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None or re.fullmatch(r"-?\d+", value):
        return value
    if value == "none":
        return "null"
    raise click.BadParameter("a whole number, or 'none' for the data's own order")


_MODEL_OPTIONS = (
    click.option(
        "--model-url",
        envvar=["NEL_MODEL_URL", "NEMO_MODEL_URL"],
        metavar="URL",
        help="Endpoint to evaluate, such as https://host/v1.",
    ),
    click.option(
        "--model-id",
        envvar=["NEL_MODEL_ID", "NEMO_MODEL_ID"],
        metavar="ID",
        help="Model name as sent; not needed where the endpoint has only one.",
    ),
    click.option("--api-key", metavar="KEY", help="Key of the endpoint; better in the variable NEL_API_KEY."),
    click.option(
        "--protocol", type=click.Choice(PROTOCOLS), help="Wire format, where the URL does not end in its path."
    ),
)
_BENCHMARK_OPTIONS = (
    click.option(
        "--dataset", metavar="PATH", help="Data instead of the benchmark's own: a file, a folder, hf:// or package://."
    ),
    click.option("--system-prompt", metavar="TEXT", help="Replaces the benchmark's system prompt."),
    click.option("--temperature", type=float, help="Sampling temperature.  [default: 0]"),
    click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of an answer."),
    click.option("--max-concurrent", type=click.IntRange(min=1), help="Problems attempted at once."),
    click.option(
        "--shuffle-seed", callback=_seed, metavar="N|none", help="Order of the problems; none keeps the data's own."
    ),
)
_AMOUNT_OPTIONS = (
    click.option("--repeats", "-n", type=click.IntRange(min=1), help="Attempts at each problem."),
    click.option("--max-problems", type=click.IntRange(min=1), help="Take only the first problems."),
)

_IN_CONFIG = {
    "model_url": "services.NAME.url",
    "model_id": "services.NAME.model",
    "api_key": "services.NAME.api_key",
    "protocol": "services.NAME.protocol",
    "dataset": "benchmarks[0].dataset",
    "system_prompt": "benchmarks[0].solver.system_prompt",
    "temperature": "services.NAME.generation.temperature",
    "max_tokens": "services.NAME.generation.max_tokens",
    "max_concurrent": "benchmarks[0].max_concurrent",
    "shuffle_seed": "benchmarks[0].shuffle_seed",
    "repeats": "benchmarks[0].repeats",
    "max_problems": "benchmarks[0].max_problems",
}
"""Where a config file says what a flag of quick mode says."""

bench_option = click.option(
    "--bench",
    "-b",
    multiple=True,
    metavar="NAME",
    help="Benchmark: a name of `nel list`, FILE.py[:NAME] or a URI; repeatable.",
)


def quick_options(*, amounts: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The flags of quick mode; without `amounts` those that say how much is asked are left out."""
    options = (bench_option, *_MODEL_OPTIONS, *_BENCHMARK_OPTIONS, *(_AMOUNT_OPTIONS if amounts else ()))

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def refuse_quick_flags(ctx: click.Context) -> None:
    """`UsageError` for a flag of quick mode beside a config file, where it would do nothing."""
    for name, path in _IN_CONFIG.items():
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} goes with --bench; change a config file by -O '{path}=VALUE'.", ctx=ctx)


def load_quick(
    given: Mapping[str, Any],
    *,
    output_dir: str | None = None,
    overrides: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """The config that the flags of quick mode mean; `overrides` have the last word."""
    from nel.config.quick import quick_config

    env = os.environ if env is None else env
    url = _with_path(given["model_url"], given["protocol"])
    return quick_config(
        given["bench"],
        url,
        given["model_id"],
        given["api_key"],
        repeats=given.get("repeats"),
        max_problems=given.get("max_problems"),
        system_prompt=given["system_prompt"],
        temperature=0.0 if given["temperature"] is None else given["temperature"],
        max_tokens=given["max_tokens"],
        dataset=given["dataset"],
        output_dir=output_dir,
        overrides=[*_flags_as_overrides(given, url, env), *overrides],
        env=env,
    )


def _with_path(url: str | None, protocol: str | None) -> str | None:
    """`url` with the path of `protocol`, where it has none."""
    if url is None or protocol is None:
        return url
    from nel.config.services import SUFFIXES, protocol_of

    found = protocol_of(url)
    if found is None:
        return url.rstrip("/") + next(path for path, name in SUFFIXES.items() if name == protocol)
    if found != protocol:
        raise click.UsageError(f"--model-url ends in the path of {found}, but --protocol is {protocol}.")
    return url


def _flags_as_overrides(given: Mapping[str, Any], url: str | None, env: Mapping[str, str]) -> Iterator[str]:
    if given["api_key"] is None and url is not None:
        name = api_key_variable(url, env)
        if name is not None:
            yield f"services.model.api_key=${{{name}}}"
        elif any(env.get(other) for other in BY_DOMAIN):
            yield "services.model.api_key=null"
    for index in range(len(given["bench"])):
        for name in ("max_concurrent", "shuffle_seed"):
            if given[name] is not None:
                yield f"benchmarks[{index}].{name}={given[name]}"
