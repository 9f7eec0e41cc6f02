"""The user's defaults: `$XDG_CONFIG_HOME/nel/config.yaml`, the lowest layer of every config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Any

from nel.config.compose import user_config_dir
from nel.config.positions import (
    ConfigPath,
    Node,
    Place,
    find,
    leaves,
    parse_path,
    plain,
    read_file,
    read_value,
    show_path,
)
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


def get_default(key: str, env: Mapping[str, str]) -> Any:
    """The user's default for `key`, as a plain value; `UsageError` where there is none."""
    tree = user_defaults(env)
    found = find(tree, _path(key))
    if found is None:
        raise _not_set(key, tree, env)
    return plain(found)


def set_default(key: str, text: str, env: Mapping[str, str]) -> Path:
    """Store the YAML value `text` as the user's default for `key`; the file's comments stay. Returns the file.

    `ConfigError` where no config has such a key or the value is wrong for it.
    """
    path = _path(key)
    node = read_value(text, Place(f"nel config set {key}"))
    if node.value is None:
        raise node.place.error("no value", hint=f"`nel config unset {key}` removes a default.")
    _check_key(path, node)
    with _Editing(defaults_path(env)) as data:
        _put(data, path, plain(node))
        _check_value(path, data, node.place)
    return defaults_path(env)


def unset_default(key: str, env: Mapping[str, str]) -> Path:
    """Remove the user's default for `key`, and maps that are then empty. Returns the file."""
    path, tree = _path(key), user_defaults(env)
    if find(tree, path) is None:
        raise _not_set(key, tree, env)
    with _Editing(defaults_path(env)) as data:
        _remove(data, path)
    return defaults_path(env)


def _path(key: str) -> ConfigPath:
    try:
        path = parse_path(key)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if any(isinstance(step, int) for step in path):
        raise UsageError(f"{key}: a default is set for a key, not for an item of a list; set the whole list")
    return path


def _not_set(key: str, tree: Node, env: Mapping[str, str]) -> UsageError:
    known = [show_path(path) for path in _keys(tree)]
    near = get_close_matches(key, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Set: {', '.join(known)}." if known else None
    return UsageError(f"no default is set for {key} in {defaults_path(env)}", hint=hint)


def _keys(tree: Node) -> Iterator[ConfigPath]:
    seen = dict.fromkeys(tuple(step for step in path if isinstance(step, str)) for path, _ in leaves(tree))
    return iter(seen)


def _check_key(path: ConfigPath, node: Node) -> None:
    from nel.config.eval_config import EvalConfig
    from nel.config.schema import shape_at

    top = str(path[0])
    known = [name for name in EvalConfig.model_fields if name != "benchmarks"]
    if top in ("benchmarks", "defaults", "_base_"):
        raise node.place.error(
            f"`{top}` has no default", hint=f"Keys: {', '.join(known)}, and variables such as _name."
        )
    if top.startswith("_") or shape_at(path) is not None:
        return
    end = next(end for end in range(1, len(path) + 1) if shape_at(path[:end]) is None)
    if end > 1:
        shape = shape_at(path[: end - 1])
        known = sorted({name for model in shape.models for name in model.model_fields}) if shape else []
    near = get_close_matches(str(path[end - 1]), known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Keys: {', '.join(known)}." if known else None
    raise node.place.error(f"no config has the key {show_path(path[:end])}", hint=hint)


def _check_value(path: ConfigPath, data: Mapping[str, Any], place: Place) -> None:
    """Refuse a value that is wrong wherever the rest of its config may come from."""
    from nel.config.validate import checked

    stand_in = {"name": "any", "solver": {"type": "custom", "class_path": "any"}}
    raw = {name: value for name, value in data.items() if not name.startswith("_")}
    _config, problems = checked({**raw, "benchmarks": [stand_in]})
    for problem in problems:
        held = isinstance(_at(data, problem.path), str) and "${" in _at(data, problem.path)
        if problem.path[: len(path)] == path and not held and "is missing" not in problem.message:
            raise place.error(problem.message, hint=problem.hint)


def _at(data: Any, path: ConfigPath) -> Any:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _put(data: Any, path: ConfigPath, value: Any) -> None:
    for step in path[:-1]:
        if not isinstance(data.get(step), dict):
            data[step] = {}
        data = data[step]
    data[path[-1]] = value


def _remove(data: Any, path: ConfigPath) -> None:
    if len(path) > 1:
        _remove(data[path[0]], path[1:])
        if data[path[0]]:
            return
    del data[path[0]]


class _Editing:
    """The file's content to change; what is left at the end is written, with its comments, unless an error was raised.

    A file that holds a secret is readable by its owner alone.
    """

    def __init__(self, path: Path) -> None:
        from ruamel.yaml import YAML

        self._path = path
        self._yaml = YAML(typ="rt", pure=True)
        self._yaml.version = (1, 2)
        self._yaml.width = 2**16
        self._data: Any = {}

    def __enter__(self) -> Any:
        if self._path.is_file():
            self._data = self._yaml.load(self._path.read_text(encoding="utf-8-sig")) or {}
        return self._data

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self._write()

    def _write(self) -> None:
        from nel.config.positions import read_yaml
        from nel.config.secret_fields import is_secret_path
        from nel.core.disk import write_atomic

        stream = StringIO()
        if self._data:
            self._yaml.dump(self._data, stream)
        text = stream.getvalue().removeprefix("%YAML 1.2\n---\n")
        tree = read_yaml(text, str(self._path))
        secret = tree is not None and any(is_secret_path(path) for path, _ in leaves(tree))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path, text, mode=0o600 if secret else None)
        except OSError as failure:
            raise ConfigError(f"cannot be written: {failure.strerror}", file=self._path) from None
