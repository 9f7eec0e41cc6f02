"""The process that compares answers by computer algebra: math-verify reads the LaTeX, sympy decides.

Equality is decided here by relative difference at high precision and by simplification; math-verify's own comparison is
used for relations against sets alone, as it rounds (two tiny numbers are one to it).
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import sympy  # type: ignore[import-untyped]
from math_verify import parse, verify  # type: ignore[import-untyped]
from math_verify.parser import LatexExtractionConfig  # type: ignore[import-untyped]

from nel.scoring.math_pool import serve

_CONFIG = [LatexExtractionConfig(boxed_match_priority=-1)]
_DIGITS = 40
_AGREED = sympy.Float("1e-25", 50)
_POINTS = (
    "0.7312896451", "1.9384752016", "-0.5182736409", "2.6457513110", "-1.4142735624", "3.2718281828", "0.3183098861",
)  # fmt: skip


def readable(text: str) -> bool:
    """Whether math-verify can read the text."""
    return _read(text) is not None


def equal(one: str, other: str) -> bool:
    """Whether two answers are equal, so far as it can be shown."""
    left, right = _read(one), _read(other)
    return left is not None and right is not None and _same(left, right)


def _read(text: str) -> Any:
    found = parse(f"${text}$", _CONFIG, parsing_timeout=None, raise_on_error=False)
    return next((value for value in found if not isinstance(value, str)), None)


def _same(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, sympy.MatrixBase) and isinstance(other, sympy.MatrixBase):
        return one.shape == other.shape and all(map(_same, one, other))
    if isinstance(one, sympy.Eq) and isinstance(other, sympy.Eq):
        return _proportional(one.lhs - one.rhs, other.lhs - other.rhs)
    if isinstance(one, sympy.FiniteSet) and isinstance(other, sympy.FiniteSet):
        left, right = list(one), list(other)
        return len(left) == len(right) and all(any(_same(item, second) for second in right) for item in left)
    if isinstance(one, sympy.Tuple) and isinstance(other, sympy.Tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr):
        return _same_expressions(one, other)
    sets = isinstance(one, sympy.Set) and isinstance(other, sympy.Set)
    if sets:
        return bool(one.is_subset(other)) and bool(other.is_subset(one))
    mixed = {isinstance(value, sympy.Set) for value in (one, other)} == {True, False}
    return mixed and bool(verify([one], [other], timeout_seconds=None, allow_set_relation_comp=True))


def _same_expressions(one: Any, other: Any) -> bool:
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    agreed = _agreement(one, other, symbols)
    if agreed is not None:
        return agreed
    return bool(sympy.simplify(one - other) == 0)


def _agreement(one: Any, other: Any, symbols: list[Any]) -> bool | None:
    """False where the values differ at a point, True where they agree at every point, None where there are too few."""
    agreed = 0
    for shift in range(len(_POINTS) if symbols else 1):
        point = {
            symbol: sympy.Rational(_POINTS[(shift + index) % len(_POINTS)]) + index
            for index, symbol in enumerate(symbols)
        }
        left, right = (sympy.N(value.subs(point), _DIGITS) for value in (one, other))
        if not (_finite(left) and _finite(right)):
            continue
        scale = max(sympy.Abs(left), sympy.Abs(right))
        if scale != 0 and sympy.Abs(left - right) > scale * _AGREED:
            return False
        agreed += 1
    return True if agreed >= (3 if symbols else 1) else None


def _finite(value: Any) -> bool:
    return bool(value.is_number and value.is_finite and not value.has(sympy.nan, sympy.zoo, sympy.oo))


def _proportional(one: Any, other: Any) -> bool:
    """Whether the quotient of two expressions is one constant, not zero."""
    symbols = sorted(one.free_symbols | other.free_symbols, key=str)
    if not symbols or one.free_symbols != other.free_symbols:
        return False
    quotient = sympy.simplify(one / other)
    return bool(quotient.is_number and quotient.is_finite and quotient != 0)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.set_int_max_str_digits(100_000)
    serve({"equal": equal, "readable": readable}, memory=3 << 30)
