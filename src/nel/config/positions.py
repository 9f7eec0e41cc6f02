"""YAML 1.2 as a tree of nodes that remember where they were written.

Everything that happens to a config before it is checked (composition, overrides, references, environment) happens to
this tree, so every value can be refused with the file and line that it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from nel.core.errors import ConfigError

ConfigPath = tuple[str | int, ...]
"""Keys and list indexes from the top of a config."""

_MOST_VALUES = 100_000
_OTHER_VERSION = re.compile(r"^%YAML\s+(?!1\.2\b)(\S+)", re.MULTILINE)
_QUOTE = "Put a text with special characters in quotes, as in -O 'key=\"...\"'."
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key or value was written: a file and a line (1-based), or `command line -O key` without a line."""

    file: str
    line: int | None = None

    def error(self, message: str, *, key: str | None = None, hint: str | None = None) -> ConfigError:
        """The error that names this place, and `key` unless the place says it already."""
        if key and self.file.endswith(f" {key}"):
            key = None
        return ConfigError(message, file=self.file, line=self.line, key=key, hint=hint)

    @property
    def order(self) -> tuple[str, int]:
        """Sorts places by file and line."""
        return self.file, self.line or 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Node:
    """A text, number, truth value or null, or a map or list of nodes. Never changed: what differs is a new node."""

    value: Any
    place: Place
    """Of the key for an entry of a map, of the item for an entry of a list."""
    replaces: bool = False
    """Put in the place of what was there, rather than merged with it; of a null: it took something away."""

    @property
    def kind(self) -> str:
        """What a message calls the value."""
        return kind_of(self.value)

    def at(self, place: Place) -> Node:
        """The same value, written elsewhere."""
        return replace(self, place=place)


def kind_of(value: Any) -> str:
    """The word for a plain or node value in a message: a map, a list, text, a number, true or false, null."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "a map"


def plain(node: Node) -> Any:
    """The node as plain maps, lists and scalars."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


def node_of(value: Any, place: Place) -> Node:
    """A plain value as nodes that were all written at `place`."""
    if isinstance(value, dict):
        return Node({str(key): node_of(child, place) for key, child in value.items()}, place)
    if isinstance(value, list | tuple):
        return Node([node_of(child, place) for child in value], place)
    return Node(value, place)


def find(node: Node, path: ConfigPath) -> Node | None:
    """The node at `path`, or None."""
    for step in path:
        children: Any = node.value
        keyed = isinstance(children, dict) and step in children
        indexed = isinstance(children, list) and isinstance(step, int) and 0 <= step < len(children)
        if not (keyed or indexed):
            return None
        node = children[step]
    return node


def nearest(node: Node, path: ConfigPath) -> Node:
    """The node at `path`, or at the longest part of it that exists."""
    for end in range(len(path), 0, -1):
        found = find(node, path[:end])
        if found is not None:
            return found
    return node


def leaves(node: Node, path: ConfigPath = ()) -> Iterator[tuple[ConfigPath, Node]]:
    """Every scalar of a tree with its path."""
    if isinstance(node.value, dict):
        for key, child in node.value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(node.value, list):
        for index, child in enumerate(node.value):
            yield from leaves(child, (*path, index))
    else:
        yield path, node


_PART = re.compile(r'(?:^|\.)(?:"([^"]*)"|([^.\[\]"]+))|\[(\d+)\]')


def parse_path(text: str) -> ConfigPath:
    """`services.m.url`, `benchmarks[0].name`, `benchmarks.0.name`, `services."gpt-4.1".url` as keys and indexes.

    A number between dots stays text here: only the value it is applied to says whether it is an index. ValueError where
    the text is no path.
    """
    steps: list[str | int] = []
    end = 0
    for match in _PART.finditer(text):
        if match.start() != end:
            break
        quoted, name, index = match.groups()
        steps.append(int(index) if index is not None else name if quoted is None else quoted)
        end = match.end()
    if end != len(text) or not steps or isinstance(steps[0], int):
        raise ValueError(f"{text!r} is no path to a key (as in benchmarks[0].params.level)")
    return tuple(steps)


def show_path(path: ConfigPath) -> str:
    """A path as `parse_path` reads it."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
            continue
        name = f'"{step}"' if not step or re.search(r'[.\[\]"]', step) else step
        shown += f".{name}" if shown else name
    return shown


def step_into(node: Node, step: str | int) -> str | int:
    """`step` as it applies to `node`: a number between dots is an index where the node is a list.

    ValueError says why it cannot apply.
    """
    value = node.value
    if isinstance(value, list):
        if isinstance(step, str) and not step.isdecimal():
            raise ValueError(f"is a list of {len(value)}; write an index, as in [0], instead of {step!r}")
        index = int(step)
        if index >= len(value):
            raise ValueError(f"has {len(value)} items; [{index}] is out of range")
        return index
    if isinstance(value, dict):
        if isinstance(step, int):
            raise ValueError(f"is a map; write a key instead of [{step}]")  # noqa: TRY004 - a wrong path, not a wrong type
        return step
    raise ValueError(f"is {node.kind} and has nothing under it")


def read_file(path: Path, shown: str | None = None) -> Node:
    """The map that a config file holds; `ConfigError` names file and line."""
    name = shown if shown is not None else str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text ({error.reason} at byte {error.start})", file=name) from None
    except IsADirectoryError:
        raise ConfigError("is a directory, not a config file", file=name) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=name) from None
    return read_map(text, name)


def read_map(text: str, file: str) -> Node:
    """The map that a YAML or JSON text holds."""
    node = read_yaml(text, file)
    if node is None:
        raise ConfigError("is empty", file=file, hint="A config holds at least `services` and `benchmarks`.")
    if not isinstance(node.value, dict):
        raise node.place.error(f"a config is a map of keys; this is {node.kind}")
    return node


def read_yaml(text: str, file: str) -> Node | None:
    """Any one YAML value, or None where the text holds none."""
    root = _compose(text, Place(file), lines=True)
    return None if root is None else _Builder(file).build(root)


def read_value(text: str, place: Place) -> Node:
    """The YAML value that was written at `place`, outside any file; an empty text is null.

    What YAML would drop as a comment is refused: here it is part of a text that lacks its quotes.
    """
    root = _compose(text, place, lines=False)
    if text.strip() and (root is None or _end(root) < len(text.rstrip())):
        raise place.error("what follows `#` would be lost as a comment", hint=_QUOTE)
    return Node(None, place) if root is None else _Builder(place.file, place).build(root)


def _end(raw: Any) -> int:
    """Where the last value of ruamel's node ends; a block map or list has no end of its own."""
    if isinstance(raw.value, list) and raw.value and not raw.flow_style:
        last = raw.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(raw.end_mark.index)


