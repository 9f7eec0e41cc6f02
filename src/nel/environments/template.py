r"""Prompt templates: `{field}` as in `str.format`, with literal braces, or Jinja.

In a plain template `{name}`, `{name.key}`, `{name[0]}`, `{name!r}` and `{name:.2f}` are fields, as is
`{any column name}` where the row has that column. Any other text in braces stays as it is (`{"a": 1}`, `\boxed{}`).
`{{` and `}}` stand for one brace each. A template is Jinja when its file ends in `.jinja` or `.j2`, or when it holds
`{% %}` or `{{ name }}` with a space inside the braces.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nel.core.errors import DataError

if TYPE_CHECKING:
    import jinja2

_FILE_SUFFIXES = (".txt", ".md", ".jinja", ".j2")
_JINJA = re.compile(r"\{%-?\s|\{\{-?\s+[^\W\d]\w*[^{}]*?\s*-?\}\}")
_SPEC = r"(?:[^{}]?[<>=^])?[-+ ]?\#?0?\d*[,_]?(?:\.\d+)?[bcdeEfFgGnosxX%]?"
_PIECE = re.compile(
    rf"""
      (?P<open>\{{\{{) | (?P<close>\}}\}})
    | \{{(?P<root>[^\W\d]\w*)(?P<path>(?:\.[^\W\d]\w*|\[[^\[\]{{}}]+\])*)
      (?:!(?P<conversion>[rsa]))?(?::(?P<spec>{_SPEC}))?\}}
    | \{{(?P<column>[^{{}}\n]+)\}}
    """,
    re.VERBOSE,
)
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class FieldError(DataError):
    """A template's field that a row does not have; the caller adds where the row stands."""


class Template(ABC):
    """A prompt with the fields of a row in it."""

    roots: frozenset[str]
    """Columns that every row must have; empty where it cannot be told before a row is rendered."""
    fixed: bool
    """Whether every row gives the same text."""

    @abstractmethod
    def render(self, row: Mapping[str, Any]) -> str:
        """The prompt of one row; `FieldError` names the field that the row lacks, or that is null."""


def is_jinja(text: str, suffix: str = "") -> bool:
    """Whether a template is Jinja, by its file's suffix or its text."""
    return suffix in {".jinja", ".j2"} or _JINJA.search(text) is not None


def read_template(prompt: str, base: Path | None) -> tuple[str, str, Path | None]:
    """A prompt's text, its file's suffix and its file, where `prompt` is the path of one (relative to `base`).

    A prompt is a path when it is one line that ends in `.txt`, `.md`, `.jinja` or `.j2` and either names a file or has
    no space in it; then the file must exist (`DataError`).
    """
    if "\n" in prompt or "{" in prompt or not prompt.endswith(_FILE_SUFFIXES):
        return prompt, "", None
    path = (base or Path()) / prompt
    if not path.is_file():
        if re.search(r"\s", prompt):
            return prompt, "", None
        near = get_close_matches(path.name, [item.name for item in path.parent.glob("*")], n=1)
        raise DataError(f"prompt file {path}: no such file", hint=f"Did you mean {near[0]!r}?" if near else None)
    return path.read_text(encoding="utf-8"), path.suffix, path


def compile_template(text: str, *, suffix: str = "", columns: Collection[str] = ()) -> Template:
    """The template of a prompt's text.

    Args:
        text: the template.
        suffix: the suffix of its file, `""` for a prompt in the code.
        columns: the columns that rows have; a column with spaces in its name is a field only if it is among them.
    """
    if is_jinja(text, suffix):
        return JinjaTemplate(text, columns)
    return FormatTemplate(text, columns)


class FormatTemplate(Template):
    """`{field}` templates, cut into pieces once."""

    def __init__(self, text: str, columns: Collection[str] = ()) -> None:
        self._literals: list[str] = []
        self._fields: list[_Field] = []
        literal = ""
        position = escaped = 0
        for match in _PIECE.finditer(text):
            literal += text[position : match.start()]
            position = match.end()
            field = _field_of(match, columns)
            if match["open"]:
                literal += "{"
                escaped += 1
            elif match["close"] and escaped:
                literal += "}"
                escaped -= 1
            elif field is None:
                literal += match.group()
            else:
                self._literals.append(literal)
                self._fields.append(field)
                literal = ""
        self._last = literal + text[position:]
        self.roots = frozenset(field.root for field in self._fields)
        self.fixed = not self._fields

    def render(self, row: Mapping[str, Any]) -> str:
        """The literals with the row's values between them."""
        parts = []
        for literal, field in zip(self._literals, self._fields, strict=True):
            parts.append(literal)
            value = row.get(field.root)
            parts.append(value if field.bare and type(value) is str else field.text(row))
        parts.append(self._last)
        return "".join(parts)


