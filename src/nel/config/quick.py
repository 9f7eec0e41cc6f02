"""Quick mode: a config from flags alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from nel.config.load import LoadedConfig, load_tree
from nel.config.positions import Node, Place, node_of
from nel.config.secret_fields import api_key_node
from nel.config.services import SUFFIXES, protocol_of
from nel.core.errors import UsageError


def quick_config(
    bench: str | Sequence[str],
    model_url: str | None = None,
    model_id: str | None = None,
    api_key: str | None = None,
    *,
    repeats: int | None = None,
    max_problems: int | None = None,
    system_prompt: str | None = None,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
    dataset: str | None = None,
    output_dir: str | None = None,
    overrides: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """The config that evaluates one service, called `model`, on each benchmark of `bench`.

    `/chat/completions` is added to a URL that ends in the path of no protocol. URL and model come from NEMO_MODEL_URL
    and NEMO_MODEL_ID where no flag gives them, the key from NEMO_API_KEY or NVIDIA_API_KEY; a model may be left out.
    `None` is not sent. `UsageError` where there is no URL.
    """
    env = os.environ if env is None else env
    tree = {
        "services": _node({"model": _service(model_url, model_id, api_key, env)}, "services"),
        "benchmarks": _node(
            [
                _without_none(
                    name=_flag(name, "--bench"),
                    repeats=_flag(repeats, "--repeats"),
                    max_problems=_flag(max_problems, "--max-problems"),
                    dataset=_flag(dataset, "--dataset"),
                    solver=_solver(system_prompt, temperature, max_tokens),
                )
                for name in ([bench] if isinstance(bench, str) else bench)
            ],
            "--bench",
        ),
    }
    if output_dir is not None:
        tree["output"] = _node({"dir": _flag(output_dir, "--output-dir")}, "--output-dir")
    return load_tree(Node(tree, Place("command line")), overrides=overrides, env=env, use_defaults=True)


def _service(model_url: str | None, model_id: str | None, api_key: str | None, env: Mapping[str, str]) -> Node:
    url = model_url or env.get("NEMO_MODEL_URL")
    if not url:
        raise UsageError("no model to evaluate", hint="Give --model-url URL, or set NEMO_MODEL_URL.")
    if protocol_of(url) is None:
        url = url.rstrip("/") + next(iter(SUFFIXES))
    return _node(
        _without_none(
            type=_flag("api", "--model-url"),
            url=_flag(url, "--model-url"),
            model=_flag(model_id or env.get("NEMO_MODEL_ID"), "--model-id"),
            api_key=api_key_node(env, api_key),
        ),
        "--model-url",
    )


def _solver(system_prompt: str | None, temperature: float | None, max_tokens: int | None) -> Node:
    generation = _without_none(
        temperature=_flag(temperature, "--temperature"), max_tokens=_flag(max_tokens, "--max-tokens")
    )
    return _node(
        _without_none(
            type=_flag("simple", "--bench"),
            service=_flag("model", "--bench"),
            system_prompt=_flag(system_prompt, "--system-prompt"),
            generation=_node(generation, "--temperature"),
        ),
        "--bench",
    )
