"""Quantised tensors: `real = (stored - zero_point) * scale`. Values computed here equal the ONNX formula; ties go to
even, and results saturate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import from_onnx, is_float, is_half, mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise, mapped, reshape
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.convolution import convolve
from fuseline.frontends.onnx.ops.matmul import matmul_of
from fuseline.frontends.onnx.ops.spreading import spread
from fuseline.frontends.onnx.ops.windows import pad_spatial, window_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_size
from fuseline.ir.build import Body

I32 = np.dtype(np.int32)
F32 = np.dtype(np.float32)


def _parameter(node: OnnxNode, x: Tensor, parameter: Tensor, axis: int) -> tuple[Tensor, list[int | None]]:
    """A parameter of `x`, and the loops that it follows; one of which only the run tells whether it is one number is as
    long as the axis."""
    loops = _loops(x, parameter, axis)
    if parameter.rank == 1 and loops[0] is not None:
        parameter = spread(node, parameter, [x.dims[loops[0]]])
    return parameter, loops


def _loops(x: Tensor, parameter: Tensor, axis: int) -> list[int | None]:
    """Per-tensor parameters stay; one per slice along `axis` follow it."""
    if parameter.rank == 0 or parameter.dims == (1,):
        return [None] * parameter.rank
    axis = axis if axis >= 0 else axis + x.rank
    if parameter.rank == 1:
        return [axis]
    if parameter.rank != x.rank - 1:
        raise NoNativeLowering("blocked-quantization", f"parameters of rank {parameter.rank} for rank {x.rank}")
    return [i if i <= axis else i + 1 for i in range(parameter.rank)]


def _in_blocks(node: OnnxNode, x: Tensor, block: int) -> tuple[Tensor, int]:
    """`x` with its quantised axis as (blocks, elements of a block), and that axis; parameters follow the blocks."""
    axis = normal_axis(node.integer("axis", 1), x.rank)
    if block < 1 or static_size(x.dims[axis]) % block:
        raise NoNativeLowering("blocked-quantization", f"{x.dims[axis]} elements in blocks of {block}")
    blocks = (*x.dims[:axis], static_size(x.dims[axis]) // block, *x.dims[axis + 1 :])
    for parameter in (node[1], node.get(2)):
        for size, wanted in zip(parameter.dims if parameter is not None else (), blocks, strict=False):
            if isinstance(size, int) and isinstance(wanted, int) and size != wanted:
                raise FuselineError(
                    "E0107", f"a parameter of size {size} for {wanted} blocks or elements", node=node.label
                )
    return reshape(node, x, (*blocks[: axis + 1], block, *x.dims[axis + 1 :])), axis


@onnx_op("QuantizeLinear")
def quantize_linear(node: OnnxNode) -> Tensor:
    """saturate(round(x / scale) + zero_point). Raises FuselineError: E0107 for scales or zero points that are not one
    per block or element of their axis."""
    x, scale, zero = node[0], node[1], node.get(2)
    dtype = zero.dtype if zero is not None else _output_dtype(node)
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        raise NoNativeLowering("unsupported-dtype", dtype.name)
    scale = cast(node, scale, F32) if scale.dtype.kind in "iu" else scale
    real, block = cast(node, x, scale.dtype), node.integer("block_size")
    opened, axis = _in_blocks(node, real, block) if block else (real, node.integer("axis", 1))
    return reshape(node, quantized(node, opened, scale, zero, dtype, axis), x.dims)


def _output_dtype(node: OnnxNode) -> np.dtype[np.generic]:
    import onnx_ir as ir

    return from_onnx(ir.DataType(node.integer("output_dtype"))) if node.integer("output_dtype") else np.dtype(np.uint8)


def quantized(
    node: OnnxNode, x: Tensor, scale: Tensor, zero: Tensor | None, dtype: np.dtype[np.generic], axis: int = 1
) -> Tensor:
    """`x` quantised with parameters per tensor or along `axis`."""
    info = np.iinfo(np.dtype(dtype).type)  # pyright: ignore[reportCallIssue, reportArgumentType]
    wide = F32 if is_half(x.dtype) else x.dtype  # 16-bit floats do not hold every zero point
    operands = [(x, list(range(x.rank))), _parameter(node, x, scale, axis)]
    if zero is not None:
        operands.append(_parameter(node, x, zero, axis))

    def body(b: Body, e: SSAValue, sc: SSAValue, *z: SSAValue) -> SSAValue:
        steps = s.convert(b, s.round_half_even(b, b.op(arith.DivfOp, e, sc)), x.dtype, wide)
        if z:
            steps = b.op(arith.AddfOp, steps, s.convert(b, z[0], dtype, wide))
        return s.convert(b, _cut(b, steps, info), wide, dtype)

    return mapped(node, operands, x.dims, dtype, body)


def _cut(b: Body, steps: SSAValue, ends: np.iinfo[np.integer[Any]]) -> SSAValue:
    """`steps` within what the type holds; what is no number becomes the lowest, as by onnxruntime."""
    low = b.op(arith.MaxnumfOp, steps, b.constant(float(ends.min), steps.type))
    return b.op(arith.MinnumfOp, low, b.constant(float(ends.max), steps.type))


@onnx_op("DequantizeLinear")
def dequantize_linear(node: OnnxNode) -> Tensor:
    """(x - zero_point) * scale. Raises FuselineError: E0107 as `quantize_linear` does."""
    x, scale, zero = node[0], node[1], node.get(2)
    if x.dtype.kind not in "iu":
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    block = node.integer("block_size")
    opened, axis = _in_blocks(node, x, block) if block else (x, node.integer("axis", 1))
    return reshape(node, dequantized(node, opened, scale, zero, axis), x.dims)


def dequantized(node: OnnxNode, x: Tensor, scale: Tensor, zero: Tensor | None, axis: int = 1) -> Tensor:
    """The real values behind `x`."""
    dtype = scale.dtype
    operands = [(x, list(range(x.rank))), _parameter(node, x, scale, axis)]
    if zero is not None:
        operands.append(_parameter(node, x, zero, axis))

    def body(b: Body, e: SSAValue, sc: SSAValue, *z: SSAValue) -> SSAValue:
        wide = s.convert(b, e, x.dtype, I32)
        if z:
            wide = b.op(arith.SubiOp, wide, s.convert(b, z[0], x.dtype, I32))
        return b.op(arith.MulfOp, s.convert(b, wide, I32, dtype), sc)

    return mapped(node, operands, x.dims, dtype, body)


def _centred(node: OnnxNode, x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """`x - zero_point` in 32 bits."""
    if zero is None or (zero.is_constant and not zero.numbers().any()):
        return cast(node, x, I32)
    operands = [(x, list(range(x.rank))), _parameter(node, x, zero, axis)]
    return mapped(
        node,
        operands,
        x.dims,
        I32,
        lambda b, e, z: b.op(arith.SubiOp, s.convert(b, e, x.dtype, I32), s.convert(b, z, zero.dtype, I32)),
    )


@onnx_op("MatMulInteger")
def matmul_integer(node: OnnxNode) -> Tensor:
    """The product of integers, exact in 32 bits."""
    a, b = node[0], node[1]
    return matmul_of(node, _centred(node, a, node.get(2), a.rank - 2), _centred(node, b, node.get(3), b.rank - 1))


@onnx_op("ConvInteger")
def conv_integer(node: OnnxNode) -> Tensor:
    """The convolution of integers, exact in 32 bits."""
    return _integer_convolution(node, node[0], node.get(2), node[1], node.get(3))


def _integer_convolution(node: OnnxNode, x: Tensor, x_zero: Tensor | None, w: Tensor, w_zero: Tensor | None) -> Tensor:
    window = window_of(node, x.dims[2:], [static_size(size) for size in w.dims[2:]])
    image = pad_spatial(node, _centred(node, x, x_zero, 1), window, 0)
    return convolve(node, image, _centred(node, w, w_zero, 0), window, node.integer("group", 1))


@onnx_op("QLinearMatMul")
def qlinear_matmul(node: OnnxNode) -> Tensor:
    """A product of quantised matrices, quantised again."""
    a, b = node[0], node[3]
    product = matmul_of(node, _centred(node, a, node[2], a.rank - 2), _centred(node, b, node[5], b.rank - 1))
    return _requantized(node, product, node[1], node[4], node[6], node[7], product.rank - 1)


@onnx_op("QLinearConv")
def qlinear_conv(node: OnnxNode) -> Tensor:
    """A convolution of quantised tensors with a 32-bit bias, quantised again."""
    total = _integer_convolution(node, node[0], node[2], node[3], node[5])
    bias = node.get(8)
    if bias is not None:
        operands = [(total, list(range(total.rank))), (bias, [1])]
        total = mapped(node, operands, total.dims, I32, lambda b, e, c: b.op(arith.AddiOp, e, c))
    return _requantized(node, total, node[1], node[4], node[6], node[7], 1)


def _requantized(node: OnnxNode, total: Tensor, a: Tensor, b: Tensor, y: Tensor, zero: Tensor, axis: int) -> Tensor:
    """saturate(round(total * (a * b / y)) + zero), computed in f64 as the formula says."""
    wide, info = np.dtype(np.float64), np.iinfo(zero.dtype)
    factor = _factor(node, a, b, y)
    operands = [(total, list(range(total.rank)))] + [_parameter(node, total, p, axis) for p in (*factor, zero)]

    def body(blk: Body, e: SSAValue, *parameters: SSAValue) -> SSAValue:
        scales, z = parameters[:-1], parameters[-1]
        scale = scales[0] if len(scales) == 1 else _quotient(blk, scales, (a, b, y))
        steps = blk.op(math.RoundEvenOp, blk.op(arith.MulfOp, s.convert(blk, e, I32, wide), scale))
        shifted = blk.op(arith.AddfOp, steps, s.convert(blk, z, zero.dtype, wide))
        return s.convert(blk, _cut(blk, shifted, info), wide, zero.dtype)

    return mapped(node, operands, total.dims, zero.dtype, body)


def _factor(node: OnnxNode, *scales: Tensor) -> Sequence[Tensor]:
    """`a * b / y` in f64 as a tensor of its own where the scales are constants, so that it is computed once; else the
    scales."""
    vectors = [scale for scale in scales if scale.rank and scale.dims != (1,)]
    if len(vectors) > 1 or not all(scale.is_constant for scale in scales):
        return scales
    (largest,) = vectors or scales[:1]
    operands = [(scale, list(range(scale.rank)) if scale is largest else [None] * scale.rank) for scale in scales]
    return [mapped(node, operands, largest.dims, np.dtype(np.float64), lambda b, *values: _quotient(b, values, scales))]


def _quotient(b: Body, values: Sequence[SSAValue], scales: Sequence[Tensor]) -> SSAValue:
    first, second, by = (
        s.convert(b, value, scale.dtype, np.dtype(np.float64)) for value, scale in zip(values, scales, strict=True)
    )
    return b.op(arith.DivfOp, b.op(arith.MulfOp, first, second), by)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: OnnxNode) -> list[Tensor]:
    """8-bit parameters from the range of the data, then the quantised data."""
    from fuseline.frontends.onnx.emission import reduce

    x = node[0]
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    axes, element, byte = list(range(x.rank)), mlir_element(x.dtype), np.dtype(np.uint8)
    low = reduce(node, [x], axes, 0.0, lambda b, e, acc: b.op(arith.MinimumfOp, acc, e), dtype=x.dtype)
    high = reduce(node, [x], axes, 0.0, lambda b, e, acc: b.op(arith.MaximumfOp, acc, e), dtype=x.dtype)

    def step(b: Body, m: SSAValue, n: SSAValue) -> SSAValue:
        """1 where all there is is 0, as onnxruntime has it: nothing is divided by 0."""
        share = b.op(arith.DivfOp, b.op(arith.SubfOp, n, m), b.constant(255.0, element))
        return s.select(b, s.compare(b, x.dtype, "eq", m, n), b.constant(1.0, element), share)

    scale = elementwise(node, [low, high], x.dtype, step)

    def zero_point(b: Body, m: SSAValue, sc: SSAValue) -> SSAValue:
        steps = b.op(math.RoundEvenOp, b.op(arith.DivfOp, b.op(arith.NegfOp, m), sc))
        limited = b.op(
            arith.MinimumfOp, b.op(arith.MaximumfOp, steps, b.constant(0.0, element)), b.constant(255.0, element)
        )
        return s.convert(b, limited, x.dtype, byte)

    zero = elementwise(node, [low, scale], byte, zero_point)
    return [quantized(node, x, scale, zero, byte), scale, zero]
