"""`-O key=value`: single values of a config, given on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from nel.config.compose import KEEPS_NULL
from nel.config.positions import ConfigPath, Node, Place, parse_path, read_value, show_path, step_into
from nel.core.errors import ConfigError

_READ_BEFORE = ("defaults", "_base_")


def apply_overrides(root: Node, overrides: Sequence[str]) -> Node:
    """The config with each `key=value` put in, in order; what is set knows that it came from the command line."""
    for text in overrides:
        path, value = parse_override(text)
        root = _put(root, path, value, ())
    return root


def parse_override(text: str) -> tuple[ConfigPath, Node]:
    """Path and value of `key.path[0]=<any YAML value>`. An empty value is null, which takes the key away."""
    key, equals, written = text.partition("=")
    key = key.strip()
    place = Place(f"command line -O {key}")
    if not equals:
        raise ConfigError(f"-O {text}: expected key=value", hint="As in -O benchmarks[0].max_problems=5.")
    try:
        path = parse_path(key)
    except ValueError as error:
        raise place.error(str(error)) from None
    if path[0] in _READ_BEFORE:
        raise place.error("is read before overrides; change it in the file")
    return path, read_value(written, place)


def _put(node: Node, path: ConfigPath, value: Node, walked: ConfigPath) -> Node:
    try:
        step = step_into(node, path[0])
    except ValueError as error:
        raise value.place.error(f"{show_path(walked)} {error}" if walked else str(error)) from None
    here = (*walked, step)
    if isinstance(step, int):
        items = list(node.value)
        items[step] = value if len(path) == 1 else _put(items[step], path[1:], value, here)
        return Node(items, node.place)
    children = dict(node.value)
    known = children.get(step)
    if len(path) > 1:
        if known is None or known.value is None:
            _refuse_index(path[1], value, here)
            known = Node({}, value.place)
        children[step] = _put(known, path[1:], value, here)
    elif value.value is None and step not in KEEPS_NULL:
        children.pop(step, None)
        if known is None:
            children[step] = value  # nothing to take away; the key itself is still checked
    else:
        children[step] = value
    return Node(children, node.place)


def _refuse_index(step: str | int, value: Node, walked: ConfigPath) -> None:
    if isinstance(step, int):
        raise value.place.error(f"{show_path(walked)} is not there, so it has no [{step}]")
