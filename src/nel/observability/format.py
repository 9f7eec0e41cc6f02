"""How numbers look, decided once for the live display, the console and the reports.

Scores keep three decimals, or as many as their interval needs; everything else is rounded to what a person compares.
"""

from __future__ import annotations

import math

_NICE = str.maketrans({"±": "+/-", "×": "x", "…": "...", "–": "-", "—": "-", "·": "-", "→": "->", "≥": ">=", "≤": "<="})


def format_number(value: float) -> str:
    """A score, bound or other measured value: `0.412`, `12.35`, `1,234`; small ones keep two significant digits."""
    size = abs(value)
    if size != 0 and size < 0.0005:
        return f"{value:.1e}" if size < 1e-6 else f"{value:.{1 - math.floor(math.log10(size))}f}"
    if size >= 1e15:
        return f"{value:.3e}"
    return _fixed(value, _decimals(size))


def format_estimate(value: float | None, lower: float | None, upper: float | None) -> str:
    """A mean with its interval: `0.412 ± 0.031`, or `0.975 [0.871, 0.996]` where the interval is not symmetric.

    It counts as symmetric where its middle is within a tenth of its half-width of the value. Without an interval the
    value stands alone, and without a value there is a dash.
    """
    if value is None:
        return "-"
    if lower is None or upper is None:
        return format_number(value)
    half = (upper - lower) / 2
    decimals = _decimals(max(abs(value), abs(lower), abs(upper)))
    if half > 0:
        decimals = min(8, max(decimals, math.ceil(-math.log10(half))))
    if abs((lower + upper) / 2 - value) <= half / 10:
        return f"{_fixed(value, decimals)} ± {_fixed(half, decimals)}"
    return f"{_fixed(value, decimals)} [{_fixed(lower, decimals)}, {_fixed(upper, decimals)}]"


def format_count(count: int) -> str:
    """Every digit of a count: `1,319`."""
    return f"{count:,}"


def format_compact(amount: float) -> str:
    """An amount such as tokens or tokens a second in at most five characters: `3.4`, `9,999`, `12.3k`, `1.20M`."""
    if amount < 9.95:
        return f"{amount:.0f}" if float(amount).is_integer() else f"{amount:.1f}"
    if amount < 9_999.5:
        return f"{amount:,.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12)):
        scaled = amount / size
        if scaled < 999.5:
            decimals = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
            return f"{scaled:.{decimals}f}{unit}"
    return f"{amount:.2e}"


def format_percent(share: float) -> str:
    """A share of 0 to 1 as `12.3%`; 0% and 100% are never rounded to, and whole per cents have no decimals."""
    percent = share * 100
    if 0 < percent < 0.05:
        return "<0.1%"
    if 99.95 <= percent < 100:
        return ">99.9%"
    return f"{percent:.0f}%" if abs(percent - round(percent)) < 1e-9 else f"{percent:.1f}%"


def format_duration(seconds: float) -> str:
    """Elapsed or expected time in its two largest units: `0.8ms`, `850ms`, `4.2s`, `42s`, `3m05s`, `2h07m`, `3d04h`."""
    if seconds <= 0:
        return "0s"
    if seconds < 0.00995:
        return f"{seconds * 1000:.1f}ms" if seconds >= 0.00005 else "<0.1ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 24:
        return f"{hours}h{minutes:02}m"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days}d{hours:02}h"


def format_money(amount: float, currency: str = "$") -> str:
    """A cost: `$0.0042`, `$12.34`, `$1,234`; below a cent two significant digits are kept."""
    if amount <= 0:
        return f"{currency}0"
    if amount < 1e-6:
        return f"<{currency}0.000001"
    if amount < 0.00995:
        return f"{currency}{amount:.{1 - math.floor(math.log10(amount))}f}"
    return f"{currency}{amount:,.2f}" if amount < 999.995 else f"{currency}{amount:,.0f}"


def to_ascii(text: str) -> str:
    """`text` for a terminal that knows ASCII only: signs become their usual spelling, other characters `?`."""
    return text.translate(_NICE).encode("ascii", "replace").decode()


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text if any(digit in text for digit in "123456789") else text.removeprefix("-")


def _decimals(size: float) -> int:
    """Three decimals below 10, then four significant digits."""
    return max(0, 3 - math.floor(math.log10(max(size, 1))))
