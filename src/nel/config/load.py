"""`load_config`: from a file, or its text, to a checked config that knows where each value was written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from nel.config.checks import check_together, warnings_of
from nel.config.compose import Composer, merge, settle
from nel.config.defaults import user_defaults
from nel.config.eval_config import EvalConfig
from nel.config.overrides import apply_overrides
from nel.config.positions import ConfigPath, Node, nearest, read_map, show_path
from nel.config.references import resolve_references
from nel.config.secret_fields import expand_tree, restore_keys
from nel.config.validate import check, config_error
from nel.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A checked config, and where it came from."""

    config: EvalConfig
    composed: dict[str, Any]
    """What was composed, with its variables put in, as plain values; a secret stays `${NAME}`, or is `[redacted]`."""
    secrets: list[str]
    """The secret values that the config holds, for a `Redactor`."""
    warnings: list[str]
    """What is allowed but probably not meant, each with its place."""
    files: list[Path]
    """The files that it was composed of."""
    tree: Node
    """Every value with its place."""

    def place(self, path: ConfigPath) -> tuple[str, int | None]:
        """File and line of the value at `path`, or of the nearest one around it.

        The file is `command line -O key`, without a line, for what was set there.
        """
        place = nearest(self.tree, path).place
        return place.file, place.line

    def error(self, path: ConfigPath, message: str, hint: str | None = None) -> ConfigError:
        """The error that refuses the value at `path`, with its file and line."""
        return nearest(self.tree, path).place.error(message, key=show_path(path) or None, hint=hint)

    def to_yaml(self) -> str:
        """`composed` as YAML, for the run directory; loading it again gives the same config."""
        return dump_yaml(self.composed)


def load_config(
    source: Path | str,
    *,
    overrides: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    api_key: str | None = None,
    use_defaults: bool = True,
) -> LoadedConfig:
    """The checked config of a file, or of a text with several lines or in braces.

    In this order: composition, `overrides` (`key.path[0]=<any YAML value>`), references to itself, variables of `env`
    (by default the process's environment), checks. `use_defaults` puts it on top of the user's defaults; a config that
    a run directory stored was put on top of them already. `api_key` is the key of services whose own was not stored.
    `ConfigError` lists all that is wrong, with file and line.
    """
    env = os.environ if env is None else env
    composer = Composer(env)
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        tree = composer.body(read_map(source, "config"), Path.cwd())
    else:
        tree = composer.file(Path(source))
    return load_tree(
        tree, overrides=overrides, env=env, api_key=api_key, use_defaults=use_defaults, files=composer.files
    )


def load_tree(
    tree: Node,
    *,
    overrides: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    api_key: str | None = None,
    use_defaults: bool = False,
    files: Sequence[Path] = (),
) -> LoadedConfig:
    """What `load_config` does after composition."""
    env = os.environ if env is None else env
    if use_defaults:
        tree = merge(user_defaults(env), tree)
    tree = restore_keys(apply_overrides(settle(tree), overrides), env, api_key)
    tree = _without_variables(resolve_references(tree))
    expanded = expand_tree(tree, env)
    config = check(expanded.tree)
    if problems := check_together(config):
        raise config_error(expanded.tree, problems)
    return LoadedConfig(
        config=config,
        composed=expanded.stored,
        secrets=expanded.secrets,
        warnings=[str(config_error(expanded.tree, [problem])) for problem in warnings_of(config)],
        files=list(files),
        tree=expanded.tree,
    )


def _without_variables(tree: Node) -> Node:
    """The config without the user's own top-level variables, which references have used by now."""
    return Node({name: child for name, child in tree.value.items() if not name.startswith("_")}, tree.place)


_ESCAPED = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def dump_yaml(value: Any) -> str:
    """A plain value as YAML 1.2 that reads back as the same value."""
    from ruamel.yaml import YAML, ScalarNode
    from ruamel.yaml.representer import SafeRepresenter

    class Representer(SafeRepresenter):
        """Quotes texts with characters that a plain YAML text would lose."""

        def text(self, text: str) -> ScalarNode:
            style = '"' if _ESCAPED.search(text) else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Representer.add_representer(str, Representer.text)
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = Representer
    yaml.version = (1, 2)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 2**16
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().removeprefix("%YAML 1.2\n---\n")
