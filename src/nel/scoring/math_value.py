"""Exact arithmetic for answers: rational functions over the rationals, square roots of primes, `i`, pi and `e`.

In this domain equality is decided, not sampled: square roots of distinct primes and their products are linearly
independent over the rationals, so a polynomial in them has one normal form, and a/b equals c/d exactly when ad equals
bc.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

_MAX_TERMS = 200
_MAX_BITS = 1 << 17
_MAX_POWER = 4_000
_MAX_EXPANDED = 12  # the power up to which a sum is multiplied out
_MAX_PRIME = 2_000

Monomial = tuple[tuple[str, int], ...]
"""Atoms with their powers, in order: `x`, `pi`, `e`, `i`, `√7`."""
Polynomial = dict[Monomial, Fraction]


class BeyondError(Exception):
    """An expression that exact arithmetic does not cover, or not in reasonable time."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A quotient of two polynomials; the denominator is not zero."""

    numerator: Polynomial
    denominator: Polynomial

    @property
    def rational(self) -> Fraction | None:
        """The value, where it is a rational number."""
        if set(self.numerator) <= {()} and set(self.denominator) == {()}:
            return self.numerator.get((), Fraction(0)) / self.denominator[()]
        return None


_ONE: Polynomial = {(): Fraction(1)}


def exact(value: Fraction | int) -> Exact:
    """A rational number."""
    return Exact({(): Fraction(value)} if value else {}, _ONE)


def atom(name: str) -> Exact:
    """A variable or a constant that is treated as one."""
    return Exact({((name, 1),): Fraction(1)}, _ONE)


def equal(one: Exact, other: Exact) -> bool:
    """Whether two quotients are the same, wherever both are defined."""
    return _product(one.numerator, other.denominator) == _product(other.numerator, one.denominator)


def add(one: Exact, other: Exact) -> Exact:
    """The sum."""
    if one.denominator == other.denominator:
        return Exact(_sum(one.numerator, other.numerator), one.denominator)
    above = _sum(_product(one.numerator, other.denominator), _product(other.numerator, one.denominator))
    return Exact(above, _product(one.denominator, other.denominator))


def multiply(one: Exact, other: Exact) -> Exact:
    """The product."""
    return Exact(_product(one.numerator, other.numerator), _product(one.denominator, other.denominator))


def divide(one: Exact, other: Exact) -> Exact:
    """The quotient; `BeyondError` for a division by zero."""
    if not other.numerator:
        raise BeyondError
    return multiply(one, Exact(other.denominator, other.numerator))


def negate(one: Exact) -> Exact:
    """The negative."""
    return Exact({monomial: -factor for monomial, factor in one.numerator.items()}, one.denominator)


def power(base: Exact, exponent: Exact) -> Exact:
    """Whole powers, and half ones of rational numbers."""
    value = exponent.rational
    if value is None or abs(value) > _MAX_POWER:
        raise BeyondError
    if value.denominator != 1:
        return _root_power(base, value)
    count = abs(value.numerator)
    result = Exact(_raised(base.numerator, count), _raised(base.denominator, count))
    return result if value >= 0 else divide(exact(1), result)


def _raised(base: Polynomial, count: int) -> Polynomial:
    if len(base) > 1 and count > _MAX_EXPANDED:
        raise BeyondError
    if any(factor.numerator.bit_length() * count > _MAX_BITS for factor in base.values()):
        raise BeyondError
    if any(factor.denominator.bit_length() * count > _MAX_BITS for factor in base.values()):
        raise BeyondError
    result = _ONE
    while count:  # by squaring
        if count & 1:
            result = _product(result, base)
        count >>= 1
        base = _product(base, base) if count else base
    return result


def _root_power(base: Exact, exponent: Fraction) -> Exact:
    value = base.rational
    if value is None or value < 0:
        raise BeyondError
    if exponent.denominator == 2:
        return power(square_root(base), exact(exponent.numerator))
    above = _whole_root(value.numerator, exponent.denominator)
    below = _whole_root(value.denominator, exponent.denominator)
    return power(exact(Fraction(above, below)), exact(exponent.numerator))


def _whole_root(value: int, degree: int) -> int:
    if value.bit_length() > 1000 or degree > 1000:
        raise BeyondError
    guess = round(value ** (1 / degree)) if value.bit_length() < 900 else 0
    for root in (guess - 1, guess, guess + 1):
        if root >= 0 and root**degree == value:
            return root
    raise BeyondError


