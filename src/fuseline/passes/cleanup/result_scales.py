"""The scales of quantised operands behind the sum of their products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.stored_integers import stored_integers
from fuseline.analysis.structured import StructuredOp, is_constant
from fuseline.ir.build import Body, Emitter, dims_map, identity_map, shape_of
from fuseline.ir.fast.direct import result_of
from fuseline.passes.cleanup.moved_scales import moved_scale
from fuseline.passes.cleanup.quantized_operands import IntegerMaker, QuantizedOperand, scale_axes
from fuseline.targets.target import Refusal


@dataclass(frozen=True)
class Scale:
    """A factor of the result: a number, or a tensor whose dimension `i` follows the result's dimension `axes[i]` (None:
    it has one element)."""

    factor: SSAValue | float
    axes: tuple[int | None, ...] = ()


def result_scales(
    maker: IntegerMaker, root: linalg.ops.GenericOp, sides: Sequence[int], operands: Sequence[QuantizedOperand]
) -> tuple[Scale, ...] | Refusal:
    """How the scales of both operands lie in the result, or why they cannot be taken out of the sum."""
    found: list[Scale] = []
    for side, operand in zip(sides, operands, strict=True):
        scale = result_scale(maker, root, side, operand)
        if isinstance(scale, Refusal):
            return scale
        found.append(scale)
    return tuple(found)


def result_scale(
    maker: IntegerMaker, root: linalg.ops.GenericOp, side: int, operand: QuantizedOperand
) -> Scale | Refusal:
    """How the scale of one operand lies in the result."""
    stored, view = operand.stored, StructuredOp(root)
    if not isinstance(stored.scale, BlockArgument):
        assert stored.scale is not None
        return Scale(stored.scale)
    axes = scale_axes(operand)
    if axes is None:
        return _computed_scale(maker, root, side, operand) or Refusal(
            "scale-moved", "a scale along a dimension that is padded or reshaped on the way"
        )
    written = _written(root)
    exprs = [view.input_maps[side].results[axis] if axis is not None else None for axis in axes]
    if any(
        expr is not None and (not isinstance(expr, AffineDimExpr) or expr.position not in written) for expr in exprs
    ):
        return Refusal("scale-in-sum", "a scale that varies along the sum")
    positions = tuple(written[expr.position] if isinstance(expr, AffineDimExpr) else None for expr in exprs)
    return Scale(stored.op.operands[stored.scale.index], positions)


def _written(root: linalg.ops.GenericOp) -> dict[int, int]:
    """The result's dimension for each loop that is one."""
    exprs = StructuredOp(root).output_maps[0].results
    return {expr.position: axis for axis, expr in enumerate(exprs) if isinstance(expr, AffineDimExpr)}


def _computed_scale(
    maker: IntegerMaker, root: linalg.ops.GenericOp, side: int, operand: QuantizedOperand
) -> Scale | None:
    """The scale of a constant that is moved otherwise, as it lies in the result; None where it varies along the sum."""
    array, written = moved_scale(maker.ctx, operand), _written(root)
    positions = [
        written.get(expr.position) if isinstance(expr, AffineDimExpr) else None
        for expr in StructuredOp(root).input_maps[side].results
    ]
    summed = tuple(i for i, position in enumerate(positions) if position is None)
    if array is None:
        return None
    low, high = np.fmin.reduce(array, summed), np.fmax.reduce(array, summed)
    if not np.array_equal(low, high, equal_nan=True):
        return None
    found = np.nan_to_num(low, nan=1.0)  # of zeros alone
    constant = Emitter.before(root).constant(found, maker.ctx, "scales")
    return Scale(constant, tuple(position for position in positions if position is not None))


