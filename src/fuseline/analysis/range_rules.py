"""What integer arithmetic makes of ranges of sizes; see `scalar_ranges.py`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Operation

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.dim_order import never_less
from fuseline.ir.scalar_ops import IndexCastUIOp

LARGEST = 1 << 40
"""No tensor has more elements, so that no size and no product of sizes is greater."""


@dataclass(frozen=True)
class ScalarRange:
    """`low..high` (None: not known); where it is `met`, it grows (1) or shrinks (-1) with each of `varies`, so that a
    sum of two that go the same way is met, too."""

    low: Dim | None
    high: Dim | None
    met: bool
    varies: frozenset[tuple[Hashable, int]] = frozenset()

    @property
    def single(self) -> Dim | None:
        """The one value that there is."""
        return self.low if self.low is not None and self.low == self.high else None


ANYTHING = ScalarRange(None, None, True)
"""Data."""

VAGUE = ScalarRange(None, None, False)
"""Some number."""


def of_bits(bits: int) -> ScalarRange:
    """What a signed integer of so many bits can be."""
    return ScalarRange(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, False) if 0 < bits < 64 else VAGUE


def fits(range_: ScalarRange, bits: int) -> bool:
    """Whether what is known of a range lies within a signed integer of so many bits."""
    limit = 1 << (bits - 1) if bits else 0
    ends = [_extremes(end) for end in (range_.low, range_.high) if end is not None]
    return all(low >= -limit and high < limit for low, high in ends)


def _extremes(end: Dim) -> tuple[int, int]:
    """Numbers between which a size lies whatever the symbols are."""
    low, high = d.lower_bound(end), d.upper_bound(end)
    reach = LARGEST * sum(abs(count) for _, count in end.terms) if not isinstance(end, int) else 0
    return -reach if low is None else low, reach if high is None else high


def _both(function: Callable[[Dim, Dim], Dim], a: Dim | None, b: Dim | None) -> Dim | None:
    return None if a is None or b is None else function(a, b)


def _not_negative(range_: ScalarRange) -> bool:
    return range_.low is not None and never_less(range_.low, 0)


def _plus(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    met = a.met and b.met and not a.varies & _turned(b)
    return ScalarRange(_both(d.add, a.low, b.low), _both(d.add, a.high, b.high), met, a.varies | b.varies)


def _negative(a: ScalarRange) -> ScalarRange:
    low, high = (None if end is None else d.mul(end, -1) for end in (a.high, a.low))
    return replace(a, low=low, high=high, varies=_turned(a))


def _turned(a: ScalarRange) -> frozenset[tuple[Hashable, int]]:
    return frozenset((thing, -way) for thing, way in a.varies)


def _minus(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    return _plus(a, _negative(b))


def _times(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    """A product with a number, or with a size."""
    factor, other = (b.single, a) if b.single is not None else (a.single, b)
    if factor is None:
        return VAGUE
    if isinstance(factor, int) and factor < 0:
        return _negative(_times(other, ScalarRange(-factor, -factor, True)))
    if not never_less(factor, 0):
        return VAGUE
    low, high = (None if end is None else d.mul(end, factor) for end in (other.low, other.high))
    return replace(other, low=low, high=high)


def _at_most(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    """The smaller one; of something and a size both ends are met."""
    highs = [end for end in (a.high, b.high) if end is not None]
    met = a.met and b.met and (a.single is not None or b.single is not None)
    return ScalarRange(
        _both(d.minimum, a.low, b.low), d.minimum(highs[0], highs[-1]) if highs else None, met, a.varies | b.varies
    )


def _at_least(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    return _negative(_at_most(_negative(a), _negative(b)))


def _up_to(high: Dim | None) -> ScalarRange:
    """From 0 on."""
    return ScalarRange(0, high, False) if high is not None else VAGUE


def _unsigned_least(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    """What is negative is large: no more than either one that never is."""
    highs = [side.high for side in (a, b) if _not_negative(side) and side.high is not None]
    if not highs:
        return VAGUE
    return _at_most(a, b) if _not_negative(a) and _not_negative(b) else _up_to(d.minimum(highs[0], highs[-1]))


def _rest(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    """A remainder by what is not negative, with the sign of what is divided; by 0 it is 0."""
    if not _not_negative(b) or b.high is None:
        return VAGUE
    most = d.maximum(d.sub(b.high, 1), 0)
    if _not_negative(a):
        return _up_to(most if a.high is None else d.minimum(a.high, most))
    return ScalarRange(d.mul(most, -1), most, False)


def _unsigned_rest(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    return replace(_rest(ScalarRange(0, a.high if _not_negative(a) else None, False), b), met=False)


def _quotient(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    """Something that is not negative, divided by a number: rounded to 0 is rounded down."""
    if not _not_negative(a) or not isinstance(b.single, int) or b.single <= 0 or a.low is None:
        return VAGUE
    return replace(a, low=d.floor_div(a.low, b.single), high=None if a.high is None else d.floor_div(a.high, b.single))


def _shifted_right(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    number = b.single
    return (
        _quotient(a, replace(b, low=1 << number, high=1 << number))
        if isinstance(number, int) and 0 <= number < 63
        else VAGUE
    )


def _rounded_down(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    if not isinstance(b.single, int) or b.single <= 0:
        return VAGUE
    low, high = (None if end is None else d.floor_div(end, b.single) for end in (a.low, a.high))
    return replace(a, low=low, high=high)


def _masked(a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    """Bits that a number which is not negative has."""
    masks = [side.high for side in (a, b) if _not_negative(side) and side.high is not None]
    return _up_to(d.minimum(masks[0], masks[-1]) if masks else None)


def _chosen(condition: ScalarRange, a: ScalarRange, b: ScalarRange, **_: int) -> ScalarRange:
    del condition
    return ScalarRange(_both(d.minimum, a.low, b.low), _both(d.maximum, a.high, b.high), False, a.varies | b.varies)


def _same(a: ScalarRange, **_: int) -> ScalarRange:
    """A conversion that keeps the number, if the new type can hold it."""
    return a


def _as_unsigned(a: ScalarRange, *, bits: int) -> ScalarRange:
    """A conversion to a wider type, of which a negative number makes a large one."""
    if _not_negative(a):
        return a
    return _up_to((1 << bits) - 1) if bits < 64 else a


RULES: dict[type[Operation], Callable[..., Any]] = {
    arith.AddiOp: _plus,
    arith.SubiOp: _minus,
    arith.MuliOp: _times,
    arith.MinSIOp: _at_most,
    arith.MaxSIOp: _at_least,
    arith.MinUIOp: _unsigned_least,
    arith.RemSIOp: _rest,
    arith.RemUIOp: _unsigned_rest,
    arith.DivSIOp: _quotient,
    arith.DivUIOp: _quotient,
    arith.FloorDivSIOp: _rounded_down,
    arith.ShRUIOp: _shifted_right,
    arith.ShRSIOp: _shifted_right,
    arith.AndIOp: _masked,
    arith.SelectOp: _chosen,
    arith.IndexCastOp: _same,
    arith.ExtSIOp: _same,
    arith.TruncIOp: _same,
    arith.ExtUIOp: _as_unsigned,
    IndexCastUIOp: _as_unsigned,
}
"""By kind of op: the ranges of its operands, and `bits`, how wide the first one is."""