def square_root(base: Exact) -> Exact:
    """The root of a rational number as a multiple of square roots of primes; of a negative one, times `i`."""
    value = base.rational
    if value is None:
        raise BeyondError
    whole = value.numerator * value.denominator
    outside, primes = _square_free(abs(whole))
    names = [f"√{prime}" for prime in primes] + (["i"] if whole < 0 else [])
    monomial: Monomial = tuple(sorted((name, 1) for name in names))
    factor = Fraction(outside, value.denominator)
    return Exact({monomial: factor} if factor else {}, _ONE)


def _square_free(value: int) -> tuple[int, list[int]]:
    """`a` and the primes `p`, `q` ... such that the root of `value` is `a` times the roots of `p`, `q` ..."""
    if value.bit_length() > 256:
        raise BeyondError
    outside, primes = 1, []
    candidate = 2
    while candidate <= _MAX_PRIME and candidate * candidate <= value:
        while value % (candidate * candidate) == 0:
            value //= candidate * candidate
            outside *= candidate
        if value % candidate == 0:
            value //= candidate
            primes.append(candidate)
        candidate += 1 if candidate == 2 else 2
    root = isqrt(value)
    if root * root == value:
        return outside * root, primes
    if value > _MAX_PRIME * _MAX_PRIME:
        raise BeyondError  # perhaps no prime
    return outside, [*primes, value]


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    result = dict(one)
    for monomial, factor in other.items():
        total = result.get(monomial, Fraction(0)) + factor
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    if one is _ONE:
        return other
    if other is _ONE:
        return one
    if len(one) * len(other) > _MAX_TERMS:
        raise BeyondError
    result: Polynomial = {}
    for left, factor in one.items():
        for right, other_factor in other.items():
            monomial, reduced = _joined(left, right)
            total = result.get(monomial, Fraction(0)) + factor * other_factor * reduced
            if abs(total.numerator).bit_length() + total.denominator.bit_length() > 4 * _MAX_BITS:
                raise BeyondError
            if total:
                result[monomial] = total
            else:
                result.pop(monomial, None)
    return result


def _joined(left: Monomial, right: Monomial) -> tuple[Monomial, int]:
    """The product of two monomials, with the whole number that squares of roots and of `i` leave."""
    if not left or not right:
        return left or right, 1
    powers = dict(left)
    factor = 1
    for name, count in right:
        powers[name] = powers.get(name, 0) + count
    for name, count in list(powers.items()):
        if count > 2 * _MAX_POWER:
            raise BeyondError
        if count > 1 and name[0] in "√i" and (name == "i" or len(name) > 1):
            factor *= (-1 if name == "i" else int(name[1:])) ** (count // 2)
            if count % 2:
                powers[name] = 1
            else:
                del powers[name]
    return tuple(sorted(powers.items())), factor


def proportional(one: Exact, other: Exact) -> bool:
    """Whether two equations `one = 0` and `other = 0` are constant multiples of each other."""
    left, right = one.numerator, other.numerator
    if not left or not right or _variables(one.denominator) or _variables(other.denominator):
        raise BeyondError
    pivot = max(_variables_of(monomial) for monomial in left)
    scale, other_scale = _coefficient(left, pivot), _coefficient(right, pivot)
    return bool(other_scale) and _product(left, other_scale) == _product(right, scale)


_CONSTANTS = frozenset({"i", "pi", "e"})


def _is_variable(name: str) -> bool:
    return name not in _CONSTANTS and not (name[0] == "√" and len(name) > 1)


def _variables_of(monomial: Monomial) -> Monomial:
    return tuple((name, count) for name, count in monomial if _is_variable(name))


def _variables(polynomial: Polynomial) -> set[str]:
    return {name for monomial in polynomial for name, _ in monomial if _is_variable(name)}


def _coefficient(polynomial: Polynomial, variables: Monomial) -> Polynomial:
    """The constant (in roots, `i`, pi, `e`) that stands before a product of variables."""
    return {
        tuple((name, count) for name, count in monomial if not _is_variable(name)): factor
        for monomial, factor in polynomial.items()
        if _variables_of(monomial) == variables
    }


def variables_of(value: Exact) -> set[str]:
    """The names of the variables in a value."""
    return _variables(value.numerator) | _variables(value.denominator)
