"""From pydantic's list of errors to one `ConfigError` with file, line, key, reason and the nearest valid name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from nel.config.eval_config import EvalConfig
from nel.config.positions import ConfigPath, Node, kind_of, nearest, plain, show_path
from nel.config.schema import model_at
from nel.config.secret_fields import is_secret_path
from nel.core.errors import ConfigError
from nel.core.secrets import redact_text

_MOST_SHOWN = 20
_WHOLE_LINE = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a config."""

    path: ConfigPath
    message: str
    hint: str | None = None


def check(root: Node) -> EvalConfig:
    """The config that the tree holds, or a `ConfigError` with all that is wrong with its keys and values."""
    config, problems = checked(plain(root))
    if config is None:
        raise config_error(root, problems)
    return config


def checked(raw: Any) -> tuple[EvalConfig | None, list[Problem]]:
    """The config that plain values hold, or what is wrong with them."""
    try:
        return EvalConfig.model_validate(raw), []
    except ValidationError as error:
        return None, [_problem(item, raw) for item in error.errors(include_url=False)]


def config_error(root: Node, problems: Sequence[Problem]) -> ConfigError:
    """One error for all `problems`, each with its place; file, line and key are the first one's."""
    problems = sorted(problems, key=lambda problem: nearest(root, problem.path).place.order)
    first = problems[0]
    place = nearest(root, first.path).place
    if len(problems) == 1:
        return place.error(first.message, key=show_path(first.path) or None, hint=first.hint)
    lines = [_line(root, problem) for problem in problems[:_MOST_SHOWN]]
    if more := len(problems) - _MOST_SHOWN:
        lines += [f"  and {more} more"] if more > 0 else []
    error = ConfigError("\n".join([f"{len(problems)} problems in the config:", *lines]))
    error.file, error.line, error.key = place.file, place.line, show_path(first.path)
    return error


def _line(root: Node, problem: Problem) -> str:
    error = nearest(root, problem.path).place.error(problem.message, key=show_path(problem.path) or None)
    hint = f" ({problem.hint.rstrip('.')})" if problem.hint else ""
    return f"  {error.message}{hint}"


def _problem(error: Any, raw: Any) -> Problem:
    path = _path(error["loc"], raw)
    kind, context = error["type"], error.get("ctx", {})
    if kind == "nel":
        return Problem((*path, *context["path"]), context["message"])
    if kind == "extra_forbidden":
        return _unknown_key(path, raw)
    if kind == "missing" and isinstance(path[-1], int):
        return Problem(path[:-1], f"needs more than {path[-1]} items")
    if kind == "missing":
        return Problem(path[:-1], f"`{path[-1]}` is missing")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _bad_type(path, error, context)
    return Problem(path, _reason(path, error, context))


def _path(location: Sequence[str | int], raw: Any) -> ConfigPath:
    """Pydantic's location without the types that it inserts after the place of a union."""
    path: list[str | int] = []
    value, chosen = raw, False
    for step in location:
        if isinstance(value, dict) and not chosen and path and value.get("type") == step:
            chosen = True
            continue
        path.append(step)
        chosen = False
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
    return tuple(path)


def _unknown_key(path: ConfigPath, raw: Any) -> Problem:
    model = model_at(path[:-1], raw)
    known = [] if model is None else [*model.model_fields, *(("defaults", "_base_") if len(path) == 1 else ())]
    near = get_close_matches(str(path[-1]), known, n=1)
    if near:
        return Problem(path, f"unknown key; did you mean `{near[0]}`?")
    if path[-2:-1] == ("generation",):
        return Problem(path, "unknown key", "What NEL has no name for goes into the service's proxy.extra_body.")
    return Problem(path, "unknown key", f"Known keys: {', '.join(known)}." if known else None)


def _bad_type(path: ConfigPath, error: Any, context: Any) -> Problem:
    types = [name.strip(" '") for name in context.get("expected_tags", "").split(",") if name]
    known = f"One of: {', '.join(types)}." if types else None
    if error["type"] == "union_tag_not_found":
        value = error["input"]
        if not isinstance(value, dict):
            return Problem(path, f"expected a map with a `type`, not {_shown(path, value)}")
        return Problem(path, "`type` is missing", _types_of_missing_tag(path, known))
    found = str(context.get("tag"))
    near = get_close_matches(found, types, n=1)
    return Problem((*path, "type"), f"unknown type {found!r}" + (f"; did you mean {near[0]!r}?" if near else ""), known)


def _types_of_missing_tag(path: ConfigPath, known: str | None) -> str | None:
    from nel.config.schema import shape_at, type_of

    shape = shape_at(path)
    names = [name for model in shape.models if (name := type_of(model))] if shape else []
    return known or (f"One of: {', '.join(names)}." if names else None)


_EXPECTED = {
    "model_type": "a map",
    "dict_type": "a map",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}
_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _reason(path: ConfigPath, error: Any, context: Any) -> str:
    kind, value = error["type"], error["input"]
    if kind in _EXPECTED:
        quote = "; put it in quotes" if kind == "string_type" and isinstance(value, int | float) else ""
        return f"expected {_EXPECTED[kind]}, not {_shown(path, value)}{quote}"
    if kind in _LIMITS:
        words, name = _LIMITS[kind]
        return f"must be {words} {context[name]:g}, not {_shown(path, value)}"
    if kind == "literal_error":
        options = [part.strip(" '") for part in context["expected"].replace(" or ", ", ").split(",")]
        near = get_close_matches(str(value), options, n=1)
        tail = f"; did you mean {near[0]!r}?" if near else ""
        return f"{_shown(path, value)} is none of {', '.join(options)}{tail}"
    if kind == "too_short":
        return f"needs at least {context['min_length']}" if context["actual_length"] else "is empty"
    if kind == "string_too_short":
        return "is empty"
    if kind == "too_long":
        return f"takes {context['max_length']}, not {context['actual_length']}"
    message: str = error["msg"]
    return message


def _shown(path: ConfigPath, value: Any) -> str:
    if isinstance(value, dict | list) or value is None:
        return kind_of(value)
    if is_secret_path(path):
        return "this value"
    text = str(value).lower() if isinstance(value, bool) else redact_text(repr(value))
    return text if len(text) <= _WHOLE_LINE else f"{text[:_WHOLE_LINE]}..."
