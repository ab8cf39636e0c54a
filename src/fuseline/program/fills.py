"""Fills that need no dispatch: one element in memory, which the runtime repeats.

%c = arith.constant 2.5 : f32              a constant of one element
%s = tensor.extract %x[] : tensor<f32>     an element that lies somewhere already

%f = linalg.fill ins(%s) outs(%empty)      a step of the schedule, or a constant where it is small and known
"""

from __future__ import annotations

from math import prod
from typing import TypeGuard

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.ir.build import shape_of

MOST_ELEMENTS = 1 << 20
"""A result of more elements that are one number is filled at run time: it would only make the program larger."""


def elements_of(value: SSAValue) -> int:
    """How many elements a tensor has; -1 where that is not known."""
    return -1 if DYNAMIC_INDEX in shape_of(value) else prod(shape_of(value))


def is_small_constant(fill: linalg.ops.FillOp) -> bool:
    """Whether a fill is of known value and size, and not larger than constants should be."""
    return isinstance(fill.inputs[0].owner, arith.ConstantOp) and 0 <= elements_of(fill.results[0]) <= MOST_ELEMENTS


def is_fill_step(op: Operation | Block) -> TypeGuard[linalg.ops.FillOp]:
    """Whether `op` fills with a constant, or with the only element of a tensor."""
    if not isinstance(op, linalg.ops.FillOp):
        return False
    number = op.inputs[0].owner
    return isinstance(number, arith.ConstantOp) or (
        isinstance(number, tensor.ExtractOp) and elements_of(number.tensor) == 1
    )


def is_needed(value: SSAValue) -> bool:
    """Whether the elements of `value` are read, as they are or under another shape; the other uses ask for a size, or
    are of what is written into it first."""
    return any(_is_read_by(use.operation) for use in value.uses)


def _is_read_by(op: Operation) -> bool:
    if isinstance(op, RESHAPES):
        return is_needed(op.results[0])
    return not isinstance(op, tensor.DimOp | linalg.ops.FillOp)
