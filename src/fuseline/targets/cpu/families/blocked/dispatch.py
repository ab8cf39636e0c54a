"""What a blocked dispatch is made of: the ops that are computed, those read in place, and the loops that all computed
ones share.

*Placed* ops are computed block by block: every reduction, and everything elementwise that depends on one. *Moved*
values are rearrangements of placed ones (reshapes, transposes, slices): whoever reads them reads through them. The rest
depends on arguments only and is read in place.

The **grid** is what fusion gave the dispatch (`dispatch/fused_loops.py`). A **streamed** axis is met block by block
inside the block: some ops reduce along it, over values that go from one of its blocks to the next (`streaming.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import HEAVY, Kind, StructuredOp, is_generic, kind, splat_value, tensor_operands
from fuseline.dispatch.body_classes import BodyClasses
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.dispatch.result_boxes import unreshaped
from fuseline.dispatch.view import DispatchView

_REARRANGING = (Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST)


@dataclass(frozen=True)
class BlockedDispatch:
    """The parts of a dispatch. `placed` are in order; `moved` are the ops that only rearrange what placed ones make.

    `carried` are uninitialised tensors that a block finds filled by the one before it.
    """

    view: DispatchView
    axes: BodyClasses
    placed: tuple[linalg.ops.GenericOp, ...]
    moved: frozenset[Operation]
    carried: frozenset[SSAValue] = frozenset()

    @cached_property
    def grid(self) -> tuple[LoopRef, ...]:
        """The loops that fusion lets all placed ops share, in the order of the last one: those that can be blocked."""
        given = [axis for axis in self.axes.grid if axis not in self.bent]
        order = self.axes.of_value(self.placed[-1].results[0]) if self.placed else []
        return tuple(sorted(given, key=lambda axis: order.index(axis) if axis in order else len(order)))

    @cached_property
    def bent(self) -> frozenset[LoopRef]:
        """Axes in a coordinate that is not a sum of multiples of loops: no block of such a loop reads a box."""
        read_through = [op for op in self.moved if is_generic(op)]
        found = {
            self.axes.of_op(op)[loop] for op in (*self.placed, *read_through) for loop in _non_linear(StructuredOp(op))
        }
        return frozenset(axis for axis in found if axis is not None)

    @cached_property
    def returned(self) -> frozenset[SSAValue]:
        """The values that leave the dispatch, reshapes looked through."""
        return frozenset(unreshaped(result) for result in self.view.results)

    def parallel(self, op: linalg.ops.GenericOp) -> set[LoopRef]:
        """The axes of the parallel loops of a placed op."""
        loops = self.axes.of_op(op)
        return {axis for loop in StructuredOp(op).parallel if (axis := loops[loop]) is not None}

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is computed block by block, or is a rearrangement of such values."""
        return isinstance(value, OpResult) and (
            value in self.carried or value.op in self.moved or value.op in self.placed
        )

    def heavy(self, op: Operation) -> bool:
        """Whether a placed op is one that a dispatch is built around."""
        return kind(op) in HEAVY

    def meets(self, op: linalg.ops.GenericOp, axis: LoopRef) -> bool:
        """Whether a placed op has a loop along `axis`."""
        return axis in self.axes.of_op(op)


def blocked_dispatch(
    view: DispatchView, carried: frozenset[SSAValue] = frozenset(), classes: BodyClasses | None = None
) -> BlockedDispatch:
    """The parts of a dispatch; `carried` are its values that blocks fill for each other, `classes` those of its loops
    (those of the view, unless given)."""
    results = _stored(view)
    placed: list[linalg.ops.GenericOp] = []
    moved: set[Operation] = set()
    for op in view.members:
        depends = any(
            isinstance(v, OpResult) and (v in carried or v.op in moved or v.op in placed) for v in tensor_operands(op)
        )
        if is_generic(op) and (
            StructuredOp(op).reduction or (_computes(op, results) and (depends or results & set(op.results)))
        ):
            placed.append(op)
        elif depends:
            moved.add(op)
    moved = _read_by(placed, moved)
    return BlockedDispatch(view, classes or view.classes, tuple(placed), frozenset(moved), carried)


def _stored(view: DispatchView) -> set[SSAValue]:
    """The results of a dispatch, and the parts of those that are concats, which lie in the result."""
    results = {unreshaped(result) for result in view.results}
    concats = [value.op for value in results if isinstance(value, OpResult) and isinstance(value.op, tensor.ConcatOp)]
    return results.union(*(concat.inputs for concat in concats))


def _computes(op: linalg.ops.GenericOp, results: set[SSAValue]) -> bool:
    """Whether an op must be computed somewhere: readers cannot see through it, or it is a result."""
    return kind(op) not in _REARRANGING or bool(results & set(op.results))


def _read_by(placed: Sequence[Operation], moved: set[Operation]) -> set[Operation]:
    """The rearranging ops that computed ones read through; others only say how a result is returned."""
    found: set[Operation] = set()
    pending: list[Operation] = list(placed)
    while pending:
        for value in tensor_operands(pending.pop()):
            if isinstance(value, OpResult) and value.op in moved and value.op not in found:
                found.add(value.op)
                pending.append(value.op)
    return found


def _non_linear(structured: StructuredOp) -> Iterable[int]:
    """The loops in a coordinate that is not a sum of multiples of loops."""
    return {
        loop
        for map_ in structured.maps
        for expr in map_.results
        if linear_terms(expr) is None
        for loop in dims_of(expr)
    }


def starts_empty(value: SSAValue) -> bool:
    """Whether a tensor holds nothing of interest, or one number throughout: a new one of another size does as well."""
    return splat_value(value) is not None or (isinstance(value, OpResult) and isinstance(value.op, tensor.EmptyOp))
