"""Ops that move the elements of one tensor, some of them to several places: broadcasts, gathers at computed positions
(a border, an upsampling), reshapes, transposes; and the same ops over elements of another type."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of, yielded
from fuseline.analysis.walks import loops_behind
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast.attributes import tensor_type
from fuseline.ir.fast.direct import body_of, operand_of, operands_of, result_of, set_operand, set_type
from fuseline.passes.layout.rewriting.generics import extracts_of, plain_loops

_RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp)
_COPIES = (Kind.BROADCAST, Kind.TRANSPOSE)


def moved_by(op: Operation | None) -> SSAValue | None:
    """The one tensor whose elements `op` moves, whatever their type; None where it does anything else."""
    if op is None or type(op) in _RESHAPES:
        return operands_of(op)[0] if op is not None else None
    if not is_generic(op) or len(op.results) != 1 or StructuredOp(op).reduction:
        return None
    if kind(op) in _COPIES:
        return operand_of(op, 0) if len(operands_of(op)) == 2 and yielded(op)[0] is body_of(op).args[0] else None
    return _gathered(op) if kind(op) is Kind.GATHER else None


def _gathered(op: linalg.ops.GenericOp) -> SSAValue | None:
    """The tensor from outside of which a gather yields an element, read for nothing else."""
    (value,) = yielded(op)
    read = producer_of(value)
    if not isinstance(read, tensor.ExtractOp) or len(list(value.uses)) != 1:
        return None
    source = read.tensor
    outside = source.op.parent is op.parent if isinstance(source, OpResult) else source.owner is op.parent
    return source if outside and len(extracts_of(op, source)) == 1 and source not in operands_of(op) else None


def source_order(op: linalg.ops.GenericOp) -> Sequence[int] | None:
    """The dimensions of what a gather reads in the order in which its result has them, each at a coordinate of one loop
    of its own; None where they lie so, or coordinates are others."""
    view, source = StructuredOp(op), moved_by(op)
    written = plain_loops(view.output_maps[0]) if kind(op) is Kind.GATHER and source is not None else None
    if written is None or source is None:
        return None
    (read,) = extracts_of(op, source)
    loops = [loop for index in read.indices for loop in loops_behind(view, index)]
    if len(loops) != len(read.indices) or sorted(loops) != sorted(written):
        return None
    order = [loops.index(loop) for loop in written]
    return order if order != sorted(order) else None


def moved_again(emit: Emitter, op: Operation, source: SSAValue) -> SSAValue:
    """What `op`, which `moved_by` or `moved_elements` knows, makes of `source`, whose elements may have another
    type."""
    if isinstance(op, (*RESHAPES, tensor.ExtractSliceOp)):
        return emit.reshaped_again(op, source)
    assert is_generic(op)
    moved, new = _gathered(op) if kind(op) is Kind.GATHER else operand_of(op, 0), emit.add(op.clone())
    assert moved is not None and is_generic(new)
    last, element = len(operands_of(new)) - 1, element_of(source)
    for read in extracts_of(new, moved):
        set_operand(read, 0, source)
        set_type(result_of(read), element)
    if moved is operand_of(new, 0):
        set_operand(new, 0, source)
        set_type(body_of(new).args[0], element)
    set_operand(new, last, Emitter.before(new).empty_like(operand_of(new, last), element))
    set_type(body_of(new).args[last], element)
    set_type(result_of(new), tensor_type(element, shape_of(result_of(new))))
    return result_of(new)
