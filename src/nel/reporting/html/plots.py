"""Small pictures as inline SVG; colors come from the style sheet, so that they follow the theme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from nel.observability.format import format_count
from nel.reporting import content
from nel.reporting.run_view import MetricView

_WIDTH, _HEIGHT, _PAD = 200, 18, 6
_PLOT_WIDTH, _PLOT_HEIGHT = 480, 150
_BINS = 32


@dataclass(frozen=True, slots=True)
class Scale:
    """The common axis of the intervals in one table."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Where `value` lies, in pixels; what lies outside is drawn at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_PAD + share * (_WIDTH - 2 * _PAD), 1)


def scale_of(metrics: Iterable[MetricView | None]) -> Scale:
    """An axis that holds every value and bound: 0 to 1 where they all fit, else from 0, or below it, to the largest."""
    numbers = [
        number
        for metric in metrics
        if metric is not None
        for number in (metric.value, metric.ci_lower, metric.ci_upper)
        if number is not None
    ]
    low, high = min(0.0, *numbers, 0.0), max(0.0, *numbers, 0.0)
    if low >= 0 and high <= 1:
        high = 1.0
    return Scale(low, high if high > low else low + 1)


def interval(metric: MetricView | None, scale: Scale, *, bar: bool = False) -> Markup:
    """A value with its interval on the axis: a dot, or a bar from 0; empty without a value."""
    if metric is None or metric.value is None:
        return Markup()
    middle, at = _HEIGHT / 2, scale.x(metric.value)
    words = f"{content.number(metric.value)} {content.interval(metric)}"
    parts = [
        f'<svg class="interval" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">',
        Markup("<title>{}</title>").format(words),
        f'<line class="track" x1="{_PAD}" x2="{_WIDTH - _PAD}" y1="{middle}" y2="{middle}"/>',
    ]
    if bar:
        zero = scale.x(0.0)
        parts.append(
            f'<rect class="bar" x="{min(zero, at)}" y="4" width="{abs(at - zero):.1f}" height="{_HEIGHT - 8}" rx="2"/>'
        )
    if metric.ci_lower is not None and metric.ci_upper is not None:
        left, right = scale.x(metric.ci_lower), scale.x(metric.ci_upper)
        parts.append(f'<line class="whisker" x1="{left}" x2="{right}" y1="{middle}" y2="{middle}"/>')
        parts += [f'<line class="cap" x1="{x}" x2="{x}" y1="5" y2="{_HEIGHT - 5}"/>' for x in (left, right)]
    if not bar:
        parts.append(f'<circle class="dot" cx="{at}" cy="{middle}" r="4"/>')
    return Markup("".join(parts) + "</svg>")  # noqa: S704 - numbers alone, and a title that is escaped


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in equal bins; what lies above the axis is counted in the last one."""

    low: float
    high: float
    counts: Sequence[int]
    p50: float
    p90: float
    p99: float
    beyond: int
    """Values above `high`, which the last bin holds too."""


def histogram(values: Sequence[float]) -> Histogram | None:
    """The distribution of `values` up to their 99.5th percentile; None with less than two of them."""
    if len(values) < 2:
        return None
    import numpy as np

    data = np.asarray(values, dtype=float)
    p50, p90, p99, top = (float(number) for number in np.quantile(data, (0.5, 0.9, 0.99, 0.995)))
    low = float(data.min())
    low = 0.0 if low < top / 3 else low
    high = top if top > low else low + 1
    counts, _ = np.histogram(np.minimum(data, high), bins=_BINS, range=(low, high))
    beyond = int((data > high).sum())
    return Histogram(low, high, [int(count) for count in counts], p50, p90, p99, beyond)


def draw(found: Histogram, unit: Callable[[float], str]) -> Markup:
    """The histogram with its axis, and a line at each percentile; `unit` writes a value of the axis."""
    left, bottom, top = 8, _PLOT_HEIGHT - 22, 20
    width = _PLOT_WIDTH - 2 * left
    peak = max(found.counts)

    def x(value: float) -> float:
        return round(left + min(1.0, (value - found.low) / (found.high - found.low)) * width, 1)

    step = width / len(found.counts)
    parts = [f'<svg class="histogram" viewBox="0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}" role="img">']
    for number, count in enumerate(found.counts):
        height = (bottom - top) * count / peak
        parts.append(
            f'<rect class="bin" x="{left + number * step + 0.75:.1f}" y="{bottom - height:.1f}" '
            f'width="{step - 1.5:.1f}" height="{height:.1f}" rx="1"><title>{format_count(count)}</title></rect>'
        )
    parts.append(f'<line class="axis" x1="{left}" x2="{left + width}" y1="{bottom}" y2="{bottom}"/>')
    for number in range(5):
        value = found.low + (found.high - found.low) * number / 4
        anchor = ("start", "middle", "middle", "middle", "end")[number]
        more = "≥ " if number == 4 and found.beyond else ""
        label = Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}{}</text>')
        parts.append(label.format(x(value), bottom + 15, anchor, more, unit(value)))
    last = -100.0
    for name, value in (("p50", found.p50), ("p90", found.p90), ("p99", found.p99)):
        at = x(value)
        parts.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{top - 4}" y2="{bottom}"/>')
        if at - last > 30:
            inside = min(max(at, left + 12), left + width - 12)
            parts.append(f'<text class="mark-label" x="{inside}" y="{top - 8}" text-anchor="middle">{name}</text>')
            last = at
    return Markup("".join(parts) + "</svg>")  # noqa: S704 - numbers alone, and labels that are escaped
