"""The schemas as data: which keys a path may have, and the JSON Schema that editors read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from nel.config.base import Model, status_of
from nel.config.eval_config import EvalConfig
from nel.config.positions import ConfigPath


@dataclass(frozen=True, slots=True)
class Shape:
    """What may stand at a place of a config: one of `models` (by its `type`, or the only one), `items`, or a value."""

    models: tuple[type[Model], ...] = ()
    items: Shape | None = None
    """Of a list or map: what each entry may be."""
    is_map: bool = False
    """A map of free keys; without `items`, of anything below them."""

    def model(self, value: Any) -> type[Model] | None:
        """The model that `value` is checked against, by its `type` where there are several."""
        if len(self.models) == 1:
            return self.models[0]
        kind = value.get("type") if isinstance(value, dict) else None
        return next((model for model in self.models if kind is not None and type_of(model) == kind), None)


def type_of(model: type[BaseModel]) -> str | None:
    """The `type` that chooses a model among others."""
    field = model.model_fields.get("type")
    return get_args(field.annotation)[0] if field else None


def shape_of(annotation: Any) -> Shape:
    """What a field's annotation allows."""
    origin = get_origin(annotation)
    if annotation is Any:
        return Shape(is_map=True)
    if origin is Annotated:
        return shape_of(get_args(annotation)[0])
    if origin in (Union, UnionType):
        shapes = [shape_of(part) for part in get_args(annotation)]
        models = tuple(model for shape in shapes for model in shape.models)
        return Shape(models) if models else next((shape for shape in shapes if shape.items), Shape())
    if origin in (list, dict):
        return Shape(items=shape_of(get_args(annotation)[-1]), is_map=origin is dict)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return Shape((annotation,))
    return Shape()


def field_shape(field: FieldInfo) -> Shape:
    """What a field may hold."""
    return shape_of(field.annotation)


ROOT = Shape((EvalConfig,))


def model_at(path: ConfigPath, config: Any) -> type[Model] | None:
    """The model that checks the map at `path` of a plain config, or None where there is none."""
    shape, value = ROOT, config
    for step in path:
        model = shape.model(value)
        if model is not None:
            field = model.model_fields.get(str(step))
            shape = field_shape(field) if field else Shape()
        else:
            shape = shape.items or Shape()
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
    return shape.model(value)


def shape_at(path: ConfigPath) -> Shape | None:
    """What may stand at `path` in any config; None where no config has such a key.

    Where a map may be one of several types, the path is good if any of them has the key.
    """
    shapes = [ROOT]
    for step in path:
        found = [
            field_shape(model.model_fields[str(step)])
            for shape in shapes
            for model in shape.models
            if str(step) in model.model_fields
        ]
        found += [
            shape.items for shape in shapes if shape.items is not None and (shape.is_map or str(step).isdecimal())
        ]
        shapes = found or [shape for shape in shapes if shape.is_map and not shape.items]
        if not shapes:
            return None
    return shapes[0]


@dataclass(frozen=True, slots=True)
class Row:
    """One key of one schema."""

    model: type[Model]
    name: str
    status: str
    """`effect`, `mapped`, or `later`: refused at planning as not available yet."""

    @property
    def field(self) -> FieldInfo:
        """The key's definition."""
        return self.model.model_fields[self.name]


def all_models() -> list[type[Model]]:
    """Every schema that a config may use, from the top down, each once."""
    found: list[type[Model]] = []

    def visit(shape: Shape) -> None:
        for model in shape.models:
            if model not in found:
                found.append(model)
                for field in model.model_fields.values():
                    visit(field_shape(field))
        if shape.items:
            visit(shape.items)

    visit(ROOT)
    return found


def parents(model: type[Model]) -> list[type[Model]]:
    """The schemas whose keys `model` inherits, the nearest first."""
    return [base for base in model.__mro__[1:] if issubclass(base, Model) and base is not Model]


def rows(model: type[Model]) -> Iterator[Row]:
    """The keys of a schema, inherited ones first."""
    for name in model.model_fields:
        yield Row(model, name, status_of(model, name))


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a config file, for editors.

    A file that is put on top of others (`defaults`, `_base_`) may hold any part of a config; a text may stand for any
    number or choice, since `${VAR}` may.
    """
    schema = EvalConfig.model_json_schema()
    definitions = schema.pop("$defs")
    for definition in (*definitions.values(), schema):
        _for_editors(definition)
    keys = schema.pop("properties")
    part = {name: {"description": value.get("description", "")} for name, value in keys.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "NEL evaluation config",
        "type": "object",
        "properties": {
            "defaults": {
                "description": "Configs that this one is put on top of, from the lowest to the highest.",
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/_Base"}]},
            },
            "_base_": {
                "description": "Whole configs that this one is put on top of.",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            },
            **part,
        },
        "patternProperties": {"^_": {"description": "A variable, for references such as ${._name}."}},
        "additionalProperties": False,
        "if": {"anyOf": [{"required": ["defaults"]}, {"required": ["_base_"]}]},
        "else": {"properties": keys, "required": schema["required"]},
        "$defs": {
            **definitions,
            "_Base": {
                "type": "object",
                "properties": {"_base_": {"type": "string"}},
                "required": ["_base_"],
                "additionalProperties": False,
            },
        },
    }


def _for_editors(schema: dict[str, Any]) -> None:
    for value in schema.get("properties", {}).values():
        value.pop("title", None)
        value.pop("x-mapped", None)
        if value.pop("x-later", None):
            value["description"] += " Not available yet: only the default is accepted."
    for name, value in schema.items():
        if name == "properties":
            schema[name] = {key: _or_variable(item) for key, item in value.items()}
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            schema[name] = _or_variable(value)


_VARIABLE = {"type": "string", "pattern": r"\$\{"}


def _or_variable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or a text with a variable in it where the schema asks for a number, a truth value or a choice."""
    for nested in ("items", "additionalProperties"):
        if isinstance(schema.get(nested), dict):
            schema = {**schema, nested: _or_variable(schema[nested])}
    if "anyOf" in schema:
        options = [_or_variable(option) for option in schema["anyOf"]]
        return {**schema, "anyOf": options}
    if schema.get("type") in ("integer", "number", "boolean") or "enum" in schema:
        kept: dict[str, Any] = {name: schema[name] for name in ("description", "default") if name in schema}
        rule = {name: value for name, value in schema.items() if name not in kept}
        return {**kept, "anyOf": [rule, _VARIABLE]}
    return schema
