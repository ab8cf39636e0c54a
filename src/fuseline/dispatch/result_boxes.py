"""Where a dispatch writes its results: the whole of one, or a box of it.

A returned `tensor.insert_slice %part into %empty` with steps of 1 writes the box that it names and leaves the rest
alone: what the rest holds is somebody else's affair. Reshapes change nothing in memory, so what is written is the value
before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import func, tensor
from xdsl.ir import Block, OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.shapes import ShapeAnalysis, static_numbers
from fuseline.analysis.structured import FREE, kind
from fuseline.ir.dim import Dim, add
from fuseline.ir.flow import ReturnOp


@dataclass(frozen=True, slots=True)
class ResultBox:
    """`value`, of sizes `extents`, lies at `offsets` in a row-major tensor of sizes `dims`; without offsets it is all
    of that."""

    value: SSAValue
    dims: tuple[Dim, ...]
    offsets: tuple[Dim, ...] = ()
    extents: tuple[Dim, ...] = ()

    @property
    def sliced(self) -> bool:
        """Whether it is a box of the tensor rather than all of it."""
        return bool(self.offsets)

    def covers(self, axis: int) -> bool:
        """Whether it goes from the first to the last place along `axis`."""
        return not self.sliced or (self.offsets[axis] == 0 and self.extents[axis] == self.dims[axis])


def box_of(shapes: ShapeAnalysis, result: SSAValue) -> ResultBox:
    """What is computed for a result of a dispatch, and where it goes."""
    value = unreshaped(result)
    box = _box(shapes, value)
    return box if box is not None else ResultBox(value, shapes.dims(value))


def returned(body: Block) -> tuple[SSAValue, ...]:
    """What an entry function, or a dispatch region, returns."""
    last = body.last_op
    return tuple(last.operands) if isinstance(last, func.ReturnOp | ReturnOp) else ()


def stored_boxes(body: Block, shapes: ShapeAnalysis) -> Iterator[tuple[int, ResultBox]]:
    """What is stored in each result, by its number: one value, or the parts of a concat along the innermost dimension
    (elsewhere a branch per row costs nothing)."""
    for position, result in enumerate(returned(body)):
        result_box = box_of(shapes, result)
        parts = _concat_parts(shapes, result_box.value) if not result_box.sliced else None
        if parts is None:
            yield position, result_box
            continue
        axis, offset = parts.dim.value.data, 0
        for part in parts.inputs:
            offsets, extents = tuple(offset if i == axis else 0 for i in range(len(result_box.dims))), shapes.dims(part)
            yield position, ResultBox(part, result_box.dims, offsets, extents)
            offset = add(offset, extents[axis])


def _concat_parts(shapes: ShapeAnalysis, value: SSAValue) -> tensor.ConcatOp | None:
    """The concat that a value is, where its parts can be stored one by one: nobody reads it."""
    if not isinstance(value, OpResult) or not isinstance(value.op, tensor.ConcatOp):
        return None
    moving = [i for i, size in enumerate(shapes.dims(value)) if size != 1]
    readers = [use.operation for use in value.uses]
    only_returned = all(isinstance(reader, func.ReturnOp) or kind(reader) in FREE for reader in readers)
    return value.op if len(moving) > 1 and value.op.dim.value.data == moving[-1] and only_returned else None


def unreshaped(value: SSAValue) -> SSAValue:
    """What a value is before reshapes: the same elements in the same order."""
    while isinstance(value, OpResult) and isinstance(value.op, RESHAPES):
        value = value.op.operands[0]
    return value


def _box(shapes: ShapeAnalysis, value: SSAValue) -> ResultBox | None:
    if not isinstance(value, OpResult) or not isinstance(value.op, tensor.InsertSliceOp):
        return None
    op, dims = value.op, shapes.dims(value)
    offsets = shapes.mixed(static_numbers(op, "static_offsets"), op.offsets)
    steps = shapes.mixed(static_numbers(op, "static_strides"), op.strides)
    if (
        not isinstance(op.dest.owner, tensor.EmptyOp)
        or any(step != 1 for step in steps)
        or len(shapes.dims(op.source)) != len(dims)
    ):
        return None
    return ResultBox(op.source, dims, offsets, shapes.dims(op.source))
