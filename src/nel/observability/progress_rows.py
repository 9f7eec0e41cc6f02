"""One line of progress a cell: what stands on it, and what gives way when the terminal is narrow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nel.observability.format import (
    format_compact,
    format_count,
    format_duration,
    format_estimate,
    format_money,
    to_ascii,
)

Span = tuple[str, str]
"""A piece of text and its style."""

_BAR_LEAST, _BAR_MOST, _NAME_MOST, _KINDS_LEAST = 8, 30, 32, 14
_GAP = 2
_WANTED = (
    "count", "score", "elapsed", "errors", "remaining", "bar", "flight", "speed", "cost", "kinds", "unscored", "percent"
)  # fmt: skip
"""Columns beside the name, the most wanted first: as many as fit are shown."""
_ORDER = (
    "name", "bar", "count", "percent", "score", "elapsed", "remaining", "flight", "speed", "cost",
    "unscored", "errors", "kinds",
)  # fmt: skip
_RIGHT = {"count", "percent", "elapsed", "remaining", "flight", "speed", "cost", "unscored", "errors"}
_STYLES = {
    "name": "bold", "bar": "cyan", "count": "", "percent": "dim", "score": "bold green", "elapsed": "dim",
    "remaining": "", "flight": "dim", "speed": "dim", "cost": "dim",
    "unscored": "yellow", "errors": "yellow", "kinds": "yellow",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one line shows."""

    name: str
    done: int
    total: int
    mean: float | None = None
    ci_lower: float | None = None
    ci_upper: float | None = None
    unscored: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    tokens_per_second: float | None = None
    cost: float | None = None
    in_flight: int = 0
    elapsed: float = 0.0
    remaining: float | None = None
    """Seconds left; None where nothing can be said."""
    ended: bool = False


def plain_line(row: Row) -> str:
    """The line for a log file: every fact, separated by commas."""
    share = f" ({_percent(row)})" if row.total else ""
    state = "done" if row.ended and row.done >= row.total else "stopped" if row.ended else ""
    facts = [
        state,
        f"{format_count(row.done)}/{format_count(row.total)}{share}",
        "" if row.mean is None else f"score {format_estimate(row.mean, row.ci_lower, row.ci_upper)}",
        " ".join(filter(None, (_errors(row), _kinds(row)))),
        _unscored(row),
        _speed(row),
        _cost(row),
        _flight(row),
        f"{'took' if row.ended else 'elapsed'} {_elapsed(row)}",
        _remaining(row),
    ]
    return f"{clean(row.name)}: {', '.join(filter(None, facts))}"


def lay_out(rows: Sequence[Row], width: int, widths: dict[str, int], *, ascii_only: bool) -> list[list[Span]]:
    """The lines of a live display, aligned, each at most `width` cells wide.

    `widths` remembers how wide each column has been, so that columns do not jump; it is updated.
    """
    from rich.cells import cell_len

    if not rows:
        return []
    cells = [{name: to_ascii(text) if ascii_only else text for name, text in _texts(row).items()} for row in rows]
    for texts in cells:
        for name, text in texts.items():
            widths[name] = max(widths.get(name, 0), cell_len(text))
    sizes = _fit(widths, width)
    return [_line(row, texts, sizes, ascii_only=ascii_only) for row, texts in zip(rows, cells, strict=True)]


def _fit(widths: Mapping[str, int], width: int) -> dict[str, int]:
    """The columns that are shown and their widths, from left to right."""
    sizes = {"name": min(widths["name"], _NAME_MOST, max(8, width // 4), width)}
    room = width - sizes["name"] - _GAP
    for name in _WANTED:
        wanted = _BAR_LEAST if name == "bar" else widths[name]
        size = min(wanted, room) if name == "kinds" else wanted
        if 0 < size <= room and size >= min(wanted, _KINDS_LEAST):
            sizes[name] = size
            room -= size + _GAP
    if "bar" in sizes:
        sizes["bar"] += min(max(0, room), _BAR_MOST - _BAR_LEAST)
    return {name: sizes[name] for name in _ORDER if name in sizes}


def _line(row: Row, texts: Mapping[str, str], sizes: Mapping[str, int], *, ascii_only: bool) -> list[Span]:
    from rich.cells import cell_len

    spans: list[Span] = []
    for name, size in sizes.items():
        if spans:
            spans.append((" " * _GAP, ""))
        if name == "bar":
            spans += _bar(row, size, ascii_only=ascii_only)
            continue
        text = _shortened(texts[name], size, ascii_only=ascii_only)
        pad = " " * (size - cell_len(text))
        spans.append((pad + text if name in _RIGHT else text + pad, _STYLES[name]))
    return spans


def clean(text: str) -> str:
    """`text` on one line, without characters that would move a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text)


def _texts(row: Row) -> dict[str, str]:
    return {
        "name": clean(row.name),
        "bar": "",
        "count": f"{format_count(row.done)}/{format_count(row.total)}",
        "percent": _percent(row),
        "score": "" if row.mean is None else format_estimate(row.mean, row.ci_lower, row.ci_upper),
        "elapsed": _elapsed(row),
        "remaining": _remaining(row),
        "flight": _flight(row),
        "speed": _speed(row),
        "cost": _cost(row),
        "unscored": _unscored(row),
        "errors": _errors(row),
        "kinds": _kinds(row),
    }


def _bar(row: Row, width: int, *, ascii_only: bool) -> list[Span]:
    full, empty = ("#", "-") if ascii_only else ("━", "─")
    share = min(1.0, row.done / row.total) if row.total else 1.0
    filled = width if share == 1 else min(width - 1, math.floor(share * width))
    style = "green" if share == 1 else "yellow" if row.ended else _STYLES["bar"]
    return [(full * filled, style), (empty * (width - filled), "dim")]


def _shortened(text: str, width: int, *, ascii_only: bool) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    mark = ("..." if ascii_only else "…")[:width]
    return set_cell_size(text, width - len(mark)) + mark


def _percent(row: Row) -> str:
    return f"{100 * row.done // row.total}%" if row.total else ""


def _elapsed(row: Row) -> str:
    """Whole seconds while they tick, the exact time in the end."""
    return format_duration(row.elapsed) if row.ended else _ticking(row.elapsed)


def _errors(row: Row) -> str:
    count = sum(row.errors.values())
    return f"{format_count(count)} error{'s' * (count != 1)}" if count else ""


def _unscored(row: Row) -> str:
    return f"{format_count(row.unscored)} unscored" if row.unscored else ""


def _kinds(row: Row) -> str:
    kinds = sorted(row.errors.items(), key=lambda item: (-item[1], item[0]))
    return f"({', '.join(f'{clean(kind)} {format_count(count)}' for kind, count in kinds)})" if kinds else ""


def _speed(row: Row) -> str:
    return f"{format_compact(row.tokens_per_second)} tok/s" if row.tokens_per_second else ""


def _cost(row: Row) -> str:
    return "" if row.cost is None else format_money(row.cost)


def _flight(row: Row) -> str:
    return f"{format_count(row.in_flight)} in flight" if row.in_flight and not row.ended else ""


def _remaining(row: Row) -> str:
    if row.remaining is None or row.ended:
        return ""
    return f"{_ticking(max(1.0, row.remaining))} left"


def _ticking(seconds: float) -> str:
    whole = math.floor(seconds)
    return f"{whole}s" if whole < 10 else format_duration(whole)
