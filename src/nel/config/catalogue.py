"""The table of every config key: what it is for, its default, and whether it takes effect in this version.

Written from the schemas, so that `docs/config.md` cannot say anything else than what the code does.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from nel.config.base import Also, Model
from nel.config.schema import Row, all_models, parents, rows, shape_of, type_of

_STATUS = {"effect": "takes effect", "mapped": "mapped", "later": "refused"}
_WORDS: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_FORMS = {"string": "text", "integer": "whole number", "array": "list", "object": "map"}


def key_tables() -> str:
    """One markdown table for each schema, in the order in which a config meets them; what several share stands once."""
    shown: list[type[Model]] = []
    for model in all_models():
        shown += [item for item in (*reversed(parents(model)), model) if item not in shown]
    return "\n".join(_table(model) for model in shown)


def _table(model: type[Model]) -> str:
    lines = [f"### {title(model)}", "", (model.__doc__ or "").strip().splitlines()[0]]
    if model.later:
        lines += ["", f"Not available yet: {model.later} are refused at planning."]
    if above := parents(model):
        lines += ["", f"It also has the keys of *{title(above[0])}*."]
    own = [row for row in rows(model) if row.name in model.__annotations__]
    if own:
        lines += ["", "| key | value | default | in this version |", "|---|---|---|---|", *map(_line, own)]
    return "\n".join([*lines, ""])


def title(model: type[Model]) -> str:
    """What a schema is called in the docs."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__).lower()
    kind = type_of(model)
    return f"{words} (`type: {kind}`)" if kind else words


def _line(row: Row) -> str:
    note = f"{_STATUS[row.status]}: {row.field.description}"
    cells = (f"`{row.name}`", _value(row.field), _default(row.field), note)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _value(field: FieldInfo) -> str:
    words = [*_also(field.metadata), *_words(field.annotation)]
    return " or ".join(dict.fromkeys(words))


def _words(annotation: Any) -> list[str]:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return [*_also(parts[1:]), *_words(parts[0])]
    if shape_of(annotation).models:
        return ["map"]
    if origin in (Union, UnionType):
        return [word for part in parts if part is not NoneType for word in _words(part)]
    if origin is Literal:
        return [f"`{part}`" for part in parts]
    return [{list: "list", dict: "map", tuple: f"list of {len(parts)}"}.get(origin) or _WORDS[annotation]]


def _also(metadata: Iterable[Any]) -> list[str]:
    forms = [item.form for item in metadata if isinstance(item, Also)]
    return [_FORMS[form["type"]] if "type" in form else f"`{json.dumps(form['const'])}`" for form in forms]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Model):
        kind = type_of(type(value))
        return f"`type: {kind}`" if kind else ""
    return "" if value is None or value in ([], {}) else f"`{json.dumps(value)}`"


def _rewrite(page: str) -> None:
    begin, end = "<!-- keys: begin -->\n", "<!-- keys: end -->"
    text = Path(page).read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    Path(page).write_text(f"{before}{begin}{key_tables()}{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    _rewrite(sys.argv[1])
