"""The user's defaults: `$XDG_CONFIG_HOME/nel/config.yaml`, the lowest layer of every config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Any

from nel.config.compose import user_config_dir
from nel.config.positions import ConfigPath, Node, Place, find, leaves, parse_path, plain, read_file, read_value, show_path
from nel.core.errors import ConfigError, UsageError


def defaults_path(env: Mapping[str, str]) -> Path:
    """Where the user's defaults are."""
    return user_config_dir(env) / "config.yaml"


def user_defaults(env: Mapping[str, str]) -> Node:
    """The user's defaults with their places; an empty map where there are none."""
    path = defaults_path(env)
    if not path.is_file() or not path.read_text(encoding="utf-8-sig").strip():
        return Node({}, Place(str(path)))
    tree = read_file(path)
    for name in ("defaults", "_base_", "benchmarks"):
        if name in tree.value:
            raise tree.value[name].place.error("the user's defaults cannot hold this key", key=name)
    return tree
