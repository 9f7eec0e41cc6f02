"""Composition: one config out of several files.

`defaults` lists what a file is put on top of, from the lowest to the highest: `group/name` is the file
`conf/<group>/<name>.yaml`, placed under the group's key; `_base_: name` is another whole config; `_self_` is the file
itself, which otherwise comes last. Maps are merged key by key, everything else is replaced, and null takes a key away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from nel.config.positions import Node, Place, plain, read_file

GROUP_KEYS = {"clusters": "cluster"}
"""Groups whose key has another name."""

KEEPS_NULL = frozenset({"exec_server_port", "shuffle_seed"})
"""Keys whose null is a value of its own, other than the default: over another value it is put, not taken away."""

_PACKAGED = Path(__file__).parent / "conf"
_ENDINGS = (".yaml", ".yml", ".json")


def merge(base: Node, over: Node) -> Node:
    """`over` on top of `base`: maps merge, lists and scalars replace, null takes away what `base` has.

    Neither is changed, and merging is associative: what a null took away stays so below whatever comes later.
    """
    if over.value is None:
        return replace(over, replaces=over.replaces or base.replaces or base.value is not None)
    if not isinstance(over.value, dict) or over.replaces:
        return over
    if not isinstance(base.value, dict):
        return replace(over, replaces=True)
    merged: dict[str, Node] = dict(base.value)
    for name, child in over.value.items():
        merged[name] = merge(merged[name], child) if name in merged else child
    return Node(merged, over.place, base.replaces)


def settle(node: Node) -> Node:
    """The tree without the keys that a null took away."""
    if isinstance(node.value, list):
        return Node([settle(child) for child in node.value], node.place)
    if not isinstance(node.value, dict):
        return Node(node.value, node.place)
    kept = {
        name: settle(child)
        for name, child in node.value.items()
        if child.value is not None or not child.replaces or name in KEEPS_NULL
    }
    return Node(kept, node.place)


def user_config_dir(env: Mapping[str, str], tool: str = "nel") -> Path:
    """`$XDG_CONFIG_HOME/<tool>`, by default `~/.config/<tool>`."""
    home = env.get("XDG_CONFIG_HOME")
    return Path(home, tool) if home else Path(env.get("HOME") or Path.home(), ".config", tool)


def compose_config(path: str | Path, *, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The config at `path` with everything it is composed of and its references to itself resolved, as a plain map.

    `${VAR}` stays as written. `env` says where the user's groups are (by default the process's environment).
    """
    from nel.config.references import resolve_references

    composer = Composer(os.environ if env is None else env)
    tree = plain(resolve_references(settle(composer.file(Path(path)))))
    return tree if isinstance(tree, dict) else {}


