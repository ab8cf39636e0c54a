"""`tensor.pad` read and rebuilt."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.shapes import static_numbers
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_pad
from fuseline.ir.fast.direct import body_of, last_of, operand_of, operands_of
from fuseline.passes.layout.rewriting.mixed import Mixed, joined


def low_of(op: tensor.PadOp) -> Mixed:
    """The padding before each dimension."""
    return list(static_numbers(op, "static_low")) if len(operands_of(op)) == 1 else joined(op.static_low, op.low)


def high_of(op: tensor.PadOp) -> Mixed:
    """The padding after each dimension."""
    return list(static_numbers(op, "static_high")) if len(operands_of(op)) == 1 else joined(op.static_high, op.high)


def uniform_value(op: tensor.PadOp) -> SSAValue | None:
    """The padding value, where it is one value for all positions; None where it is computed from the position."""
    block = body_of(op)
    last = last_of(block)
    if last is None or not operands_of(last) or any([argument.first_use is not None for argument in block.args]):
        return None
    return operand_of(last, 0)


def outer_value(op: tensor.PadOp, at: Emitter) -> SSAValue | None:
    """The padding value as a scalar outside the pad: constants inside its region are re-made at `at`."""
    value = uniform_value(op)
    if type(value) is OpResult and value.op.parent is body_of(op):
        if operands_of(value.op):
            return None
        return at.add(value.op.clone()).results[0]
    return value


def pad(at: Emitter, source: SSAValue, low: Mixed, high: Mixed, value: SSAValue, shape: Sequence[int]) -> tensor.PadOp:
    """A `tensor.pad` of `source` with one scalar to `shape`."""
    return at.add(
        create_pad(source, low, high, value, attributes.tensor_type(element_of(source), tuple(shape)), at.location)
    )
