"""`${.a.b}`: a config's references to itself."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches

from nel.config.positions import ConfigPath, Node, find, parse_path, show_path, step_into

# `$${` begins a literal; what is between the braces holds no brace, so references inside a default are found too.
_REFERENCE = re.compile(r"\$\$\{|\$\{\.([^{}]*)\}")


def resolve_references(root: Node) -> Node:
    """The tree with every reference replaced: by the value itself where it is the whole text, else by its text.

    `ConfigError` names the line of a reference that leads nowhere, or to itself.
    """
    return _Resolver(root).whole()


class _Resolver:
    def __init__(self, root: Node) -> None:
        self._root = root
        self._done: dict[ConfigPath, Node] = {}
        self._open: list[ConfigPath] = []

    def whole(self) -> Node:
        return self._resolve(self._root, ())

    def _resolve(self, node: Node, path: ConfigPath) -> Node:
        if isinstance(node.value, dict):
            return Node({name: self._resolve(child, (*path, name)) for name, child in node.value.items()}, node.place)
        if isinstance(node.value, list):
            return Node([self._resolve(child, (*path, index)) for index, child in enumerate(node.value)], node.place)
        if not isinstance(node.value, str) or "${." not in node.value:
            return node
        if path not in self._done:
            if path in self._open:
                chain = " -> ".join(show_path(item) for item in [*self._open[self._open.index(path) :], path])
                raise node.place.error(f"references that lead in a circle: {chain}", key=show_path(path))
            self._open.append(path)
            self._done[path] = self._text(node, path)
            self._open.pop()
        return self._done[path]

    def _text(self, node: Node, path: ConfigPath) -> Node:
        match = _REFERENCE.fullmatch(node.value)
        if match and match[1] is not None:
            return self._target(match[1], node, path).at(node.place)

        def text_of(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0]
            value = self._target(found[1], node, path).value
            if value is None or isinstance(value, dict | list):
                what = "null" if value is None else "a map or list"
                raise node.place.error(f"{found[0]} is {what}, which is no part of a text", key=show_path(path))
            return value if isinstance(value, str) else json.dumps(value)

        return Node(_REFERENCE.sub(text_of, node.value), node.place)

    def _target(self, text: str, node: Node, path: ConfigPath) -> Node:
        try:
            steps = parse_path(text)
        except ValueError as error:
            raise node.place.error(f"${{.{text}}}: {error}", key=show_path(path)) from None
        walked: ConfigPath = ()
        target = self._root
        for step in steps:
            try:
                walked = (*walked, step_into(target, step))
            except ValueError as error:
                raise node.place.error(f"${{.{text}}}: {show_path(walked)} {error}", key=show_path(path)) from None
            found = find(target, walked[-1:])
            if found is None:
                near = get_close_matches(str(step), target.value, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else None
                missing = show_path(walked)
                raise node.place.error(f"${{.{text}}}: there is no {missing}", key=show_path(path), hint=hint)
            target = found
            if isinstance(target.value, str):
                target = self._resolve(target, walked)  # a reference may lead through another one
        self._refuse_own_parent(walked, node, path, text)
        return self._resolve(target, walked)

    def _refuse_own_parent(self, walked: ConfigPath, node: Node, path: ConfigPath, text: str) -> None:
        if path[: len(walked)] == walked:
            raise node.place.error(f"${{.{text}}} holds this reference itself", key=show_path(path))
