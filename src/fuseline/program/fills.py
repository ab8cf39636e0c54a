"""Fills that need no dispatch: one element in memory, which the runtime repeats. What is put into one is copied there.

    %c = arith.constant 2.5 : f32              a constant of one element
    %s = tensor.extract %x[] : tensor<f32>     an element that lies somewhere already
    %f = linalg.fill ins(%s) outs(%e)          a step of the schedule, or a constant where it is small and known
    %r = tensor.insert_slice %y into %f[..]    two steps, a fill and a copy, whatever else reads %f

Only what no dispatch took in is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TypeGuard

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.shapes import ShapeAnalysis, static_numbers
from fuseline.analysis.views import is_known_before
from fuseline.dispatch.result_boxes import unreshaped
from fuseline.ir.build import shape_of
from fuseline.program.box_rows import ROW_LOOPS, box_rows

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


def is_insert_step(op: Operation | Block, shapes: ShapeAnalysis) -> TypeGuard[tensor.InsertSliceOp]:
    """Whether `op` puts a box into a fill."""
    return isinstance(op, tensor.InsertSliceOp) and is_fill_step(op.dest.owner) and is_box_of_rows(op, shapes)


def is_box_of_rows(op: tensor.InsertSliceOp, shapes: ShapeAnalysis) -> bool:
    """Whether `op` puts neighbouring elements where it is known before anything is computed, in as few loops of rows as
    the runtime has."""
    sizes, whole = shapes.dims(op.source), shapes.dims(op.dest)
    return (
        len(sizes) == len(whole)
        and set(static_numbers(op, "static_strides")) <= {1}
        and all(map(is_known_before, op.offsets))
        and len(box_rows(sizes, whole, 1).loops) <= ROW_LOOPS
    )


def is_needed(value: SSAValue) -> bool:
    """Whether anybody reads the elements of a fill. Who asks for a size does not, nor what is put into it: that begins
    with a fill of its own."""
    return any(_reads(reader, value) for reader in readers_of(value))


def _reads(op: Operation, value: SSAValue) -> bool:
    if isinstance(op, tensor.InsertSliceOp):
        return unreshaped(op.source) is value
    return not isinstance(op, tensor.DimOp | linalg.ops.FillOp)


def readers_of(value: SSAValue) -> Iterator[Operation]:
    """The ops that use `value`, as it is or under another shape."""
    for use in value.uses:
        if isinstance(use.operation, RESHAPES):
            yield from readers_of(use.operation.results[0])
        else:
            yield use.operation
