"""What all config schemas share: strictness, number types, and the note of what a key does in this version."""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

_LATER = "x-later"
_MAPPED = "x-mapped"


def refusal(message: str, *path: str | int) -> PydanticCustomError:
    """The error of a schema's own check; `path` leads from the checked value to the one that is wrong."""
    return PydanticCustomError("nel", "{message}", {"message": message, "path": path})


def key(default: Any, doc: str, *, later: bool = False, mapped: bool = False) -> Any:
    """One key of a config: its default (`...` where it must be given, or what makes it) and a line for the docs.

    `later`: parsed, but any value other than the default is refused at planning, as not available yet. The default
    then says what NEL does now. `mapped`: it takes effect as another key or value, which `doc` names.
    """
    extra: dict[str, Any] = {_LATER: True} if later else {_MAPPED: True} if mapped else {}
    given = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**given, description=doc, json_schema_extra=extra or None)


def status_of(model: type[BaseModel], name: str) -> str:
    """`effect`, `mapped` or `later`."""
    extra = model.model_fields[name].json_schema_extra
    marks = extra if isinstance(extra, dict) else {}
    return "later" if marks.get(_LATER) else "mapped" if marks.get(_MAPPED) else "effect"


def takes_null(annotation: Any) -> bool:
    """Whether null is a value of a field rather than its absence."""
    if annotation is Any or annotation is None or annotation is type(None):
        return True
    if get_origin(annotation) is Annotated:
        return takes_null(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return any(takes_null(part) for part in get_args(annotation))
    return False


class Model(BaseModel):
    """A map of known keys. An unknown key is refused, and null is the same as leaving a key out."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )

    later: ClassVar[str] = ""
    """What is not available yet, where this whole type is refused at planning."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        fields = cls.model_fields
        return {
            name: item
            for name, item in value.items()
            if item is not None or name not in fields or takes_null(fields[name].annotation)
        }


@dataclass(frozen=True, eq=False)
class Also:
    """Marks a field that also takes another form, which its validator rewrites; for the JSON Schema."""

    form: dict[str, Any]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [self.form, handler(core)]}


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise refusal(f"expected a number, not {'true' if value else 'false'}")
    return value


_Number = BeforeValidator(_no_truth_value)

Int = Annotated[int, _Number]
Count = Annotated[int, Field(ge=1), _Number]
Whole = Annotated[int, Field(ge=0), _Number]
Port = Annotated[int, Field(ge=0, le=65535), _Number]
Float = Annotated[float, _Number]
Positive = Annotated[float, Field(gt=0), _Number]
NotNegative = Annotated[float, Field(ge=0), _Number]
Share = Annotated[float, Field(ge=0, le=1), _Number]
Temperature = Annotated[float, Field(ge=0, le=2), _Number]
Penalty = Annotated[float, Field(ge=-2, le=2), _Number]
Name = Annotated[str, Field(min_length=1)]
