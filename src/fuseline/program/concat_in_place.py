"""Concats that need no dispatch: their parts lie one behind the other in memory, so whoever makes a part can write it
there.

    %c = tensor.concat dim(0) %a, %b, %x      %a and %b are results of dispatches: they are written into the buffer of
                                              %c
                                              %x is an argument: it alone is copied to its place
                                              what is one number everywhere is filled there

That holds for a concat along the outermost dimension, dimensions of size 1 aside. A part has one place: what is
returned, or lies in a concat already, is copied into the next.
"""

from __future__ import annotations

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.views import base_of, is_view
from fuseline.dispatch.result_boxes import unreshaped
from fuseline.ir.dim import symbols
from fuseline.ir.flow import DispatchOp, DispatchRegionOp
from fuseline.program.fills import is_fill_step, is_insert_step

MOST_COPIES = 1
"""Parts that may have to be copied or filled beside those that are written there: more would be more launches than the
concat's own dispatch. Where nothing is written there, the copies are all that there is, and take no code of their
own."""


class ConcatsInPlace:
    """Deals out the places in the concats of a function's `block`, which must be asked for in program order."""

    def __init__(self, block: Block, shapes: ShapeAnalysis) -> None:
        end = block.last_op
        returned = end.operands if isinstance(end, ReturnOp) else ()
        self.taken = {unreshaped(value) for value in returned}
        self.shapes = shapes
        tensors = [argument for argument in block.args if isinstance(argument.type, TensorType)]
        self.given = {symbol for argument in tensors for size in shapes.dims(argument) for symbol in symbols(size)}

    def claim(self, op: tensor.ConcatOp) -> list[SSAValue | None] | None:
        """For each part the value that is written where the part belongs, None where the part is copied there.

        No answer where the concat has to be a dispatch; then nothing is claimed.
        """
        if not self._is_stacked(op) or not all(_is_in_memory(part) for part in op.inputs):
            return None
        mine: dict[SSAValue, None] = {}
        extra = 0
        found: list[SSAValue | None] = []
        for part in op.inputs:
            value = unreshaped(part)
            free = self._is_made_by_a_step(value) and value not in self.taken and value not in mine
            found.append(value if free else None)
            extra += not free or self._is_filled(value)
            if free:
                mine[value] = None
        if extra > MOST_COPIES and (extra < len(op.inputs) or not all(map(self._takes_no_code, op.inputs))):
            return None
        self.taken |= mine.keys()
        return found

    def _takes_no_code(self, part: SSAValue) -> bool:
        """Whether a part is an argument of the program, or lies in one, or is one number everywhere."""
        base = base_of(part)
        return isinstance(base, BlockArgument) or self._is_filled(base)

    def _is_made_by_a_step(self, value: SSAValue) -> bool:
        """Whether the value can be made in a place of our choice: by a dispatch, a call, as a fill, or as another
        concat that needs no dispatch."""
        made = isinstance(value.owner, DispatchRegionOp | DispatchOp | CallOp | tensor.ConcatOp)
        return made or self._is_filled(value)

    def _is_filled(self, value: SSAValue) -> bool:
        """Whether the runtime fills it, and may put something into it."""
        return is_fill_step(value.owner) or is_insert_step(value.owner, self.shapes)

    def _is_stacked(self, op: tensor.ConcatOp) -> bool:
        """Whether the parts are contiguous in the concat, and its size is known before any of them is made."""
        dims = self.shapes.dims(op.result)
        known = {symbol for size in dims for symbol in symbols(size)} <= self.given
        return known and all(size == 1 for size in dims[: op.dim.value.data])


def concats_in_place(block: Block, shapes: ShapeAnalysis) -> set[Operation]:
    """The concats of a function that lie between dispatches as memory: some part is written in its place by a dispatch
    that is formed already."""
    places = ConcatsInPlace(block, shapes)
    claims = {op: places.claim(op) for op in block.ops if isinstance(op, tensor.ConcatOp)}
    return {op for op, parts in claims.items() if any(part is not None for part in parts or ())}


def _is_in_memory(part: SSAValue) -> bool:
    """Whether there is a buffer to copy the part from, where it has to be copied."""
    value = part
    while isinstance(value, OpResult) and is_view(value.op):
        value = value.op.operands[0]
    if isinstance(value, BlockArgument):
        return True
    if isinstance(value.owner, linalg.ops.FillOp):
        return is_fill_step(value.owner)
    return not isinstance(value.owner, tensor.EmptyOp)
