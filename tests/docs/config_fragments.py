"""A YAML block of a page as a whole config: what a page leaves out for brevity is put in, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from nel.config.load import dump_yaml, load_config
from nel.config.planning import plan_check

SERVICE = {"type": "api", "url": "http://localhost:8000/v1/chat/completions", "model": "any"}


def check_config(work: Path, title: str | None, text: str, env: dict[str, str]) -> None:
    """`ConfigError` where the block is no config, says something wrong, or something that is not available yet."""
    written = YAML(typ="safe", pure=True).load(text)
    if title and title.startswith("conf/"):
        return  # a part of a group: it is checked with the config that names it
    if title and (written.keys() >= {"services", "benchmarks"} or written.keys() & {"defaults", "_base_"}):
        loaded = load_config(work / title, env=env)
    else:
        loaded = load_config(dump_yaml(completed(written)), env=env)
    plan_check(loaded)


def completed(fragment: Any) -> dict[str, Any]:
    """The fragment with a benchmark, and with the services that its benchmarks name, where it has none."""
    config = {"benchmarks": fragment} if isinstance(fragment, list) else dict(fragment)
    services = config.setdefault("services", {})
    entries = config.setdefault(
        "benchmarks",
        [{"name": "gsm8k", "solver": {"type": "simple", "service": name}} for name in services or ["model"]],
    )
    for entry in entries:
        solver = entry.setdefault("solver", {"type": "simple", "service": next(iter(services), "model")})
        if "service" in solver:
            services.setdefault(solver["service"], SERVICE)
    return config
