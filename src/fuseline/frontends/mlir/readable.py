"""Elements at positions that data tells: a program must not read outside of its tensors whatever it is fed, so such
positions are moved to the nearest end.

    tensor.extract %t[%in]        =>        tensor.extract %t[max(min(%in, size - 1), 0)]

Positions that the caller gives as an index stay as they are: from them `require-equal-sizes` tells what sizes must be.
So do positions in the bodies of structured ops (`clamp-unproven-positions`).
"""

from __future__ import annotations

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.ir.build import Emitter
from fuseline.ir.fast import attributes


def keep_reads_inside(main: func.FuncOp) -> None:
    """Move what is not told by sizes into the tensors that are read."""
    fixed: dict[SSAValue, bool] = {}
    for op in list(main.body.block.ops):
        if isinstance(op, tensor.ExtractOp):
            _clamp(op, fixed)


def _clamp(read: tensor.ExtractOp, fixed: dict[SSAValue, bool]) -> None:
    emit = Emitter.before(read)
    for axis, position in enumerate(read.indices):
        if not _is_fixed(position, fixed):
            last = emit.add(arith.SubiOp(emit.dim(read.tensor, axis), emit.index(1))).result
            low = emit.add(arith.MinSIOp(position, last)).result
            read.operands[1 + axis] = emit.add(arith.MaxSIOp(low, emit.index(0))).result


def _is_fixed(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    """Whether a place is made of sizes, numbers and indices that the caller gives."""
    found = known.get(value)
    if found is None:
        found = known[value] = _is_size(value, known)
    return found


def _is_size(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    if isinstance(value, BlockArgument):
        return isinstance(value.type, IndexType)
    assert isinstance(value, OpResult)
    if isinstance(value.op, arith.ConstantOp | tensor.DimOp):
        return True
    operands = value.op.operands
    return value.type == attributes.INDEX and bool(operands) and all(_is_fixed(operand, known) for operand in operands)
