"""Where a resized axis of symbolic size reads its input and with which weights: the tables of `resampling`, computed
when the program runs.

Each table is a small op over the positions of the result, in float64 as the tables of known sizes are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.resampling import Resampling
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, floor_div, mul

FLOAT64: np.dtype[Any] = np.dtype(np.float64)
COORDINATES = ("asymmetric", "half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners")
LARGEST_DENOMINATOR = 64
"""Scales are taken for fractions with at most this denominator."""

Value = Callable[[Body], SSAValue]


def scaled_size(size: Dim, scale: float) -> Dim:
    """`floor(size * scale)` of a symbolic size; raises NoNativeLowering where the scale is no plain fraction.

    >>> from fuseline.ir.dim import symbol, to_text
    >>> to_text(scaled_size(symbol("h"), 0.5))
    '((h) // (2))'
    """
    fraction = Fraction(scale).limit_denominator(LARGEST_DENOMINATOR)
    # What is stored may be a little more than the fraction, which floor does not see; a little less would show.
    if fraction <= 0 or np.float32(fraction) != np.float32(scale) or Fraction(scale) < fraction:
        raise NoNativeLowering("symbolic-resize", f"a symbolic size {scale:g} times")
    return floor_div(mul(size, fraction.numerator), fraction.denominator)


@dataclass(frozen=True)
class SymbolicAxis:
    """Axis `axis` of a tensor, resized from `old` to `new` elements; `scale` is None where it is their ratio."""

    node: OnnxNode
    how: Resampling
    axis: int
    old: Dim
    new: Dim
    scale: float | None

    def nearest(self) -> Tensor:
        """The position that each element of the result reads, int64 `[new]`."""
        rounding = {
            "round_prefer_floor": lambda b, at: b.op(math.CeilOp, b.op(arith.SubfOp, at, _number(b, 0.5))),
            "round_prefer_ceil": lambda b, at: b.op(math.FloorOp, b.op(arith.AddfOp, at, _number(b, 0.5))),
            "floor": lambda b, at: b.op(math.FloorOp, at),
            "ceil": lambda b, at: b.op(math.CeilOp, at),
        }[self.how.rounding(self.scale)]
        at = self._coordinate()
        return self._table(INDEX_DTYPE, lambda b: self._clamped(b, rounding(b, at(b))))

    def linear(self, dtype: np.dtype[Any]) -> tuple[Tensor, Tensor, Tensor]:
        """Both neighbours (int64 `[new]`), and the share of the right one (`dtype`)."""
        at = self._coordinate()
        left, right = (
            self._table(INDEX_DTYPE, lambda b, n=n: self._clamped(b, _shifted(b, _base(b, at(b)), n))) for n in (0, 1)
        )
        return left, right, self._table(dtype, lambda b: s.convert(b, _share(b, at(b)), FLOAT64, dtype))

    def cubic(self, dtype: np.dtype[Any]) -> tuple[list[Tensor], list[Tensor]]:
        """Four neighbours (int64 `[new]` each) and their weights (`dtype`)."""
        at, offsets = self._coordinate(), (-1, 0, 1, 2)
        positions = [
            self._table(INDEX_DTYPE, lambda b, n=n: self._clamped(b, _shifted(b, _base(b, at(b)), n))) for n in offsets
        ]
        weights = [
            self._table(dtype, lambda b, n=n: s.convert(b, self._keys(b, _share(b, at(b)), n), FLOAT64, dtype))
            for n in offsets
        ]
        return positions, weights

    def _table(self, dtype: np.dtype[Any], body: Value) -> Tensor:
        return elementwise(self.node, [], dtype, body, [self.new])

    def _size(self, dim: Dim) -> Value:
        """A size as float64 inside a body."""
        if isinstance(dim, int):
            return lambda b: _number(b, float(dim))
        integer = self.node.program.integer(dim, mlir_element(INDEX_DTYPE), self.node.emit)
        return lambda b: s.convert(b, integer, INDEX_DTYPE, FLOAT64)

    def _coordinate(self) -> Value:
        """Where in the input an element of the result lies (the formulas of ONNX's Resize)."""
        if self.how.coordinates not in COORDINATES:
            raise NoNativeLowering("symbolic-resize", f"{self.how.mode}, {self.how.coordinates}")
        old, new, scale = self._size(self.old), self._size(self.new), self.scale

        def ratio(b: Body) -> SSAValue:
            return _number(b, scale) if scale is not None else b.op(arith.DivfOp, new(b), old(b))

        def coordinate(b: Body) -> SSAValue:
            index = b.op(arith.IndexCastOp, s.loop_index(b, 0), mlir_element(INDEX_DTYPE))
            return _FORMULAS[self.how.coordinates](
                b, s.convert(b, index, INDEX_DTYPE, FLOAT64), old(b), new(b), ratio(b)
            )

        return coordinate

    def _clamped(self, b: Body, at: SSAValue) -> SSAValue:
        last = b.op(arith.SubfOp, self._size(self.old)(b), _number(b, 1.0))
        inside = b.op(arith.MaximumfOp, b.op(arith.MinimumfOp, at, last), _number(b, 0.0))
        return b.op(arith.FPToSIOp, inside, mlir_element(INDEX_DTYPE))

    def _keys(self, b: Body, share: SSAValue, offset: int) -> SSAValue:
        """Keys' cubic at the distance of the neighbour `offset` places from the left one."""
        a = self.how.cubic
        if offset in (0, 1):  # within one element: ((a + 2) d - (a + 3)) d^2 + 1
            d = share if offset == 0 else b.op(arith.SubfOp, _number(b, 1.0), share)
            inner = b.op(arith.SubfOp, b.op(arith.MulfOp, _number(b, a + 2), d), _number(b, a + 3))
            return b.op(arith.AddfOp, b.op(arith.MulfOp, b.op(arith.MulfOp, inner, d), d), _number(b, 1.0))
        # within two: ((a d - 5 a) d + 8 a) d - 4 a
        d = b.op(arith.AddfOp, share, _number(b, 1.0)) if offset < 0 else b.op(arith.SubfOp, _number(b, 2.0), share)
        inner = b.op(arith.MulfOp, b.op(arith.SubfOp, b.op(arith.MulfOp, _number(b, a), d), _number(b, 5 * a)), d)
        return b.op(
            arith.SubfOp, b.op(arith.MulfOp, b.op(arith.AddfOp, inner, _number(b, 8 * a)), d), _number(b, 4 * a)
        )


def _number(b: Body, value: float) -> SSAValue:
    return b.constant(value, mlir_element(FLOAT64))


def _base(b: Body, at: SSAValue) -> SSAValue:
    """The left neighbour, so that the share of the right one is in (0, 1]."""
    return b.op(arith.SubfOp, b.op(math.CeilOp, at), _number(b, 1.0))


def _share(b: Body, at: SSAValue) -> SSAValue:
    return b.op(arith.SubfOp, at, _base(b, at))


def _shifted(b: Body, at: SSAValue, by: int) -> SSAValue:
    return b.op(arith.AddfOp, at, _number(b, float(by))) if by else at


def _half_pixel(b: Body, position: SSAValue, scale: SSAValue) -> SSAValue:
    middle = b.op(arith.AddfOp, position, _number(b, 0.5))
    return b.op(arith.SubfOp, b.op(arith.DivfOp, middle, scale), _number(b, 0.5))


def _pytorch(b: Body, position: SSAValue, old: SSAValue, new: SSAValue, scale: SSAValue) -> SSAValue:
    del old
    only = s.compare(b, FLOAT64, "eq", new, _number(b, 1.0))
    return s.select(b, only, _number(b, 0.0), _half_pixel(b, position, scale))


def _symmetric(b: Body, position: SSAValue, old: SSAValue, new: SSAValue, scale: SSAValue) -> SSAValue:
    lost = b.op(arith.SubfOp, _number(b, 1.0), b.op(arith.DivfOp, new, b.op(arith.MulfOp, old, scale)))
    shift = b.op(arith.MulfOp, b.op(arith.MulfOp, old, _number(b, 0.5)), lost)
    return b.op(arith.AddfOp, shift, _half_pixel(b, position, scale))


def _corners(b: Body, position: SSAValue, old: SSAValue, new: SSAValue, scale: SSAValue) -> SSAValue:
    del new
    resized, one = b.op(arith.MulfOp, old, scale), _number(b, 1.0)
    spread = b.op(
        arith.DivfOp, b.op(arith.MulfOp, position, b.op(arith.SubfOp, old, one)), b.op(arith.SubfOp, resized, one)
    )
    return s.select(b, s.compare(b, FLOAT64, "eq", resized, one), _number(b, 0.0), spread)


_FORMULAS: dict[str, Callable[[Body, SSAValue, SSAValue, SSAValue, SSAValue], SSAValue]] = {
    "asymmetric": lambda b, position, old, new, scale: b.op(arith.DivfOp, position, scale),
    "half_pixel": lambda b, position, old, new, scale: _half_pixel(b, position, scale),
    "pytorch_half_pixel": _pytorch,
    "half_pixel_symmetric": _symmetric,
    "align_corners": _corners,
}