def scaled(emit: Emitter, total: SSAValue, scales: Sequence[Scale]) -> SSAValue:
    """`total` times the scales, in f32. Scales that are constants are multiplied with each other first, where folding
    them takes the product."""
    rank = len(shape_of(total))
    scales = _constants_joined(emit, scales)
    tensors = [(scale.factor, scale.axes) for scale in scales if isinstance(scale.factor, SSAValue)]
    numbers = [scale.factor for scale in scales if not isinstance(scale.factor, SSAValue)]

    def body(b: Body) -> SSAValue:
        factor = _product(b, b.args[1 : 1 + len(tensors)], numbers)
        return b.op(arith.MulfOp, b.op(arith.SIToFPOp, b.args[0], f32), factor)

    maps = [identity_map(rank), *(dims_map(rank, axes) for _, axes in tensors)]
    return emit.elementwise([total, *(factor for factor, _ in tensors)], emit.empty_like(total, f32), body, maps)


def scaled_by(emit: Emitter, total: SSAValue, scale: Scale) -> SSAValue:
    """`total`, which is in f32, times one scale."""
    rank, inputs = len(shape_of(total)), [scale.factor] if isinstance(scale.factor, SSAValue) else []
    numbers = [] if isinstance(scale.factor, SSAValue) else [scale.factor]
    maps = [identity_map(rank), *(dims_map(rank, scale.axes) for _ in inputs)]

    def body(b: Body) -> SSAValue:
        return b.op(arith.MulfOp, b.args[0], _product(b, b.args[1 : 1 + len(inputs)], numbers))

    return emit.elementwise([total, *inputs], emit.empty_like(total), body, maps)


def _product(b: Body, values: Sequence[SSAValue], numbers: Sequence[float]) -> SSAValue:
    factors = [*values, *(b.constant(number, f32) for number in numbers)]
    return factors[0] if len(factors) == 1 else b.op(arith.MulfOp, *factors)


def _constants_joined(emit: Emitter, scales: Sequence[Scale]) -> Sequence[Scale]:
    """Two constant factors as one, where one of them varies along whatever the other does."""
    if not all(not isinstance(scale.factor, SSAValue) or is_constant(scale.factor) for scale in scales):
        return scales
    small, large = sorted(scales, key=lambda scale: (len(_moving(scale)), isinstance(scale.factor, SSAValue)))
    if not isinstance(large.factor, SSAValue) or not _moving(small) <= _moving(large):
        return scales
    result_position = {axis: i for i, axis in enumerate(large.axes) if axis is not None}
    rank = len(large.axes)
    other = [small.factor] if isinstance(small.factor, SSAValue) else []
    numbers = [] if isinstance(small.factor, SSAValue) else [small.factor]
    maps = [
        identity_map(rank),
        *(dims_map(rank, [None if axis is None else result_position[axis] for axis in small.axes]) for _ in other),
    ]
    factor = emit.elementwise(
        [large.factor, *other],
        emit.empty_like(large.factor),
        lambda b: _product(b, b.args[: 1 + len(other)], numbers),
        maps,
    )
    return [Scale(factor, large.axes)]


def _moving(scale: Scale) -> set[int]:
    return {axis for axis in scale.axes if axis is not None}


def dequantized(op: linalg.ops.GenericOp, integers: SSAValue) -> SSAValue:
    """What `op` makes, from the integers that it makes it of."""
    stored, view, emit = stored_integers(op), StructuredOp(op), Emitter.before(op)
    assert stored is not None
    scale = stored.scale
    kept = [scale.index] if isinstance(scale, BlockArgument) else []

    def body(b: Body) -> list[SSAValue]:
        wide = b.op(arith.ExtSIOp, b.args[0], i32)
        if scale is None:
            return [wide]
        factor = b.args[1] if kept else b.constant(scale, f32)  # pyright: ignore[reportArgumentType]
        return [b.op(arith.MulfOp, b.op(arith.SIToFPOp, wide, f32), factor)]

    maps = [view.output_maps[0], *(view.maps[i] for i in kept), view.output_maps[0]]
    inputs = [integers, *(view.operands[i] for i in kept)]
    return result_of(emit.generic(inputs, [view.outputs[0]], maps, view.iterators, body))