def _compose(text: str, place: Place, *, lines: bool) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    if version := _OTHER_VERSION.search(text):
        at = Place(place.file, text.count("\n", 0, version.start()) + 1) if lines else place
        raise at.error(f"YAML {version[1]} is not read; configs are YAML 1.2")
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    hint = None if lines else _QUOTE
    try:
        return yaml.compose(StringIO(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Place(place.file, mark.line + 1) if lines and mark else place
        said = ", ".join(part for part in (error.context, error.problem) if part)
        if "\\t" in said:
            hint = "Indent with spaces, not tabs."
        raise at.error(f"not YAML: {said}", hint=hint) from None
    except ReaderError as error:
        raise place.error(f"not YAML: character {error.character!r} is not allowed") from None
    except YAMLError as error:
        raise place.error(f"not YAML: {error}", hint=hint) from None
    except RecursionError:
        raise place.error("not YAML: nested too deeply") from None


class _Builder:
    """Turns ruamel's node graph into a tree: aliases and merge keys resolved, duplicates and foreign tags refused."""

    def __init__(self, file: str, place: Place | None = None) -> None:
        self._file = file
        self._place = place
        self._open: set[int] = set()
        self._count = 0

    def build(self, raw: Any, place: Place | None = None) -> Node:
        at = place or self._at(raw)
        self._count += 1
        if self._count > _MOST_VALUES:
            raise at.error(f"a config of more than {_MOST_VALUES:,} values (aliases that repeat aliases?)")
        if raw.tag not in _KNOWN_TAGS:
            raise at.error(f"unknown tag {raw.tag}", hint="Put a text that begins with `!` in quotes.")
        if isinstance(raw.value, str):
            return Node(self._scalar(raw, at), at)
        if id(raw) in self._open:
            raise at.error("an alias stands inside the value that it names")
        self._open.add(id(raw))
        value: Any = self._map(raw) if raw.tag == f"{_TAG}map" else [self.build(item) for item in raw.value]
        self._open.discard(id(raw))
        return Node(value, at)

    def _at(self, raw: Any) -> Place:
        return self._place or Place(self._file, raw.start_mark.line + 1)

    def _map(self, raw: Any) -> dict[str, Node]:
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for raw_key, raw_value in raw.value:
            at = self._at(raw_key)
            if raw_key.tag == f"{_TAG}merge":
                for inherited, node in self._merged(raw_value, at).items():
                    merged.setdefault(inherited, node)
                continue
            if not isinstance(raw_key.value, str):
                raise at.error("a key is text, not a map or a list")
            name = _joined(raw_key.value, at)
            if name in own:
                raise at.error(f"key {name!r} is here for the second time; first at {own[name].place}")
            own[name] = self.build(raw_value, at)
        return {**merged, **own} if merged else own

    def _merged(self, raw: Any, at: Place) -> dict[str, Node]:
        sources = raw.value if raw.tag == f"{_TAG}seq" else [raw]
        maps = [self.build(source) for source in sources]
        if not all(isinstance(node.value, dict) for node in maps):
            raise at.error("`<<` merges a map, or a list of maps")
        taken: dict[str, Node] = {}
        for node in maps:
            for name, child in node.value.items():
                taken.setdefault(name, child)
        return taken

    def _scalar(self, raw: Any, at: Place) -> Any:
        text = _joined(raw.value, at)
        try:
            return _SCALARS.get(raw.tag.removeprefix(_TAG), str)(text)
        except (ValueError, KeyError):
            raise at.error(f"{text!r} is no {raw.tag.removeprefix(_TAG)}") from None


def _joined(text: str, at: Place) -> str:
    """The text with JSON's pairs of escapes joined to one character."""
    if not _SURROGATE.search(text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise at.error("a text holds half a character (an escape that lacks its second half)") from None


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2], 10)
    return sign * int(digits[2:] if base != 10 else digits, base)


def _number(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


_SCALARS: dict[str, Any] = {
    "null": lambda _text: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": _integer,
    "float": _number,
}
# A date stays text, as in JSON: no config key is a date, and a plug-in's setting should not become one.
_KNOWN_TAGS = {
    _TAG + name for name in ("str", "null", "bool", "int", "float", "timestamp", "value", "merge", "map", "seq")
}
