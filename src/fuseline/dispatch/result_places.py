"""Where a dispatch writes its results: the whole of one, or a box of it.

A returned `tensor.insert_slice %part into %empty` with steps of 1 writes the box that it names and leaves the rest
alone: what the rest holds is somebody else's affair. Reshapes change nothing in memory, so what is written is the value
before them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.shapes import ShapeAnalysis, static_numbers
from fuseline.ir.dim import Dim


@dataclass(frozen=True, slots=True)
class Place:
    """`value` lies at `offsets` (none: at the start) in a row-major tensor of sizes `dims`."""

    value: SSAValue
    dims: tuple[Dim, ...]
    offsets: tuple[Dim, ...] = ()

    @property
    def sliced(self) -> bool:
        """Whether it is a box of the tensor rather than all of it."""
        return bool(self.offsets)


def place_of(shapes: ShapeAnalysis, result: SSAValue) -> Place:
    """What is computed for a result of a dispatch, and where it goes."""
    value = unreshaped(result)
    box = _box(shapes, value)
    return box if box is not None else Place(value, shapes.dims(value))


def unreshaped(value: SSAValue) -> SSAValue:
    """What a value is before reshapes: the same elements in the same order."""
    while isinstance(value, OpResult) and isinstance(value.op, RESHAPES):
        value = value.op.operands[0]
    return value


def _box(shapes: ShapeAnalysis, value: SSAValue) -> Place | None:
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
    return Place(op.source, dims, offsets)
