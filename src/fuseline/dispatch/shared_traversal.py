"""How a part of a dispatch traverses its largest argument: parts that traverse one in step are made together, so that
it is read once.

%a = relu(%x); %s = sum of the rows of %x        both step along the rows of %x: together
%a = sum of the rows; %b = sum of the columns    nothing to step along in common: apart
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.structured import Kind, StructuredOp, captured_tensors, is_generic, kind
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product

SHARED_POINTS = 64
"""Steps in common from which on parts are made together: enough to share out among threads."""

_ROOTS = (Kind.CONTRACTION, Kind.CONVOLUTION, Kind.DEPTHWISE, Kind.POOLING)


@dataclass(frozen=True)
class SharedTraversal:
    """An argument, and its dimensions along which a part steps with loops that it could share out."""

    argument: BlockArgument
    axes: frozenset[int]

    def joined(self, view: DispatchView, other: SharedTraversal) -> SharedTraversal | None:
        """Both at once; None where they have too little in common."""
        common = SharedTraversal(self.argument, self.axes & other.axes)
        if self.argument is not other.argument:
            return None
        sizes = view.shapes.dims(self.argument)
        points = assumed_size(product(sizes[axis] for axis in common.axes))
        return common if points >= min(SHARED_POINTS, assumed_size(product(sizes))) else None


def shared_traversal(
    view: DispatchView, members: Sequence[Operation], stored: Sequence[SSAValue]
) -> SharedTraversal | None:
    """The traversal of a part that only moves, transforms or reduces its largest argument; None for any other.
    `stored`: what it writes."""
    if any(kind(op) in _ROOTS for op in members):
        return None
    read = {value for op in members for value in (*op.operands, *(captured_tensors(op) if op.regions else ()))} | set(
        stored
    )
    argument = max(
        (value for value in view.tensors if value in read),
        key=lambda value: assumed_size(num_bytes(value, view.shapes)),
        default=None,
    )
    if argument is None:
        return None
    axes = frozenset(range(len(view.shapes.dims(argument))))
    for op in members:
        axes &= (
            _steps(view, op, argument)
            if argument in op.operands or (op.regions and argument in captured_tensors(op))
            else axes
        )
    return SharedTraversal(argument, axes)


def _steps(view: DispatchView, op: Operation, argument: BlockArgument) -> frozenset[int]:
    """The dimensions of `argument` that a parallel loop of `op`, or a dimension of its result, steps along."""
    if isinstance(op, tensor.ExtractSliceOp):
        made = view.shapes.dims(op.result)
        read = view.shapes.dims(argument)
        return frozenset(axis for axis, size in enumerate(read) if len(made) == len(read) and made[axis] == size)
    if not is_generic(op) or argument in captured_tensors(op):
        return frozenset()
    structured = StructuredOp(op)
    maps = [map_ for value, map_ in zip(structured.inputs, structured.input_maps, strict=True) if value is argument]
    steps = [
        {i for i, e in enumerate(map_.results) if isinstance(e, AffineDimExpr) and e.position in structured.parallel}
        for map_ in maps
    ]
    return frozenset(set.intersection(*steps)) if steps else frozenset()
