"""Elements at places that data tells: a program must not read outside of its tensors whatever it is fed, so such places are moved to the nearest end.

    tensor.extract %t[%in]        =>        tensor.extract %t[max(min(%in, size - 1), 0)]

Sums of one loop counter, numbers and sizes stay as they are: from them `require-readable-places` tells what sizes must be.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.ir import attributes
from fuseline.ir.build import Emitter
from fuseline.ir.tensor_ops import GenerateOp

_SUMS = (arith.AddiOp, arith.SubiOp, arith.MaxSIOp, arith.MinSIOp)
_FIXED, _MOVING, _DATA = range(3)


def keep_reads_inside(main: func.FuncOp) -> None:
    """Move what is not told by loops and sizes into the tensors that are read."""
    for op in list(main.walk()):
        if isinstance(op, linalg.ops.GenericOp | GenerateOp):
            kinds: dict[SSAValue, int] = {}
            for inner in list(op.walk()):
                if isinstance(inner, tensor.ExtractOp):
                    _clamp(op, inner, kinds)
        elif isinstance(op, tensor.ExtractOp) and op.parent_op() is main:
            _clamp(op, op, {})


def _clamp(outer: Operation, read: tensor.ExtractOp, kinds: dict[SSAValue, int]) -> None:
    before, inside = Emitter.before(outer), Emitter.before(read)
    for axis, place in enumerate(read.indices):
        if _kind(outer, place, kinds) == _DATA:
            last = before.add(arith.SubiOp(before.dim(read.tensor, axis), before.index(1))).result
            low = inside.add(arith.MinSIOp(place, last)).result
            read.operands[1 + axis] = inside.add(arith.MaxSIOp(low, inside.index(0))).result


def _kind(outer: Operation, value: SSAValue, kinds: dict[SSAValue, int]) -> int:
    """Whether `value` is the same in every iteration, moves with one loop, or anything else."""
    found = kinds.get(value)
    if found is None:
        found = kinds[value] = _computed_kind(outer, value, kinds)
    return found


def _computed_kind(outer: Operation, value: SSAValue, kinds: dict[SSAValue, int]) -> int:
    if isinstance(value, BlockArgument):
        counter = isinstance(outer, GenerateOp) and value.owner.parent_op() is outer
        return _MOVING if counter else _FIXED if isinstance(value.type, IndexType) and isinstance(value.owner.parent_op(), func.FuncOp) else _DATA
    assert isinstance(value, OpResult)
    op = value.op
    if isinstance(op, linalg.ops.IndexOp):
        return _MOVING
    if isinstance(op, arith.ConstantOp | tensor.DimOp):
        return _FIXED
    below = [_kind(outer, operand, kinds) for operand in op.operands]
    if isinstance(op, arith.MuliOp) and _MOVING in below:
        return _MOVING if any(isinstance(operand.owner, arith.ConstantOp) for operand in op.operands) else _DATA
    if isinstance(op, arith.IndexCastOp):
        return below[0]
    if isinstance(op, (*_SUMS, arith.MuliOp)):
        return _DATA if _DATA in below or below.count(_MOVING) > 1 else max(below)
    return _FIXED if below and set(below) == {_FIXED} and value.type == attributes.INDEX and not _inside(outer, op) else _DATA


def _inside(outer: Operation, op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not outer:
        parent = parent.parent_op()
    return parent is outer
