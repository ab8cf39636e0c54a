"""`tensor.pad` whose value is computed: another one in each place, or a number that only the run knows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.ir.build import PARALLEL, Body, Emitter, element_of, identity_map, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty
from fuseline.ir.fast.direct import body_of, ops_of
from fuseline.ir.provenance import replace
from fuseline.passes.cleanup.tensor_ops.slices import mixed, position_in_source


def _pads_with_a_constant(op: tensor.PadOp) -> bool:
    """Whether every element that is added is one constant."""
    end = body_of(op).last_op
    value = end.operands[0] if end is not None and end.operands else None
    return isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp)


def expand_pad(op: tensor.PadOp) -> None:
    """Each element of the result: that of the source where there is one (read in bounds either way), else what the body
    gives.

    A pad with one constant stays.
    """
    if _pads_with_a_constant(op):
        return
    emit, rank = Emitter.before(op), len(shape_of(op.source))
    low = mixed(emit, attributes.values(op.static_low), op.low)
    high = mixed(emit, attributes.values(op.static_high), op.high)
    sizes = [emit.dim(op.source, axis) for axis in range(rank)]
    wide = [_sum(emit, size, before, after) for size, before, after in zip(sizes, low, high, strict=True)]
    unknown = [size for size, known in zip(wide, shape_of(op.result), strict=True) if known == DYNAMIC_INDEX]
    output = emit.add(create_empty(op.result.type, unknown)).tensor  # pyright: ignore[reportArgumentType]

    def body(b: Body) -> Sequence[SSAValue]:
        positions = [b.add(IndexOp(axis)).result for axis in range(rank)]
        added = _added(b, op, positions)
        if 0 in shape_of(op.source):
            return [added]
        if not positions:
            return [b.op(tensor.ExtractOp, op.source, [], element_of(op.source))]
        inside, at = position_in_source(b, positions, low, sizes)
        return [b.op(arith.SelectOp, inside, b.op(tensor.ExtractOp, op.source, at, element_of(op.source)), added)]

    new = emit.generic([], [output], [identity_map(rank)], [PARALLEL] * rank, body)
    replace(op, [], [new.results[0]])


def _sum(emit: Emitter, *values: SSAValue) -> SSAValue:
    total = values[0]
    for value in values[1:]:
        total = emit.add(arith.AddiOp(total, value)).result
    return total


def _added(b: Body, op: tensor.PadOp, positions: Sequence[SSAValue]) -> SSAValue:
    """What the body of the pad gives for the places of the result."""
    block: Block = body_of(op)
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, positions, strict=True))
    inner: Operation
    for inner in ops_of(block):
        if isinstance(inner, tensor.YieldOp):
            return values.get(inner.operands[0], inner.operands[0])
        b.add(inner.clone(values))
    raise AssertionError("a body without an end")