class Composer:
    """Reads a config and all that it is composed of; each file is read once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.files: list[Path] = []
        """The files that were read, in the order of reading."""
        self._user_dirs = [user_config_dir(env) / "conf", user_config_dir(env, "nemo-evaluator") / "conf", _PACKAGED]
        self._done: dict[tuple[Path, str | None], Node] = {}
        self._open: list[Path] = []

    def file(self, path: Path, *, group: str | None = None, at: Place | None = None) -> Node:
        """The composed file, below its group's key where it belongs to one."""
        real = path.resolve()
        if real in self._open:
            chain = " -> ".join(_short(item) for item in [*self._open[self._open.index(real) :], real])
            raise (at or Place(str(path))).error(f"configs that build on each other in a circle: {chain}")
        if (real, group) not in self._done:
            self._open.append(real)
            body = read_file(path)
            self.files.append(path)
            if group is not None:
                self._refuse_wrapped(body, group)
            self._done[real, group] = self.body(body, path.parent, group)
            self._open.pop()
        return self._done[real, group]

    def body(self, body: Node, folder: Path, group: str | None = None) -> Node:
        """A config whose text was read already; `folder` is what its relative names start from."""
        own = dict(body.value)
        entries = [("base", item) for item in _items(own.pop("_base_", None))]
        entries += [_entry(item) for item in _listed(own.pop("defaults", None))]
        here = Node(own, body.place)
        here = here if group is None else Node({group: here}, body.place)
        if all(kind != "self" for kind, _ in entries):
            entries.append(("self", here))
        elif sum(kind == "self" for kind, _ in entries) > 1:
            raise body.value["defaults"].place.error("`_self_` is in `defaults` twice")
        tree = Node({}, body.place)
        for kind, item in entries:
            tree = merge(tree, here if kind == "self" else self._load(kind, item, folder))
        return tree

    def _load(self, kind: str, item: Node, folder: Path) -> Node:
        name = item.value
        if not isinstance(name, str) or not name:
            raise item.place.error(f"expected the name of a config, not {item.kind}")
        if kind == "base":
            return self.file(self._find_base(name, folder, item.place), at=item.place)
        group, _, rest = name.partition("/")
        return self.file(
            self._find_group(group, rest, folder, item.place), group=GROUP_KEYS.get(group, group), at=item.place
        )

    def _find_base(self, name: str, folder: Path, at: Place) -> Path:
        folders = [*self._beside(folder), *self._conf_dirs(folder)]
        return _find(Path(name).expanduser(), folders, at, f"base config {name!r}")

    def _find_group(self, group: str, name: str, folder: Path, at: Place) -> Path:
        if not name:
            raise at.error(
                f"{group!r} is no entry of `defaults`",
                hint="Write group/name, `_self_`, or `_base_: name` for a config.",
            )
        folders = [directory / group for directory in self._conf_dirs(folder)]
        return _find(Path(name), folders, at, f"{group}/{name}")

    def _conf_dirs(self, folder: Path) -> list[Path]:
        return [*(path / "conf" for path in self._beside(folder)), *self._user_dirs]

    def _beside(self, folder: Path) -> list[Path]:
        """The folder of the config that names another one, then those of the configs that led to it."""
        return list(dict.fromkeys([folder, *(path.parent for path in reversed(self._open))]))

    def _refuse_wrapped(self, body: Node, group: str) -> None:
        if list(body.value) == [group]:
            raise body.value[group].place.error(
                f"the content of `{group}` comes without the key `{group}` in a file of that group"
            )


def _items(node: Node | None) -> list[Node]:
    if node is None or node.value is None:
        return []
    return list(node.value) if isinstance(node.value, list) else [node]


def _listed(node: Node | None) -> list[Node]:
    if node is None or node.value is None:
        return []
    if not isinstance(node.value, list):
        raise node.place.error(f"`defaults` is a list of configs, not {node.kind}")
    return list(node.value)


def _entry(item: Node) -> tuple[str, Node]:
    if item.value == "_self_":
        return "self", item
    if isinstance(item.value, dict):
        if list(item.value) != ["_base_"]:
            raise item.place.error("expected group/name, `_self_`, or `_base_: name` with nothing beside it")
        return "base", item.value["_base_"]
    return "group", item


def _find(name: Path, folders: Iterable[Path], at: Place, what: str) -> Path:
    searched = [folder / name for folder in folders]  # an absolute name stays as it is
    for path in searched:
        for candidate in (path, *(path.with_name(path.name + ending) for ending in _ENDINGS)):
            if candidate.is_file():
                return candidate
    near = get_close_matches(name.name, {item.stem for path in searched for item in _siblings(path)}, n=1)
    raise at.error(
        f"{what} is not there" + (f"; did you mean {near[0]!r}?" if near else ""),
        hint="Searched: " + ", ".join(dict.fromkeys(str(path.parent) for path in searched)) + ".",
    )


def _siblings(path: Path) -> list[Path]:
    try:
        return [item for item in path.parent.iterdir() if item.suffix in _ENDINGS]
    except OSError:
        return []


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
