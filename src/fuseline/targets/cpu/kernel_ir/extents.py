"""Extents: the elements that lie between two affine forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.types import Value

Terms = frozenset[tuple[Value, int]]

_CLAMPS = frozenset({"min", "max"})


class Extent(NamedTuple):
    """The elements from `first` up to, not including, `end`."""

    first: Affine
    end: Affine

    @property
    def length(self) -> Affine:
        """How many elements there are."""
        return self.end.plus(self.first, -1)


class Spans(NamedTuple):
    """`extents` that hold several others each, with no clamped row in a term; `number_of[i]` is the one that holds the
    extent of number `i`. `joins`: whether any of them is not just that."""

    extents: Sequence[Extent]
    number_of: Sequence[int]
    joins: bool


def spans_of(known: IndexBounds, extents: Sequence[Extent]) -> Spans:
    """What holds all extents that differ in constants and in clamped rows only.

    The rows of a tile whose count is known when it runs are `min(row, last)`, a value of its own for each.
    """
    latest: dict[tuple[Terms, Terms], int] = {}
    spans: list[Extent] = []
    number_of: list[int] = []
    for extent in extents:
        span = _from_the_least(known, extent)
        key = terms_of(span.first), terms_of(extent.length)
        both = _both(known, spans[latest[key]], span) if key in latest else None
        if both is None:
            latest[key], both = len(spans), span
        spans[latest[key] : latest[key] + 1] = [both]
        number_of.append(latest[key])
    return Spans(spans, number_of, len(spans) < len(extents))


def _from_the_least(known: IndexBounds, extent: Extent) -> Extent:
    """The extent, and what is before it down to where clamped terms are least; itself where nobody knows that."""
    clamped = Affine(0, {atom: count for atom, count in extent.first.terms.items() if atom.op in _CLAMPS})
    low = known.least(clamped)
    return extent if low is None else Extent(extent.first.plus(clamped, -1).plus(Affine(low)), extent.end)


def _both(known: IndexBounds, one: Extent, other: Extent) -> Extent | None:
    """From the first element of either, which differ in the constant only, to the last; None where neither is known to
    be the last."""
    first = min(one.first, other.first, key=lambda form: form.constant)
    for end, before in ((other.end, one.end), (one.end, other.end)):  # rows come in order
        most = known.most(before.plus(end, -1))
        if most is not None and most <= 0:
            return Extent(first, end)
    return None


def modulo(extent: Extent, divisor: int) -> Extent:
    """The extent, moved by multiples of `divisor` to begin at a rest of it."""
    first = extent.first
    dropped = Affine(first.constant // divisor * divisor, {a: c for a, c in first.terms.items() if c % divisor == 0})
    return Extent(first.plus(dropped, -1), extent.end.plus(dropped, -1))


def without(extent: Extent, atom: Value, count: int) -> Extent:
    """The extent, moved so that `count * atom` is 0."""
    digit = Affine(0, {atom: count})
    return Extent(extent.first.plus(digit, -1), extent.end.plus(digit, -1))


def terms_of(form: Affine) -> Terms:
    """The terms of a form, as a key."""
    return frozenset(form.terms.items())
