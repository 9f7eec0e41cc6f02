"""Quick mode: a config from flags alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from nel.config.expand import escape
from nel.config.load import LoadedConfig, load_tree
from nel.config.positions import Node, Place
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
    entries = [
        _map(
            "--bench",
            name=_said(name, "--bench"),
            repeats=_said(repeats, "--repeats"),
            max_problems=_said(max_problems, "--max-problems"),
            dataset=_said(dataset, "--dataset"),
            solver=_solver(system_prompt, temperature, max_tokens),
        )
        for name in ([bench] if isinstance(bench, str) else bench)
    ]
    tree = _map(
        "--bench",
        services=_map("--model-url", model=_service(model_url, model_id, api_key, env)),
        benchmarks=Node(entries, _place("--bench")),
        output=None if output_dir is None else _map("--output-dir", dir=_said(output_dir, "--output-dir")),
    )
    return load_tree(tree, overrides=overrides, env=env, use_defaults=True)


def _service(model_url: str | None, model_id: str | None, api_key: str | None, env: Mapping[str, str]) -> Node:
    url = model_url or env.get("NEMO_MODEL_URL")
    if not url:
        raise UsageError("no model to evaluate", hint="Give --model-url URL, or set NEMO_MODEL_URL.")
    if protocol_of(url) is None:
        url = url.rstrip("/") + next(iter(SUFFIXES))
    return _map(
        "--model-url",
        type=_said("api", "--model-url"),
        url=_said(url, "--model-url"),
        model=_said(model_id or env.get("NEMO_MODEL_ID"), "--model-id"),
        api_key=api_key_node(env, api_key),
    )


def _solver(system_prompt: str | None, temperature: float | None, max_tokens: int | None) -> Node:
    return _map(
        "--bench",
        type=_said("simple", "--bench"),
        service=_said("model", "--bench"),
        system_prompt=_said(system_prompt, "--system-prompt"),
        generation=_map(
            "--bench", temperature=_said(temperature, "--temperature"), max_tokens=_said(max_tokens, "--max-tokens")
        ),
    )


def _place(flag: str) -> Place:
    return Place(f"command line {flag}")


def _said(value: str | float | None, flag: str) -> Node | None:
    """A flag's value, which the shell has put its variables into already."""
    if value is None:
        return None
    return Node(escape(value) if isinstance(value, str) else value, _place(flag))


def _map(flag: str, **children: Node | None) -> Node:
    return Node({name: child for name, child in children.items() if child is not None}, _place(flag))
