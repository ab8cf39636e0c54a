"""Products of floats and dequantised constants: the constant stays in 8 bits, and its scale follows the sum.

    contraction(f32: x, (w - zw) * sw)     =>     contraction(f32: x, f32(w - zw)) * sw

A product of few rows is as fast as its weights come from memory. The sum is over other numbers, so it rounds otherwise,
no worse: not where numerics are strict.
"""

from __future__ import annotations

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import f32, i16
from xdsl.ir import SSAValue

from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands, splat_value
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.fast.direct import body_of, ops_of, result_of
from fuseline.passes.cleanup.quantized_operands import (
    IntegerMaker,
    QuantizedOperand,
    fits_bytes,
    quantized_operand,
    replace_root,
)
from fuseline.passes.cleanup.result_scales import Scale, result_scale, scaled_by
from fuseline.targets.target import Refusal

_BODY_OPS = 3


def keep_weights_narrow(maker: IntegerMaker, root: linalg.ops.GenericOp) -> bool:
    """Rewrite `root` where it is a contraction in f32 with one constant operand that is quantised, one scale for each
    column; says whether it is."""
    found = _weights(maker, root)
    if found is None:
        return False
    side, operand, scale = found
    if not fits_bytes(maker.range_of(operand)):
        return False
    integers = maker.operand(operand, root, i16).value
    view, emit = StructuredOp(root), Emitter.before(root)
    inputs = [integers if i == side else value for i, value in enumerate(view.inputs)]

    def body(b: Body) -> list[SSAValue]:
        sides = [
            b.op(arith.SIToFPOp, argument, f32) if i == side else argument for i, argument in enumerate(b.args[:2])
        ]
        return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, *sides))]

    total = result_of(emit.generic(inputs, view.outputs, view.maps, view.iterators, body))
    replace_root(root, scaled_by(emit, total, scale), [operand])
    return True


def _weights(maker: IntegerMaker, root: linalg.ops.GenericOp) -> tuple[int, QuantizedOperand, Scale] | None:
    """Which input is quantised and constant, and its scale."""
    view = StructuredOp(root)
    sides = multiply_add_operands(root) if view.reduction else None
    if sides is None or sides[0] == sides[1] or view.input_count != 2 or len(ops_of(body_of(root))) != _BODY_OPS:
        return None
    if element_of(result_of(root)) != f32 or kind(root) is not Kind.CONTRACTION or splat_value(root.outputs[0]) != 0:
        return None
    if maker.ctx.target.numerics == "strict":
        return None
    for side in sides:
        operand = quantized_operand(view.inputs[side])
        if operand is not None and operand.is_constant:
            scale = result_scale(maker, root, side, operand)
            return None if isinstance(scale, Refusal) else (side, operand, scale)
    return None
