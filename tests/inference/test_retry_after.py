"""What a `Retry-After` header says, and how long a client waits."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nel.inference.retry import Backoff, parse_retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0.25", 0.25),
        ("1000000", 1e6),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("Tue Nov 14 22:14:20 2023", 60.0),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 0.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1_000", None),
        ("٣", None),
        ("", None),
        ("soon", None),
        ("Tue, 99 Nov 2023 22:14:20 GMT", None),
    ],
)
def test_seconds_and_dates_are_read(value: str, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@given(st.text(max_size=40))
@example("1e400")
@example("Mon, 01 Jan 99999 00:00:00 GMT")
@example("Mon, 01 Jan 0001 00:00:00 GMT")
@settings(deadline=None, max_examples=300)
def test_any_header_is_a_finite_wait_or_none(value: str) -> None:
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@given(st.integers(0, 4_000_000_000))
@settings(deadline=None, max_examples=100)
def test_an_http_date_is_the_time_until_then(seconds: int) -> None:
    date = format_datetime(datetime.fromtimestamp(seconds, UTC), usegmt=True)
    assert parse_retry_after(date, NOW) == max(0.0, seconds - NOW)


@given(st.integers(1, 10_000), st.none() | st.text(max_size=20) | st.integers(0, 10**9).map(str), st.integers())
@settings(deadline=None, max_examples=200)
def test_a_wait_is_never_above_the_cap_nor_below_what_was_asked_within_it(
    tries: int, header: str | None, seed: int
) -> None:
    backoff = Backoff(base=1.0, cap=60.0)
    delay = backoff.delay(tries, header, NOW, Random(seed))
    assert 0 <= delay <= 60
    asked = parse_retry_after(header, NOW) if header is not None else None
    if asked is not None:
        assert delay >= min(asked, 60)
