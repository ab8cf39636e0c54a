"""The tensors that an op reads, and at which coordinates over its loops: the one answer that fusion, the check of
`fuseline.loops` and code generation share.

    %s = generic (i, j)  ins %a (i, j)  outs %b (i)        (%a, (i, j)), and (%b, (i)) where the body uses it
    %t = extract_slice %a[2]                               (%a, (d0 + 2)), over the dimensions of %t
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.moves import Coordinate, affine_sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic

Coordinates: TypeAlias = Sequence[Coordinate] | None
"""Those of a tensor that is read; None where all of it may be read."""


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
    yield from ((value, None) for value in (captured_tensors(op) if op.regions else ()))
