"""Elementwise ops whose result never falls where what they read rises: what a maximum may be taken before.

Quantising rises, and so does dequantising behind it. Bodies are followed from end to end with the bounds of what there
is, so that integers which are cut off or extended are known to stay the numbers that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np
from xdsl.dialects import arith, linalg, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.stored_integers import constant_of
from fuseline.analysis.structured import body_ops, yielded
from fuseline.ir.fast.direct import body_of, operands_of, result_of

EXACT_IN_F32 = 1 << 24


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers a value lies. `nan`: it may be none; otherwise what was none is the least of them."""

    low: float = -inf
    high: float = inf
    nan: bool = True

    def inside(self, low: float, high: float) -> bool:
        """Whether all of it lies between `low` and `high`."""
        return not self.nan and low <= self.low and self.high <= high


def rising(chain: Iterable[linalg.ops.GenericOp]) -> Bounds | None:
    """Between which numbers lies what `chain` makes of an f32, if that never falls where the f32 rises, is finite, and
    the least there is of NaN; None where it is not so. Each op reads the one before alone."""
    bounds: Bounds | None = Bounds()
    for op in chain:
        bounds = _through(op, bounds) if bounds is not None else None
    known = bounds is not None and not bounds.nan and isfinite(bounds.low) and isfinite(bounds.high)
    return bounds if known else None


def _through(op: linalg.ops.GenericOp, bounds: Bounds) -> Bounds | None:
    """The bounds behind the body of `op`, None where it does not rise."""
    value: SSAValue = body_of(op).args[0]
    found: Bounds | None = bounds
    for inner in body_ops(op):
        constants = [operand for operand in operands_of(inner) if operand is not value]
        if found is None or len(operands_of(inner)) - len(constants) != 1:
            return None
        found = _step(inner, value, constants, found)
        value = result_of(inner)
    return found if yielded(op)[0] is value else None


def _step(op: Operation, value: SSAValue, constants: list[SSAValue], bounds: Bounds) -> Bounds | None:
    if not constants:
        conversion = _CONVERSIONS.get(type(op))
        return conversion(op, value, bounds) if conversion is not None else None
    (number,) = (_number(constant) for constant in constants)
    first = operands_of(op)[0] is value
    step = _STEPS.get(type(op))
    if step is None or number is None or not (first or type(op) in _EITHER_WAY):
        return None
    found = step(bounds, number)
    return _in_type(op, value, found) if found is not None and type(op) in _WHOLE else found


def _number(value: SSAValue) -> float | None:
    constant = constant_of(value)
    if isinstance(constant, FloatAttr):
        return float(constant.value.data) if constant.type == f32 and isfinite(constant.value.data) else None
    return float(constant.value.data) if isinstance(constant, IntegerAttr) else None


# with a constant ------------------------------------------------------------------------------------------------------


_Ends = Callable[[Any, Any], Any]


def _of_ends(of: _Ends, *, positive: bool = False) -> Callable[[Bounds, float], Bounds | None]:
    """Both bounds in f32, as the body computes; `positive`: only by a number above 0."""

    def step(bounds: Bounds, number: float) -> Bounds | None:
        if positive and number <= 0:
            return None
        with np.errstate(all="ignore"):
            low, high = (float(of(np.float32(end), np.float32(number))) for end in (bounds.low, bounds.high))
        return replace(bounds, low=low, high=high)

    return step


def _at_least(bounds: Bounds, number: float) -> Bounds:
    """What is no number becomes the bound, and that is the least there is then, unless all is larger."""
    return Bounds(max(bounds.low, number), max(bounds.high, number), bounds.nan and bounds.low > number)


def _at_most(bounds: Bounds, number: float) -> Bounds:
    return Bounds(min(bounds.low, number), min(bounds.high, number), bounds.nan)


_STEPS: Mapping[type[Operation], Callable[[Bounds, float], Bounds | None]] = {
    arith.MulfOp: _of_ends(mul, positive=True),
    arith.DivfOp: _of_ends(truediv, positive=True),
    arith.AddfOp: _of_ends(add),
    arith.SubfOp: _of_ends(sub),
    arith.AddiOp: lambda bounds, number: replace(bounds, low=bounds.low + number, high=bounds.high + number),
    arith.SubiOp: lambda bounds, number: replace(bounds, low=bounds.low - number, high=bounds.high - number),
    arith.MaxnumfOp: _at_least,
    arith.MinnumfOp: lambda bounds, number: None if bounds.nan else _at_most(bounds, number),
    arith.MinimumfOp: _at_most,
    arith.MaximumfOp: lambda bounds, number: replace(_at_least(bounds, number), nan=bounds.nan),
}

_WHOLE = (arith.AddiOp, arith.SubiOp)

_EITHER_WAY = (arith.MulfOp, arith.AddfOp, arith.AddiOp, arith.MaxnumfOp, arith.MinnumfOp, arith.MinimumfOp,
               arith.MaximumfOp)  # fmt: skip


# conversions ----------------------------------------------------------------------------------------------------------


def _width(value: SSAValue) -> int:
    return value.type.width.data if isinstance(value.type, IntegerType) else 64


def _in_type(op: Operation, value: SSAValue, bounds: Bounds) -> Bounds | None:
    """Of an integer that is made or cut off: the number is one of its type, with a sign or without."""
    width = _width(result_of(op))
    fits = bounds.inside(-(1 << width - 1), (1 << width - 1) - 1) or bounds.inside(0, (1 << width) - 1)
    return bounds if fits else None


def _with_sign(op: Operation, value: SSAValue, bounds: Bounds) -> Bounds | None:
    half = 1 << _width(result_of(op) if isinstance(op, arith.FPToSIOp) else value) - 1
    return _whole(bounds) if bounds.inside(-half, half - 1) else None


def _without_sign(op: Operation, value: SSAValue, bounds: Bounds) -> Bounds | None:
    width = _width(result_of(op) if isinstance(op, arith.FPToUIOp) else value)
    return _whole(bounds) if bounds.inside(0, (1 << width) - 1) else None


def _whole(bounds: Bounds) -> Bounds:
    """The integers towards 0."""
    return replace(bounds, low=float(int(bounds.low)), high=float(int(bounds.high)))


def _exactly(op: Operation, value: SSAValue, bounds: Bounds) -> Bounds | None:
    signed = isinstance(op, arith.SIToFPOp)
    found = (_with_sign if signed else _without_sign)(op, value, bounds)
    exact = bounds.inside(-EXACT_IN_F32, EXACT_IN_F32) and result_of(op).type == f32
    return found if exact else None


_CONVERSIONS: Mapping[type[Operation], Callable[[Operation, SSAValue, Bounds], Bounds | None]] = {
    math.RoundEvenOp: lambda op, value, bounds: bounds,
    arith.FPToSIOp: _with_sign,
    arith.FPToUIOp: _without_sign,
    arith.TruncIOp: _in_type,
    arith.ExtSIOp: _with_sign,
    arith.ExtUIOp: _without_sign,
    arith.SIToFPOp: _exactly,
    arith.UIToFPOp: _exactly,
}
