"""What a root makes, and ops behind it that compute element by element: they are one dispatch with it."""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.ir import SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import CHANNEL_WINDOWS, DENSE, Kind, is_generic, kind, producer_of
from fuseline.ir.build import shape_of
from fuseline.ir.fast.direct import operand_of

MOST_BEHIND = 16
"""Ops in a row that are followed back to a root."""


_IN_PLACE = (*RESHAPES, linalg.ops.TransposeOp)
"""What changes no element, only where it is said to lie."""


def back_to_root(value: SSAValue) -> list[SSAValue]:
    """`value` and what it is made of, element by element, back to the result of a root (a contraction or a convolution)
    that is the last; nothing where there is no such root."""
    found = [value]
    for _ in range(MOST_BEHIND):
        op = producer_of(found[-1])
        if isinstance(op, _IN_PLACE):
            found.append(operand_of(op, 0))
            continue
        if not is_generic(op):
            break
        if kind(op) in DENSE | CHANNEL_WINDOWS:
            return found
        same = [read for read in op.inputs if shape_of(read) == shape_of(found[-1])]
        if kind(op) is not Kind.ELEMENTWISE or not same:
            break
        found.append(same[0])
    return []
