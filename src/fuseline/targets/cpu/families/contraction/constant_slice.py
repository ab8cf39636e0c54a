"""Constant operands whose bytes may be laid out at compile time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, OpResult
from xdsl.ir.affine import AffineDimExpr

from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Operand
from fuseline.targets.cpu.families.contraction.packable_constants import is_packable_constant


@dataclass(frozen=True, slots=True)
class ConstantSlice:
    """A constant argument whose bytes may be laid out at compile time; `starts` says where the part of it that is read
    begins along loops."""

    argument: BlockArgument
    starts: Mapping[int, Dim]


def constant_slice(view: DispatchView, operand: Operand) -> ConstantSlice | None:
    """The constant that an operand is, or is cut from with steps of 1; None where its bytes may not be laid out for
    this operand alone."""
    value, offsets = operand.value, None
    if isinstance(value, OpResult) and isinstance(value.op, tensor.ExtractSliceOp) and len(list(value.uses)) == 1:
        op = value.op
        steps = view.shapes.mixed([int(n) for n in op.static_strides.get_values()], op.strides)
        if any(step != 1 for step in steps) or len(steps) != len(view.shapes.dims(value)):
            return None
        value, offsets = op.source, view.shapes.mixed([int(n) for n in op.static_offsets.get_values()], op.offsets)
    whole = replace(operand, value=value)
    if not is_packable_constant(view, whole):
        return None
    assert isinstance(value, BlockArgument)
    moved = [(expr, offset) for expr, offset in zip(operand.map.results, offsets or (), strict=False) if offset != 0]
    starts = {expr.position: offset for expr, offset in moved if isinstance(expr, AffineDimExpr)}
    return ConstantSlice(value, starts) if len(starts) == len(moved) else None
