"""Exact division of polynomials with integer coefficients, given as `{monomial: coefficient}`; a monomial is a tuple of
atoms with repetition.

    (64 a b + 64 a c) / (16 b + 16 c) = 4 a

Long division by leading terms under the lexicographic order of exponents (D. Cox, J. Little, D. O'Shea, Ideals,
Varieties, and Algorithms, 2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

AtomT = TypeVar("AtomT")
Monomial = tuple[AtomT, ...]


def exact_quotient(
    numerator: Mapping[Monomial[AtomT], int], denominator: Mapping[Monomial[AtomT], int]
) -> dict[Monomial[AtomT], int] | None:
    """The polynomial that times `denominator` (not 0) is `numerator`; None where there is none."""
    if len(denominator) == 1:
        return _by_monomial(numerator, *next(iter(denominator.items())))
    order = sorted({atom for terms in (numerator, denominator) for monomial in terms for atom in monomial}, key=repr)
    divisor = _leading(denominator, order)
    rest, quotient = dict(numerator), dict[Monomial[AtomT], int]()
    while rest:
        lead = _leading(rest, order)
        factor = _without(lead, divisor)
        if factor is None or rest[lead] % denominator[divisor]:
            return None
        quotient[factor] = rest[lead] // denominator[divisor]
        _subtract(rest, denominator, factor, quotient[factor])
    return quotient


def _by_monomial(
    numerator: Mapping[Monomial[AtomT], int], divisor: Monomial[AtomT], coefficient: int
) -> dict[Monomial[AtomT], int] | None:
    """Term by term: most divisors are numbers."""
    out = dict[Monomial[AtomT], int]()
    for monomial, c in numerator.items():
        rest = _without(monomial, divisor)
        if rest is None or c % coefficient:
            return None
        out[rest] = c // coefficient
    return out


def _leading(terms: Mapping[Monomial[AtomT], int], order: list[AtomT]) -> Monomial[AtomT]:
    return max(terms, key=lambda monomial: [monomial.count(atom) for atom in order])


def _without(monomial: Monomial[AtomT], factor: Monomial[AtomT]) -> Monomial[AtomT] | None:
    """The monomial divided by another, None where that leaves a fraction."""
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _subtract(
    rest: dict[Monomial[AtomT], int], terms: Mapping[Monomial[AtomT], int], factor: Monomial[AtomT], coefficient: int
) -> None:
    """Take `coefficient * factor * terms` from `rest`, in which no term is 0."""
    for monomial, c in terms.items():
        key = tuple(sorted(monomial + factor, key=repr))
        left = rest.get(key, 0) - c * coefficient
        if left:
            rest[key] = left
        else:
            del rest[key]
