"""The tensors that an op reads, and at which coordinates over its loops: the one answer that fusion, the check of
`fuseline.loops` and code generation share.

    %s = generic (i, j)  ins %a (i, j)  outs %b (i)        (%a, (i, j)), and (%b, (i)) where the body uses it
    %g = generic (i, j)  extract %a[i, %place]             (%a, (i, None))
    %t = extract_slice %a[2]                               (%a, (d0 + 2)), over the dimensions of %t
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import Coordinate, affine_sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, body_ops, captured_tensors, is_generic
from fuseline.analysis.walks import loop_of

Coordinates: TypeAlias = Sequence[Coordinate] | None
"""Those of a tensor that is read; None where all of it, or all along a dimension, may be read."""


def operand_reads(
    op: Operation, shapes: ShapeAnalysis, *, moves: bool = True
) -> Iterator[tuple[SSAValue, Coordinates]]:
    """Each read of `op`, over the loops of a structured op or the dimensions of a moving op's result. An init that the
    body ignores is not read. Without `moves`, a moving op may read anything of its operands."""
    if is_generic(op):
        view = StructuredOp(op)
        for value, map_, argument in zip(view.operands, view.maps, view.body.args, strict=True):
            if argument.first_use is not None:
                yield value, map_.results
    else:
        found = affine_sources(op, shapes) if moves else None
        tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
        yield from ((one.value, one.at) for one in found) if found is not None else ((one, None) for one in tensors)
    for value in captured_tensors(op) if op.regions else ():
        yield value, _picked_at(op, value) if is_generic(op) else None


def _picked_at(op: linalg.ops.GenericOp, value: SSAValue) -> Coordinates:
    """Where a body picks elements of `value`: a loop for each dimension along which it takes them all in step with that
    one. None where it picks none, as it asks for a size alone."""
    extracts = (one for one in body_ops(op) if isinstance(one, tensor.ExtractOp) and one.tensor is value)
    picked = [[loop_of(index) for index in one.indices] for one in extracts]
    if not picked:
        return None
    loops = [at[0] if len(set(at)) == 1 else None for at in zip(*picked, strict=True)]
    return [None if loop is None else AffineDimExpr(loop) for loop in loops]
