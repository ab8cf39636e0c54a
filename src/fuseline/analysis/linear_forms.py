"""Coordinates as linear forms of loops, with rounded quotients and folds as terms of their own: what addresses are made
of.

`at // 2 * 2 + at % 2` is `at` again: a quotient is a term like a loop, a remainder is `at - 2 * (at // 2)`, and what
cancels is gone. A coordinate that a border folds back into its tensor is itself plus its fold, which is 0 inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fuseline.analysis.border_modes import BorderMode, folded
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim


@dataclass(frozen=True, slots=True)
class Floor:
    """`floor((constant + sum(coefficient * loop)) / divisor)`; the terms are loops, sorted."""

    terms: tuple[tuple[int, Dim], ...]
    constant: Dim
    divisor: Dim

    @property
    def numerator(self) -> Linear:
        """What is divided."""
        return Linear(dict(self.terms), self.constant)


@dataclass(frozen=True, slots=True)
class Fold:
    """What a border adds to a coordinate `constant + sum(coefficient * loop)`: the way from there to the element of
    `0 <= . < size` that it repeats by `mode`, 0 inside. The terms are loops, sorted."""

    terms: tuple[tuple[int, Dim], ...]
    constant: Dim
    size: Dim
    mode: BorderMode

    @property
    def coordinate(self) -> Linear:
        """What is folded."""
        return Linear(dict(self.terms), self.constant)


Atom: TypeAlias = "int | Floor | Fold"
"""A loop by its number, a rounded quotient of loops, or what a border adds to a coordinate."""


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + sum(coefficient * atom)`."""

    terms: Mapping[Atom, Dim]
    constant: Dim = 0

    @property
    def plain(self) -> bool:
        """Whether it is linear in the loops themselves."""
        return all(isinstance(atom, int) for atom in self.terms)

    @property
    def loops(self) -> dict[int, Dim]:
        """The coefficients of the loops themselves."""
        return {atom: coefficient for atom, coefficient in self.terms.items() if isinstance(atom, int)}

    def plus(self, other: Linear, factor: Dim = 1) -> Linear:
        """`self + factor * other`; terms that cancel are gone."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            _accumulate(terms, atom, d.mul(coefficient, factor))
        return Linear(terms, d.add(self.constant, d.mul(other.constant, factor)))

    def times(self, factor: Dim) -> Linear:
        """The product with a size."""
        return Linear({}).plus(self, factor)

    def counted_from(self, loop: int, start: Dim) -> Linear | None:
        """The form with `loop` counted from `start`; None where that puts a quotient inside a quotient."""
        if any(not isinstance(atom, int) and any(inner == loop for inner, _ in atom.terms) for atom in self.terms):
            return self.with_loops(lambda i: Linear({i: 1}, start if i == loop else 0))
        return Linear(self.terms, d.add(self.constant, d.mul(self.terms.get(loop, 0), start)))

    def with_loops(self, place: Callable[[int], Linear]) -> Linear | None:
        """The form with every loop replaced by another form; None where that puts a quotient or a fold inside of
        one."""
        total = Linear({}, self.constant)
        for atom, coefficient in self.terms.items():
            new = place(atom) if isinstance(atom, int) else _moved(atom, place)
            if new is None:
                return None
            total = total.plus(new, coefficient)
        return total


def _moved(atom: Floor | Fold, place: Callable[[int], Linear]) -> Linear | None:
    inner = (atom.numerator if isinstance(atom, Floor) else atom.coordinate).with_loops(place)
    if inner is None:
        return None
    return floor_of(inner, atom.divisor) if isinstance(atom, Floor) else fold_of(inner, atom.size, atom.mode)


def constant(value: Dim) -> Linear:
    """The form that is `value` everywhere."""
    return Linear({}, value)


def floor_of(form: Linear, divisor: Dim) -> Linear | None:
    """`floor(form / divisor)` as a term; None where `form` has a quotient or a fold in it."""
    if not form.plain:
        return None
    if not form.terms:
        return constant(d.floor_div(form.constant, divisor))
    return Linear({Floor(tuple(sorted(form.loops.items())), form.constant, divisor): 1})


def fold_of(form: Linear, size: Dim, mode: BorderMode) -> Linear | None:
    """What a border adds to the coordinate `form` of a dimension of `size`, as a term; None where `form` has a quotient
    or a fold in it."""
    if not form.plain:
        return None
    if not form.terms and isinstance(form.constant, int) and isinstance(size, int):
        return constant(int(folded(form.constant, size, mode)) - form.constant)
    return Linear({Fold(tuple(sorted(form.loops.items())), form.constant, size, mode): 1})


def range_of(form: Linear, extents: Sequence[Dim]) -> tuple[int, int] | None:
    """The least and the greatest value over all loops; None where they are not known."""
    if not isinstance(form.constant, int):
        return None
    low = high = form.constant
    for atom, coefficient in form.terms.items():
        extent = extents[atom] if isinstance(atom, int) else None
        if not isinstance(coefficient, int) or not isinstance(extent, int):
            return None
        reach = coefficient * (extent - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def flatten(at: Sequence[Linear], dims: Sequence[Dim]) -> Linear:
    """The row-major linear index of the coordinates `at` in a tensor of sizes `dims`."""
    strides: list[Dim] = [1]
    for size in reversed(dims[1:]):
        strides.append(d.mul(strides[-1], size))
    terms: dict[Atom, Dim] = {}
    total: Dim = 0
    for coordinate, stride in zip(at, reversed(strides[: len(dims)]), strict=True):
        total = d.add(total, d.mul(coordinate.constant, stride))
        for atom, coefficient in coordinate.terms.items():
            _accumulate(terms, atom, d.mul(coefficient, stride))
    return Linear(terms, total)


def _accumulate(terms: dict[Atom, Dim], atom: Atom, coefficient: Dim) -> None:
    """Add to the coefficient of `atom`; a term that cancels is gone."""
    total = d.add(terms.get(atom, 0), coefficient)
    if total == 0:
        terms.pop(atom, None)
    else:
        terms[atom] = total


def delinearize(whole: Linear, sizes: Sequence[Dim], extents: Sequence[Dim]) -> list[Linear] | None:
    """The coordinates of linear index `whole` in a shape of `sizes`: what `flatten` undoes. None where a quotient would
    be divided again."""
    moving = [i for i, size in enumerate(sizes) if size != 1]
    out = [constant(0)] * len(sizes)
    for i in reversed(moving[1:]):
        division = divided(whole, sizes[i], extents)
        if division is None:
            return None
        whole, out[i] = division
    if moving:
        out[moving[0]] = whole
    return out


def divided(whole: Linear, size: Dim, extents: Sequence[Dim]) -> tuple[Linear, Linear] | None:
    """`whole` divided by `size`, rounded down, and the rest: loops that step by multiples of `size` stay out of the
    quotient."""
    quotient, rest = _multiples(whole, size, extents)
    if _is_delinearized(rest, size, extents):
        return quotient, rest
    rounded = floor_of(rest, size)
    return None if rounded is None else (quotient.plus(rounded), rest.plus(rounded, d.mul(size, -1)))


def _is_delinearized(form: Linear, size: Dim, extents: Sequence[Dim]) -> bool:
    """Whether `0 <= form < size` wherever the loops are."""
    if isinstance(size, int):
        found = range_of(form, extents)
        return found is not None and found[0] >= 0 and found[1] < size
    return (
        form.constant == 0
        and all(isinstance(atom, int) and c == 1 and extents[atom] == size for atom, c in form.terms.items())
        and len(form.terms) <= 1
    )


def _multiples(whole: Linear, size: Dim, extents: Sequence[Dim]) -> tuple[Linear, Linear]:
    """The terms that are multiples of `size`, divided by it, and the rest."""
    divided_terms = {atom: d.floor_div(c, size) for atom, c in whole.terms.items()}
    terms = {atom: q for atom, q in divided_terms.items() if d.mul(q, size) == whole.terms[atom]}
    rest = Linear({atom: c for atom, c in whole.terms.items() if atom not in terms}, whole.constant)
    low = range_of(rest, extents)
    if low is None or not isinstance(size, int):
        return Linear(terms), rest
    steps = low[0] // size
    return Linear(terms, steps), rest.plus(constant(-steps * size))


class LinearCoordinates:
    """Linear forms as coordinates of `analysis/moves.py`; `extents` are those of the loops."""

    def __init__(self, extents: Sequence[Dim]) -> None:
        self.extents = extents

    def number(self, value: Dim) -> Linear:
        """The form that is `value` everywhere."""
        return constant(value)

    def moved(self, at: Linear, stride: Dim, offset: Dim) -> Linear:
        """`stride * at + offset`."""
        return constant(offset).plus(at, stride)

    def linearized(self, at: Sequence[Linear], sizes: Sequence[Dim]) -> Linear:
        """The row-major index."""
        return flatten(at, sizes)

    def delinearized(self, at: Linear, sizes: Sequence[Dim]) -> list[Linear] | None:
        """The coordinates; None where a quotient would be divided again."""
        return delinearize(at, sizes, self.extents)
