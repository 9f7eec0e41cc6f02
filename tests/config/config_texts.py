"""Configs and loaders that the tests of `nel.config` share."""

import textwrap
from pathlib import Path

from nel.config.load import LoadedConfig, load_config
from nel.core.errors import ConfigError

MINIMAL = """\
services:
  m:
    type: api
    url: https://host/v1/chat/completions
    model: tiny
benchmarks:
  - name: gsm8k
    solver: {type: simple, service: m}
"""

NO_HOME = {"HOME": "/nonexistent"}


def load(text: str, *, env: dict[str, str] | None = None, **options) -> LoadedConfig:
    return load_config(textwrap.dedent(text) + "\n", env={**NO_HOME, **(env or {})}, **options)


def refuse(text: str, **options) -> ConfigError:
    try:
        loaded = load(text, **options)
    except ConfigError as error:
        return error
    raise AssertionError(f"accepted: {loaded.composed}")


def minimal(extra: str = "", **replaced: str) -> str:
    """The minimal config with `extra` after it, and texts replaced."""
    text = MINIMAL
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return text + extra


def write(folder: Path, files: dict[str, str]) -> Path:
    """Writes each file; returns the first one's path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder / next(iter(files))
