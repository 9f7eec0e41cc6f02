"""The formats of a report by name: what `nel eval report --format` and `output.report` take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from nel.core.errors import UsageError
from nel.core.loading import load_object
from nel.reporting.run_view import RunView


@dataclass(frozen=True, slots=True)
class Format:
    """One form of the report."""

    suffix: str | None
    """Of its file, `report<suffix>` in the run directory; None where it is only printed."""
    renderer: str | None
    """`module:function` from a `RunView` to text; None where this version cannot make it."""


FORMATS: dict[str, Format] = {
    "markdown": Format(".md", "nel.reporting.markdown:render_markdown"),
    "json": Format(".json", "nel.reporting.json_report:render_json"),
    "console": Format(None, "nel.reporting.console:render_console"),
    "html": Format(".html", None),
    "csv": Format(".csv", None),
    "latex": Format(".tex", None),
}

SUFFIXES: dict[str, str] = {name: item.suffix for name, item in FORMATS.items() if item.suffix}
"""Of the formats that a run directory keeps as a file."""


def render(view: RunView, name: str) -> str:
    """The report of a run in one format; `UsageError` lists the formats that there are."""
    known = [key for key, item in FORMATS.items() if item.renderer]
    chosen = FORMATS.get(name)
    if chosen is None:
        near = get_close_matches(name, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"There is no report format {name!r}.", hint=f"{meant}Formats: {', '.join(known)}.")
    if chosen.renderer is None:
        raise UsageError(f"This version of nel cannot write a {name} report yet.", hint=f"Formats: {', '.join(known)}.")
    renderer = cast("Callable[[RunView], str]", load_object(chosen.renderer, what=f"{name} renderer"))
    return renderer(view)
