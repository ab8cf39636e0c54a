"""The scale that each element of a dequantised constant has behind pads and moves, computed: where a dimension of its
own was joined with others on the way, or is read in another order.

    collapse(gather((q - z) * s[c]))     has the scale     collapse(gather(s[c]))

Zeros of a pad have any scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.structured import captured, is_constant
from fuseline.evaluation.program import Array, Program, Scope, is_evaluable, run_op
from fuseline.ir.build import shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import operands_of, result_of
from fuseline.passes.cleanup.quantized_operands import QuantizedOperand, bind, scale_axes


def moved_scale(ctx: CompilerContext, operand: QuantizedOperand) -> Array | None:
    """The scales of `operand` element by element, NaN in pads; None where they, the integers or the moves are not
    known, or a scale is not finite."""
    stored = operand.stored
    if not operand.is_constant or not isinstance(stored.scale, BlockArgument):
        return None
    source, made = stored.op.operands[stored.scale.index], result_of(stored.op)
    axes = scale_axes(QuantizedOperand(stored, ()))
    steps = [made, *(result_of(move) for move in reversed(operand.moves))]
    if (
        not is_constant(source)
        or axes is None
        or not all(_is_known(after, before) for before, after in pairwise(steps))
    ):
        return None
    scope = Scope(Program(ctx.resources))
    bind(source, scope)
    whole = _placed(np.asarray(scope[source]), axes, shape_of(made))
    if whole is None or not np.isfinite(whole).all():
        return None
    scales, inside = (_moved(ctx, operand, array) for array in (whole, np.ones_like(whole)))
    return np.where(inside != 0, scales, np.nan)


def _inputs(op: Operation) -> Sequence[SSAValue]:
    return [*operands_of(op), *(captured(op) if op.regions else ())]


def _is_known(value: SSAValue, source: SSAValue) -> bool:
    """Whether nothing but `source` must be given to evaluate `value`."""
    if value is source:
        return True
    if not isinstance(value, OpResult) or not is_evaluable(value.op):
        return False
    return all(_is_known(one, source) for one in _inputs(value.op))


def _placed(scale: Array, axes: Sequence[int | None], shape: Sequence[int]) -> Array | None:
    """A scale whose dimension `i` follows `axes[i]` in a tensor of `shape`; None for a dimension that follows none."""
    if any(axis is None and size != 1 for axis, size in zip(axes, scale.shape, strict=True)):
        return None
    order = sorted(range(scale.ndim), key=lambda i: -1 if (axis := axes[i]) is None else axis)
    sizes = [size if axis in axes else 1 for axis, size in enumerate(shape)]
    return np.broadcast_to(scale.transpose(order).reshape(sizes), shape).copy()


def _moved(ctx: CompilerContext, operand: QuantizedOperand, array: Array) -> Array:
    """`array`, in the place of what is dequantised, moved as that is."""
    scope = Scope(Program(ctx.resources))
    scope.bind([result_of(operand.stored.op)], [array])
    for move in reversed(operand.moves):
        for value in _inputs(move):
            bind(value, scope)
        run_op(move, scope)
        array = np.asarray(scope[result_of(move)])
    return array
