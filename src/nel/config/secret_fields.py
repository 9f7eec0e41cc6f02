"""Expansion of a whole config, in two copies: one to run with, and one that may be stored.

The stored copy has every variable put in, except where that would store a secret: there it keeps `${NAME}`, and a
secret that was written out is `[redacted]`. Loading the stored copy with the same environment gives the same config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nel.config.expand import ExpansionError, escape, expand
from nel.config.positions import ConfigPath, Node, Place, leaves, show_path
from nel.core.errors import ConfigError
from nel.core.secrets import REDACTED, Redactor, is_secret_name, redact_text

API_KEY_VARIABLES = ("NEL_API_KEY", "NEMO_API_KEY")
"""Where a key comes from that is named neither in a config nor by a flag, in this order."""


def is_secret_path(path: ConfigPath) -> bool:
    """Whether the value at `path` is a secret by its name; items of a list have the list's name."""
    names = [step for step in path if isinstance(step, str)]
    return bool(names) and is_secret_name(names[-1]) and names[-3:-1] != ["select", "where"]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A config with its variables put in."""

    tree: Node
    stored: Any
    """As plain values, without secrets."""
    secrets: list[str]
    """The secret values that were met, each once."""


def expand_tree(root: Node, env: Mapping[str, str]) -> Expanded:
    """Both copies of `root`; `ConfigError` names the line of a variable that is not set."""
    writer = _Writer(env)
    tree = writer.expand(root, ())
    secrets = list(dict.fromkeys(secret for secret in writer.secrets if secret))
    stored = Redactor(secrets).value(writer.store(root, tree, ()))
    return Expanded(tree, stored, secrets)


class _Writer:
    """Goes through a config twice: what is a secret is known in full only after the first time."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.secrets: list[str] = []
        self._env = env
        self._secret_variables: set[str] = set()

    def expand(self, node: Node, path: ConfigPath) -> Node:
        if isinstance(node.value, dict):
            return Node({name: self.expand(child, (*path, name)) for name, child in node.value.items()}, node.place)
        if isinstance(node.value, list):
            return Node([self.expand(child, (*path, index)) for index, child in enumerate(node.value)], node.place)
        if not isinstance(node.value, str):
            return node
        used: dict[str, str] = {}
        try:
            text = expand(node.value, self._env, used)
        except ExpansionError as error:
            raise node.place.error(str(error), key=show_path(path), hint=error.hint) from None
        named = is_secret_path(path)
        secret = {name: value for name, value in used.items() if named or is_secret_name(name)}
        self._secret_variables |= secret.keys()
        self.secrets += [*secret.values(), *([text] if named else _values(_removed(text, redact_text(text))))]
        return Node(text, node.place)

    def store(self, written: Node, expanded: Node, path: ConfigPath) -> Any:
        if isinstance(written.value, dict):
            return {
                name: self.store(child, expanded.value[name], (*path, name)) for name, child in written.value.items()
            }
        if isinstance(written.value, list):
            pairs = zip(written.value, expanded.value, strict=True)
            return [self.store(child, other, (*path, index)) for index, (child, other) in enumerate(pairs)]
        if not isinstance(written.value, str) or not expanded.value:
            return expanded.value
        return self._text(written.value, expanded.value, named=is_secret_path(path))

    def _text(self, written: str, text: str, *, named: bool) -> str:
        used: dict[str, str] = {}
        expand(written, self._env, used)
        redacted = redact_text(text)
        if named:
            return self._template(written) if used and "" not in used and "$${" not in written else REDACTED
        if self._secret_variables.isdisjoint(used.keys() - {""}) and (redacted == text or not used):
            return escape(redacted)
        return self._template(written)

    def _template(self, written: str) -> str:
        """What was written, with `${NAME}` for each variable that has a value, and literals still escaped."""
        names = {name: f"${{{name}}}" if value else "" for name, value in self._env.items()}
        template = expand(written.replace("$${", "$$${"), names)
        redacted = redact_text(template)
        return template if all(map(_is_variable, _removed(template, redacted))) else redacted


def _values(parts: list[str]) -> list[str]:
    """Each part, and the password alone of one that also names a user."""
    return [value for part in parts for value in (part, part.rpartition(":")[2])]


def _is_variable(text: str) -> bool:
    """Whether a part that looks like a credential is a variable, with at most a user name before it."""
    user, colon, rest = re.sub(r"\$\{\w+\}", "", text).partition(":")
    return not rest and (bool(colon) or not user)


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
    ways = "--api-key, in NEL_API_KEY, or " if path[-1] == "api_key" else ""
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