class _Field:
    """One field: a column, the way into its value, and how the value is written."""

    def __init__(self, root: str, path: str = "", conversion: str | None = None, spec: str | None = None) -> None:
        self.root = root
        self.bare = not (path or conversion or spec)
        self._said = f"{{{root}{path}}}"
        self._keys = [name or index for name, index in re.findall(r"\.(\w+)|\[([^\[\]]+)\]", path)]
        self._conversion = conversion
        self._spec = spec or ""

    def text(self, row: Mapping[str, Any]) -> str:
        if self.root not in row:
            raise FieldError(
                f"the row has no column for the prompt's field {self._said}", hint=near_columns(self.root, row)
            )
        value = row[self.root]
        for key in self._keys:
            value = self._inside(value, key)
        if value is None:
            raise FieldError(
                f"the prompt's field {self._said} is null in this row",
                hint="Fill it in `prepare_row`, or leave the row out.",
            )
        if self._conversion:
            value = _CONVERSIONS[self._conversion](value)
        try:
            return format(value, self._spec)
        except (TypeError, ValueError) as error:
            raise FieldError(f"the prompt's field {self._said} cannot be written as {self._spec!r}: {error}") from None

    def _inside(self, value: Any, key: str) -> Any:
        try:
            return value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            has = f"its keys are {', '.join(map(str, value))}" if isinstance(value, dict) else f"it is {value!r:.80}"
            raise FieldError(f"the prompt's field {self._said} has no {key!r} in this row: {has}") from None


def _field_of(match: re.Match[str], columns: Collection[str]) -> _Field | None:
    if match["open"] or match["close"]:
        return None
    whole = match.group()[1:-1]
    if whole in columns:
        return _Field(whole)
    return _Field(match["root"], match["path"], match["conversion"], match["spec"]) if match["root"] else None


class JinjaTemplate(Template):
    """Jinja in a sandbox, where an undefined name is an error; `row` is the whole row, unless a column is called so."""

    def __init__(self, text: str, columns: Collection[str] = ()) -> None:
        import jinja2

        self._undefined = jinja2.UndefinedError
        environment = _jinja_environment()
        try:
            self._template = environment.from_string(text)
        except jinja2.TemplateSyntaxError as error:
            raise DataError(f"the prompt is no Jinja template: line {error.lineno}: {error.message}") from None
        from jinja2 import meta

        named = meta.find_undeclared_variables(environment.parse(text))
        self.roots = frozenset()  # a name may stand in a branch that a row does not reach
        self.fixed = not named
        if "self" in columns and re.search(r"\bself\b(?!['\"])", text):
            raise DataError("the prompt: in Jinja `self` is the template", hint="The column is row['self'].")
        mixed = [column for column in columns if f"{{{column}}}" in re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text)]
        if mixed:
            raise DataError(
                f"the prompt is a Jinja template, where {{{mixed[0]}}} is plain text",
                hint=f"Write {{{{ {mixed[0]} }}}}; or, for a plain template, no space after a double brace.",
            )

    def render(self, row: Mapping[str, Any]) -> str:
        """The template with the row's columns as its variables."""
        try:
            return self._template.render({"row": row, **row})
        except self._undefined as error:
            name = re.search(r"'(\w+)' is undefined", str(error))
            hint = near_columns(name[1], row) if name else near_columns("", row)
            raise FieldError(f"the prompt's template: {error}", hint=hint) from None
        except Exception as error:
            raise FieldError(f"the prompt's template: {type(error).__name__}: {error}") from error


def _jinja_environment() -> jinja2.Environment:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def near_columns(name: str, columns: Collection[str]) -> str:
    """A hint: the column whose name comes nearest, and all there are."""
    near = get_close_matches(name, list(columns), n=1)
    listed = f"Columns: {', '.join(map(str, columns))}."
    return f"Did you mean {near[0]!r}? {listed}" if near else listed
