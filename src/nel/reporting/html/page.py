"""The HTML report: one file with everything in it, which sends no request and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files

from markupsafe import Markup

from nel.observability.format import format_count
from nel.reporting.html.overview import overview, templates
from nel.reporting.html.samples import Samples, collect
from nel.reporting.run_view import RunView

BUDGET = 25_000_000
"""Bytes of the whole file."""

_FRAME = 1_500_000
"""Kept for everything that is no sample: tables, plots, scripts."""


def asset(name: str) -> str:
    """A style sheet or script of the report, as text."""
    return (files("nel.reporting.html") / "assets" / name).read_text(encoding="utf-8")


def render_html(view: RunView) -> str:
    """The whole report; texts of the run are data in it and never markup or code."""
    samples = collect(view, BUDGET - _FRAME)
    page = overview(view, samples.spread, texts=True)
    script, style = asset("samples.js") + asset("report.js"), asset("style.css")
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = templates().get_template("report.html")
    text = template.render(
        page=page,
        policy=policy,
        script=_inline(script),
        style=_inline(style),
        index=samples.index,
        chunks=samples.chunks,
        count=format_count(samples.listed),
        notes=_notes(samples),
        cells=embedded_json([cell.name for cell in view.cells()]),
    )
    return text.rstrip() + "\n"


def embedded_json(value: object) -> Markup:
    """JSON that can stand inside a `<script type="application/json">`, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - what could end the element has been replaced


def _notes(samples: Samples) -> list[str]:
    notes = list(samples.unread)
    if samples.left_out:
        shown, total = format_count(samples.listed), format_count(samples.listed + samples.left_out)
        notes.append(f"The first {shown} of {total} attempts are listed; `nel view` shows all.")
    if samples.cut:
        cut = format_count(samples.cut)
        notes.append(f"Texts of {cut} attempts are shortened to keep this file small; each says where the whole is.")
    return notes


def _inline(text: str) -> Markup:
    if "</" in text:
        raise AssertionError("a script or style that is put into a page must not hold a closing tag")
    return Markup(text)  # noqa: S704 - our own files


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
