"""Numbers as a person sees them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nel.observability.format import (
    format_compact,
    format_count,
    format_duration,
    format_estimate,
    format_money,
    format_number,
    format_percent,
    to_ascii,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.000"), (-0.0, "0.000"), (0.4124, "0.412"), (1, "1.000"), (-0.5, "-0.500"), (12.345, "12.35"),
        (123.45, "123.5"), (1234.5, "1,234"), (0.00021, "0.00021"), (-0.00021, "-0.00021"), (1e-9, "1.0e-09"),
        (3.2e17, "3.200e+17"),
    ],
)  # fmt: skip
def test_scores(value: float, shown: str) -> None:
    assert format_number(value) == shown


@pytest.mark.parametrize(
    ("value", "lower", "upper", "shown"),
    [
        (0.412, 0.381, 0.443, "0.412 ± 0.031"),
        (0.41234, 0.4119, 0.41275, "0.4123 ± 0.0004"),
        (0.975, 0.871, 0.996, "0.975 [0.871, 0.996]"),
        (1, 0.839, 1, "1.000 [0.839, 1.000]"),
        (0, 0, 0.161, "0.000 [0.000, 0.161]"),
        (-0.00001, -0.02, 0.02, "0.000 ± 0.020"),
        (1234.5, 1230, 1239, "1,234 ± 4"),
        (0.5, None, None, "0.500"),
        (None, None, None, "-"),
    ],
)
def test_estimates(value: float | None, lower: float | None, upper: float | None, shown: str) -> None:
    assert format_estimate(value, lower, upper) == shown


@given(value=st.floats(-1e6, 1e6), half=st.floats(1e-6, 1e6))
def test_a_symmetric_interval_never_rounds_to_nothing(value: float, half: float) -> None:
    shown = format_estimate(value, value - half, value + half)
    assert any(digit in shown.rpartition("±")[2] for digit in "123456789")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0"), (3.44, "3.4"), (7, "7"), (9.96, "10"), (999, "999"), (9_999, "9,999"), (9_999.6, "10.0k"),
        (12_345, "12.3k"), (99_960, "100k"), (999_499, "999k"), (999_600, "1.00M"), (1.2e6, "1.20M"), (3e9, "3.00B"),
        (2e13, "20.0T"), (5e15, "5.00e+15"),
    ],
)  # fmt: skip
def test_amounts(amount: float, shown: str) -> None:
    assert format_compact(amount) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0%"), (1, "100%"), (0.95, "95%"), (1 / 3, "33.3%"), (0.0001, "<0.1%"), (0.9999, ">99.9%")],
)
def test_shares(share: float, shown: str) -> None:
    assert format_percent(share) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"), (0.00002, "<0.1ms"), (0.0008, "0.8ms"), (0.00996, "10ms"), (0.85, "850ms"), (0.9996, "1.0s"),
        (4.21, "4.2s"), (9.96, "10s"), (42, "42s"), (59.7, "1m00s"), (185, "3m05s"), (3599.7, "1h00m"),
        (7_625, "2h07m"), (86_399, "1d00h"), (273_700, "3d04h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert format_duration(seconds) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0"), (1e-9, "<$0.000001"), (0.00013, "$0.00013"), (0.0042, "$0.0042"), (0.00996, "$0.01"),
        (12.345, "$12.35"), (999.99, "$999.99"), (1_234.5, "$1,234"),
    ],
)  # fmt: skip
def test_costs(amount: float, shown: str) -> None:
    assert format_money(amount) == shown
    assert format_money(amount, "€") == shown.replace("$", "€")


def test_counts_keep_every_digit() -> None:
    assert format_count(1_319) == "1,319"


def test_ascii_terminals_get_the_usual_spelling() -> None:
    assert to_ascii("0.412 ± 0.031 … 日") == "0.412 +/- 0.031 ... ?"
