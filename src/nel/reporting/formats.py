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
    renderer: str
    """`module:function` from a `RunView` to text."""


FORMATS: dict[str, Format] = {
    "markdown": Format(".md", "nel.reporting.markdown:render_markdown"),
    "json": Format(".json", "nel.reporting.json_report:render_json"),
    "console": Format(None, "nel.reporting.console:render_console"),
    "html": Format(".html", "nel.reporting.html.page:render_html"),
    "csv": Format(".csv", "nel.reporting.csv_report:render_csv"),
    "latex": Format(".tex", "nel.reporting.latex:render_latex"),
}

SUFFIXES: dict[str, str] = {name: item.suffix for name, item in FORMATS.items() if item.suffix}
"""Of the formats that a run directory keeps as a file."""


def render(view: RunView, name: str) -> str:
    """The report of a run in one format; `UsageError` lists the formats that there are."""
    chosen = FORMATS.get(name)
    if chosen is None:
        near = get_close_matches(name, FORMATS, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"There is no report format {name!r}.", hint=f"{meant}Formats: {', '.join(FORMATS)}.")
    renderer = cast("Callable[[RunView], str]", load_object(chosen.renderer, what=f"{name} renderer"))
    return renderer(view)
