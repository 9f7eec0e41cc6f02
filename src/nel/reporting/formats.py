"""The formats of a report by name: what `nel eval report --format` takes."""

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

    file: str
    """Its file's name in a run directory."""
    renderer: str | None
    """`module:function` from a `RunView` to text; None where this version cannot make it."""
    summary: str


FORMATS: dict[str, Format] = {
    "markdown": Format("report.md", "nel.reporting.markdown:render_markdown", "tables for people and for reviews"),
    "json": Format("report.json", "nel.reporting.json_report:render_json", "the same content for programs"),
    "console": Format("report.txt", "nel.reporting.console:render_console", "scores, intervals and counts as text"),
    "html": Format("report.html", None, "one page with the samples"),
    "csv": Format("report.csv", None, "one row a metric"),
    "latex": Format("report.tex", None, "a table for a paper"),
}


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
