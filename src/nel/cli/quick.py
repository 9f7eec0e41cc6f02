"""Quick mode: a run from flags alone, as `nel eval run` and `nel validate` offer it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from nel.cli.keys import api_key_variable

if TYPE_CHECKING:
    from nel.config.load import LoadedConfig

PROTOCOLS = ("chat_completions", "completions", "responses")


class QuickOptions(TypedDict):
    """What the flags of quick mode give."""

    bench: tuple[str, ...]
    model_url: str | None
    model_id: str | None
    api_key: str | None
    protocol: str | None
    repeats: int | None
    max_problems: int | None
    system_prompt: str | None
    temperature: float | None
    max_tokens: int | None
    dataset: str | None
    max_concurrent: int | None
    shuffle_seed: str | None


_ENDPOINT = (
    click.option("--bench", "-b", multiple=True, metavar="NAME", help="Benchmark: a name of `nel list`, FILE.py[:NAME] or a URI. Repeatable."),
    click.option("--model-url", envvar=["NEL_MODEL_URL", "NEMO_MODEL_URL"], metavar="URL", help="Endpoint, as https://host/v1 or the whole path."),
    click.option("--model-id", envvar=["NEL_MODEL_ID", "NEMO_MODEL_ID"], metavar="ID", help="Model name as sent; may be left out where the endpoint has one model."),
    click.option("--api-key", metavar="KEY", help="Key of the endpoint; better in NEL_API_KEY. Stored in no file."),
    click.option("--protocol", type=click.Choice(PROTOCOLS), help="Wire format, where the URL does not end in its path.  [default: chat_completions]"),
)
