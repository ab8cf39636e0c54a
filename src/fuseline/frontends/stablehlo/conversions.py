"""Elements of one type as elements of another, and floats of fewer bits kept in their type."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.stablehlo.cell import Cell
from fuseline.frontends.stablehlo.reading import text_of
from fuseline.frontends.stablehlo.types import DType
from fuseline.ir.build import Body


def convert(b: Body, x: SSAValue, source: DType, target: DType) -> SSAValue:
    """To another type as XLA does it: floats to integers stay within the range of these, NaN is 0."""
    if not is_float(source) or target.kind not in "iu":
        return s.convert(b, x, source, target, asked=True)
    info, element = np.iinfo(target), mlir_element(source)
    wide = np.dtype(np.float64) if source.itemsize == 8 else np.dtype(np.float32)
    if wide != source:
        x, element = s.convert(b, x, source, wide), mlir_element(wide)
    low, high = float(info.min), _last_below(int(info.max) + 1, wide)
    inside = b.op(arith.MinimumfOp, b.op(arith.MaximumfOp, x, b.constant(low, element)), b.constant(high, element))
    number = b.op(arith.CmpfOp, x, x, "ord")
    whole = s.convert(b, s.select(b, number, inside, b.constant(0.0, element)), wide, target)
    above = b.op(arith.CmpfOp, x, b.constant(float(int(info.max) + 1), element), "oge")
    return s.select(b, above, b.constant(int(info.max), mlir_element(target)), whole)


def _last_below(limit: int, dtype: DType) -> float:
    """The largest number of a float type below `limit`."""
    return float(np.nextafter(dtype.type(limit), dtype.type(0)))


def convert_element(c: Cell, x: SSAValue) -> SSAValue:
    """`stablehlo.convert`: `x` as an element of the result."""
    return convert(c.b, x, c.dtype, c.out)


ROUNDED: dict[tuple[int, int], DType] = {
    (5, 10): np.dtype(np.float16),
    (8, 23): np.dtype(np.float32),
    (11, 52): np.dtype(np.float64),
}


def reduced_format(c: Cell) -> tuple[int, int]:
    """The bits of exponent and mantissa that `reduce_precision` keeps."""
    text = text_of(c.op.attribute("format"))
    if text:
        exponent, _, mantissa = text[1:].partition("m")
        return int(exponent), int(mantissa)
    bits = (getattr(c.op.attribute(name), "value", None) for name in ("exponent_bits", "mantissa_bits"))
    found = [int(value.data) for value in bits if value is not None]
    return found[0], found[1]


def reduce_precision(c: Cell, x: SSAValue) -> SSAValue:
    """`stablehlo.reduce_precision`: `x` rounded to the exponent and mantissa bits that the op names."""
    kept = reduced_format(c)
    if kept == (8, 7):
        import ml_dtypes

        small = np.dtype(ml_dtypes.bfloat16)
    else:
        small = ROUNDED[kept]
    if small.itemsize >= c.dtype.itemsize:
        return x
    return s.convert(c.b, s.convert(c.b, x, c.dtype, small, asked=True), small, c.dtype)
