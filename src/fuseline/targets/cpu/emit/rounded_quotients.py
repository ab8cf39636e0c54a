"""Quotients of a constant that are rounded to integers and kept within bounds: what quantises.

    min(max(round(x / s) + z, low), high)      with      x / s      as      fma(x, h, x * l),   1 / s = h + l

A product and a multiply-add take an eighth of what a division of vectors does (AVX-512: 2 cycles in place of 16). `h`
is the reciprocal cut off after 24 bits, `l` the rest: the sum is off by a quotient's last place at the most, and all
but never rounds to another integer. Where it does is known before it is used: both ways to compute are monotone up to a
last place, so they are the same function between the bounds if they agree on the numbers around each step. That is
asked for every scale; one that fails keeps its division. Beyond the bounds, infinities and NaN included (`h` and `l`
are positive), both end at the same one. Where kernels are shared, scales are operands, and divided by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.stored_integers import constant_of
from fuseline.analysis.structured import body_ops, is_generic
from fuseline.ir.fast.direct import users_of_value
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

MOST = 1 << 10
"""Bounds further from 0 than this are not looked at."""

SCALES = 2.0**-90, 2.0**90
"""Between these, neither a reciprocal nor what is left of it leaves the normal numbers."""

NEIGHBOURS = 8
"""Numbers on each side of a step that are compared: a last place of a quotient is two of the dividend's at the most."""

_LOWER, _UPPER = (arith.MaxnumfOp, arith.MaximumfOp), (arith.MinnumfOp, arith.MinimumfOp)


def rounded_quotients(ops: Iterable[Operation]) -> list[arith.DivfOp]:
    """The divisions in bodies of `ops` that may be multiplications: of f32, by a constant, rounded and bounded."""
    inside = (inner for op in ops if is_generic(op) for inner in body_ops(op))
    return [inner for inner in inside if isinstance(inner, arith.DivfOp) and _may_multiply(inner)]


def times_parts(k: KernelBuilder, a: Value, b: Value, *, scale: float) -> Value:
    """`a / scale`, up to a last place, by its reciprocal in two parts; a division on a machine without FMA."""
    if not k.machine.fma:
        return k.div(a, b)
    high, low = _parts(scale)
    return k.fma(a, high, k.mul(a, low)) if low else k.mul(a, high)


def rule_of(op: arith.DivfOp) -> partial[Value]:
    """How one of `rounded_quotients` is computed."""
    scale = _number(op.rhs)
    assert scale is not None
    return partial(times_parts, scale=scale)


def _may_multiply(op: arith.DivfOp) -> bool:
    scale, rounded = _number(op.rhs), _only_user(op.result)
    if scale is None or op.result.type != f32 or not isinstance(rounded, math.RoundEvenOp):
        return False
    bounds = _bounds(rounded.result)
    return bounds is not None and _agrees(scale, *bounds)


def _bounds(value: SSAValue) -> tuple[int, int] | None:
    """Between which integers an integer in a float is kept, as a sum with a whole number or as it is."""
    offset, user = 0.0, _only_user(value)
    if isinstance(user, arith.AddfOp):
        added = _number(user.rhs) if user.lhs is value else _number(user.lhs)
        if added is None:
            return None
        offset, value = added, user.result
    ends = dict[bool, float]()
    for _ in range(2):
        user = _only_user(value)
        if not isinstance(user, (*_LOWER, *_UPPER)):
            return None
        end = _number(user.rhs) if user.lhs is value else _number(user.lhs)
        if end is None:
            return None
        ends[isinstance(user, _LOWER)] = end - offset
        value = user.result
    whole = len(ends) == 2 and all(end == round(end) and abs(end) < MOST for end in (*ends.values(), offset))
    return (int(ends[True]), int(ends[False])) if whole and ends[True] < ends[False] else None


def _only_user(value: SSAValue) -> Operation | None:
    users = users_of_value(value)
    return users[0] if len(users) == 1 else None


def _number(value: SSAValue) -> float | None:
    constant = constant_of(value)
    return float(constant.value.data) if isinstance(constant, FloatAttr) else None


# the two ways to compute ----------------------------------------------------------------------------------------------


@cache
def _parts(scale: float) -> tuple[float, float]:
    """1 / scale as a number of f32 that is no larger, and the rest, rounded to f32."""
    exact = 1.0 / float(np.float32(scale))
    high = np.float32(exact)
    if float(high) > exact:
        high = np.nextafter(high, np.float32(0))
    return float(high), float(np.float32((1.0 - float(high) * float(np.float32(scale))) * exact))


@cache
def _agrees(scale: float, low: int, high: int) -> bool:
    """Whether both ways round alike all that is between the bounds."""
    if not SCALES[0] < scale < SCALES[1]:
        return False
    steps = (np.arange(low - 1, high + 1) + 0.5) * float(np.float32(scale))
    middle = steps.astype(np.float32).view(np.int32)
    x = np.unique(middle[:, None] + np.arange(-NEIGHBOURS, NEIGHBOURS + 1, dtype=np.int32)).astype(np.int32)
    numbers = x.view(np.float32)
    wanted = np.rint(numbers / np.float32(scale))
    return all(np.array_equal(np.rint(found), wanted) for found in _multiplied(numbers, *_parts(scale)))


def _multiplied(x: NDArray[np.float32], high: float, low: float) -> list[NDArray[np.float32]]:
    """What the multiply-add gives, rounded once; both numbers that it may be where f64 cannot tell."""
    total = x.astype(np.float64) * high + (x * np.float32(low)).astype(np.float64)
    return [np.nextafter(total, side).astype(np.float32) for side in (-np.inf, np.inf)]


def quotient_rules(ops: Iterable[Operation]) -> Mapping[Operation, partial[Value]]:
    """The rules of `rounded_quotients`."""
    return {op: rule_of(op) for op in rounded_quotients(ops)}
