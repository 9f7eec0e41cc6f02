"""Expansion of a whole config, in two copies: one to run with, and one that may be stored.

The stored copy has every variable put in, except where that would store a secret: there it keeps `${NAME}`, and a
secret that was written out is `[redacted]`. Loading the stored copy with the same environment gives the same config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nel.config.expand import ExpansionError, escape, expand
from nel.config.positions import ConfigPath, Node, Place, leaves, show_path
from nel.core.errors import ConfigError
from nel.core.secrets import REDACTED, is_secret_name, redact_text

API_KEY_VARIABLES = ("NEMO_API_KEY", "NVIDIA_API_KEY")
"""Where a key comes from that is named neither in a config nor by a flag, in this order."""


def is_secret_path(path: ConfigPath) -> bool:
    """Whether the value at `path` is a secret by its name; items of a list have the list's name."""
    names = [step for step in path if isinstance(step, str)]
    return bool(names) and is_secret_name(names[-1]) and names[-3:-1] != ["select", "where"]


@dataclass(slots=True)
class Expanded:
    """A config with its variables put in."""

    tree: Node
    stored: Any
    """As plain values, without secrets."""
    secrets: list[str] = field(default_factory=list)
    """The secret values that were met, each once."""


def expand_tree(root: Node, env: Mapping[str, str]) -> Expanded:
    """Both copies of `root`; `ConfigError` names the line of a variable that is not set."""
    expanded = Expanded(root, None)
    expanded.tree, expanded.stored = _expand(root, (), env, expanded.secrets)
    expanded.secrets[:] = dict.fromkeys(secret for secret in expanded.secrets if secret)
    return expanded


def _expand(node: Node, path: ConfigPath, env: Mapping[str, str], secrets: list[str]) -> tuple[Node, Any]:
    if isinstance(node.value, dict):
        pairs = {name: _expand(child, (*path, name), env, secrets) for name, child in node.value.items()}
        children = {name: child for name, (child, _) in pairs.items()}
        return Node(children, node.place), {name: stored for name, (_, stored) in pairs.items()}
    if isinstance(node.value, list):
        items = [_expand(child, (*path, index), env, secrets) for index, child in enumerate(node.value)]
        return Node([child for child, _ in items], node.place), [stored for _, stored in items]
    if not isinstance(node.value, str):
        return node, node.value
    used: dict[str, str] = {}
    try:
        text = expand(node.value, env, used)
    except ExpansionError as error:
        raise node.place.error(str(error), key=show_path(path), hint=error.hint) from None
    return Node(text, node.place), _stored(node.value, text, used, env, secrets, named=is_secret_path(path))


def _stored(
    written: str, text: str, used: Mapping[str, str], env: Mapping[str, str], secrets: list[str], *, named: bool
) -> str:
    if not text:
        return ""
    redacted = redact_text(text)
    secret_variables = [value for name, value in used.items() if named or is_secret_name(name)]
    if not named and not secret_variables and redacted == text:
        return escape(text)
    secrets += secret_variables
    secrets += [text] if named else _removed(text, redacted)
    template = _template(written, env) if used else escape(redacted)
    if not named:
        return template
    variables_only = used and "" not in used and "$${" not in written
    return template if variables_only else REDACTED


def _template(written: str, env: Mapping[str, str]) -> str:
    """What was written, with `${NAME}` for each variable that has a value, and literals still escaped."""
    names = {name: f"${{{name}}}" if value else "" for name, value in env.items()}
    return redact_text(expand(written.replace("$${", "$$${"), names))


def _removed(text: str, redacted: str) -> list[str]:
    """The parts of `text` that redaction took out."""
    pattern = "(.+)".join(re.escape(part) for part in redacted.split(REDACTED))
    match = re.fullmatch(pattern, text, re.DOTALL)
    return list(match.groups()) if match else []


def restore_keys(root: Node, env: Mapping[str, str], api_key: str | None) -> Node:
    """The config with `api_key` (or what the environment has in its place) for each service key that was not stored.

    `ConfigError` where a stored config lacks a secret that cannot be had this way.
    """
    for path, node in leaves(root):
        if not (isinstance(node.value, str) and REDACTED in node.value):
            continue
        key = api_key_node(env, api_key)
        if path[0] != "services" or path[-1] != "api_key" or node.value != REDACTED or key is None:
            raise _not_stored(path, node)
        root = _replaced(root, path, key)
    return root


def api_key_node(env: Mapping[str, str], api_key: str | None) -> Node | None:
    """The key that a flag gives, else the variable that holds one, else None."""
    if api_key is not None:
        return Node(escape(api_key), Place("command line --api-key"))
    name = next((name for name in API_KEY_VARIABLES if env.get(name)), None)
    return Node(f"${{{name}}}", Place(f"environment {name}")) if name else None


def _not_stored(path: ConfigPath, node: Node) -> ConfigError:
    shown = show_path(path)
    ways = "--api-key, in NEMO_API_KEY, or " if path[-1] == "api_key" else ""
    return node.place.error(
        "a secret that was given in clear is in no file",
        key=shown,
        hint=f"Give it again with {ways}-O '{shown}=${{NAME}}'.",
    )


def _replaced(node: Node, path: ConfigPath, new: Node) -> Node:
    if not path:
        return new
    children: Any = dict(node.value) if isinstance(node.value, dict) else list(node.value)
    children[path[0]] = _replaced(children[path[0]], path[1:], new)
    return Node(children, node.place)
