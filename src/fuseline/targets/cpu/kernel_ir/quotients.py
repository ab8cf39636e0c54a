"""What bounds a quotient, a rest, a shift to the right and a product of two values that are no numbers.

Tiles are counted that way: a loop over `a * b * c` splits its index into `index / c`, that by `b`, and so on. A
quotient by a value is bounded as a number, by the divisor's least, and as a form: `a * d + c` holds `d` no more than
`a` times where `c < 0`, less once. Quotients of quotients are one by the product of their divisors.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Protocol, TypeAlias

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.types import BITS, Value

_BITS_COUNTED = 32
_STEPS = 2
"""How many terms of a dividend are replaced by their bounds in the search for multiples of its divisor."""


class Known(Protocol):
    """What is known about index values (`IndexBounds`)."""

    def form(self, operand: Any) -> Affine:
        """An index operand as sums of products of values: what bounds are asked of."""
        ...

    def least(self, form: Affine) -> int | None:
        """A number that `form` is not below, whatever the conditions in force; None if none is found."""
        ...

    def most(self, form: Affine) -> int | None:
        """A number that `form` does not exceed, whatever the conditions in force; None if none is found."""
        ...

    def upper_before(self, atom: Value, form: Affine) -> int | None:
        """A number that `form` does not exceed under the conditions in force that say nothing about `atom` and what is
        computed after it."""
        ...

    def simpler(self, form: Affine) -> Iterator[Affine]:
        """Forms that `form` does not exceed, of less deeply defined terms."""
        ...


def whole_shares(known: Known, quotient: Value, count: int) -> Iterator[Affine]:
    """What `count` times a quotient by a number does not exceed, where that is a whole multiple of what is divided:
    `c * floor(x / d)` is at most `(c / d) * x`, or `(c / d) * (x - d + 1)` where `c` is negative."""
    operand, divisor = (known.form(arg) for arg in quotient.args)
    number = divisor.constant
    if not divisor.terms and number > 0 and count % number == 0 and _least_before(known, quotient) is not None:
        yield (operand if count > 0 else operand.plus(Affine(1 - number))).times(count // number)


def known_rest(known: Known, form: Affine, number: int) -> int | None:
    """What is left of `form`, divided by `number`, wherever its loops are: an index is as many steps as there were from
    where its loop begins. None where that differs, or `form` may be negative, or `number` is no divisor."""
    if number <= 0:
        return None
    rest: int | None = form.constant
    for atom, count in form.terms.items():
        part = 0 if count % number == 0 else _rest_of_index(known, atom, count, number)
        rest = None if rest is None or part is None else rest + part
    least = None if rest is None else known.least(form)
    return None if rest is None or least is None or least < 0 else rest % number


def _rest_of_index(known: Known, atom: Value, count: int, number: int) -> int | None:
    if atom.op != "index" or count * atom.attr.step % number:
        return None
    begin = known.form(atom.attr.lo)
    return None if begin.terms else count * begin.constant


def _least_before(known: Known, division: Value) -> int | None:
    """A number from 0 on that what is divided is not below; None if none is found."""
    found = known.upper_before(division, known.form(division.args[0]).times(-1))
    return -found if found is not None and found <= 0 else None


def bounds_of_division(known: Known, atom: Value, above: bool) -> Iterator[list[Affine]]:
    """Upper (or lower) bounds of a quotient or rest of unsigned numbers.

    What may be negative is divided as the large number of the same bits: the quotient may be any, while a rest is below
    its divisor.
    """
    divisor = known.form(atom.args[1])
    smallest, least = known.least(divisor), _least_before(known, atom)
    if smallest is None or smallest <= 0:
        if least is not None and not above:
            yield [Affine()]
    elif atom.op == "urem":
        yield from _rest(known, atom, divisor, least) if above else ([Affine()],)
    elif least is not None and not above:
        most = known.most(divisor)
        yield [Affine(0 if most is None else least // most)]
    elif least is not None:
        yield from ([found] for found in _quotient(known, atom, divisor, smallest))


def _rest(known: Known, atom: Value, divisor: Affine, least: int | None) -> Iterator[list[Affine]]:
    whole = None if least is None else known.upper_before(atom, known.form(atom.args[0]))
    if not divisor.terms:
        yield [Affine(divisor.constant - 1 if whole is None else min(divisor.constant - 1, whole))]
        return
    yield [divisor.plus(Affine(1), -1)]
    if whole is not None:
        yield [Affine(whole)]


def _quotient(known: Known, atom: Value, divisor: Affine, smallest: int) -> Iterator[Affine]:
    operand = known.form(atom.args[0])
    whole = known.upper_before(atom, operand)
    if whole is not None:
        yield Affine(whole // smallest)
    if operand.terms:
        yield from _shares(known, operand, _terms(known, divisor), smallest)


def _shares(known: Known, operand: Affine, divisor: _Terms, smallest: int) -> Iterator[Affine]:
    """How often `divisor`, a product, goes into what `operand` does not exceed, where that is multiples of it and a
    number."""
    if len(divisor) == 1:
        yield from _alike(known, operand, divisor, smallest, _STEPS)
    inner = _single(operand)
    if inner is not None and inner.op == "udiv":
        below = known.form(inner.args[1])
        least = known.least(below)
        if least is not None and least > 0 and known.least(known.form(inner.args[0])) is not None:
            yield from _shares(
                known, known.form(inner.args[0]), _times(divisor, _terms(known, below)), smallest * least
            )


def _alike(known: Known, operand: Affine, divisor: _Terms, smallest: int, steps: int) -> Iterator[Affine]:
    share = _share(known, operand, divisor, smallest)
    if share is not None:
        yield share
    elif steps:
        for simpler in known.simpler(operand):
            yield from _alike(known, simpler, divisor, smallest, steps - 1)


def _share(known: Known, operand: Affine, divisor: _Terms, smallest: int) -> Affine | None:
    ((product, number),) = divisor.items()
    total = Affine(operand.constant // smallest if operand.constant >= 0 else -1)
    for term, count in _terms(known, operand.plus(Affine(operand.constant), -1)).items():
        rest = list(term)
        if count % number or any(rest.count(value) < product.count(value) for value in product):
            return None
        for value in product:
            rest.remove(value)
        if len(rest) > 1:
            return None
        total = total.plus(Affine(0, {rest[0]: 1}) if rest else Affine(1), count // number)
    return total


def _single(form: Affine) -> Value | None:
    """The value that a form is."""
    return next(iter(form.terms)) if form.constant == 0 and list(form.terms.values()) == [1] else None


_Terms: TypeAlias = dict[tuple[Value, ...], int]
"""A polynomial: how often each product of values, in the order of their numbers, is in it."""


def _terms(known: Known, form: Affine) -> _Terms:
    total: _Terms = {(): form.constant} if form.constant else {}
    for atom, count in form.terms.items():
        factors = [_terms(known, known.form(arg)) for arg in atom.args] if atom.op == "mul" else [{(atom,): 1}]
        for term, times in _times(factors[0], factors[-1] if len(factors) > 1 else {(): 1}).items():
            total[term] = total.get(term, 0) + count * times
    return total


def _times(one: _Terms, other: _Terms) -> _Terms:
    total: _Terms = {}
    for a, count in one.items():
        for b, times in other.items():
            term = tuple(sorted(a + b, key=lambda value: value.number))
            total[term] = total.get(term, 0) + count * times
    return total


def bounds_of_product(known: Known, atom: Value, above: bool) -> Iterator[list[Affine]]:
    """Of values that are not negative: the product of their ends, where it fits."""
    sides = [known.form(arg) for arg in atom.args]
    lows, highs = [known.least(side) for side in sides], [known.most(side) for side in sides]
    if any(low is None or low < 0 for low in lows) or None in highs:
        return
    low, high = prod(low for low in lows if low is not None), prod(high for high in highs if high is not None)
    if high < 1 << (BITS[atom.type.dtype] - 1):
        yield [Affine(high if above else low)]


def bounds_of_shift(known: Known, atom: Value, above: bool) -> Iterator[list[Affine]]:
    """Bits moved to the right by at least one place are a number that is not negative, and no greater than what all
    bits give.

    What is left of 64 bits that nobody knows is too large to be counted with.
    """
    operand, places = (known.form(arg) for arg in atom.args)
    least, most, bits = known.least(operand), known.most(operand), BITS[atom.type.dtype]
    if places.terms or places.constant <= 0:
        return
    if least is not None and least >= 0 and most is not None:
        yield [Affine((most if above else least) >> places.constant)]
    elif bits - places.constant <= _BITS_COUNTED:
        yield [Affine(((1 << bits) - 1) >> places.constant if above else 0)]
