"""The operands of a dispatch's root as parts of its bindings."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.operand_access import Bound, LinearAccess, Segment, segments
from fuseline.analysis.segment_boundaries import segment_boundaries, stored_strides
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim

__all__ = [
    "Bound",
    "LinearAccess",
    "access_segments",
    "contiguous_reads",
    "is_binding",
    "linear_access",
    "loop_boundaries",
    "plain_access",
    "value_boundaries",
]

MOST_PIECES = 32
"""Pieces of a loop that are worth code of their own: a dispatch binds no more buffers than that."""


def access_segments(
    view: DispatchView, value: SSAValue, map_: AffineMap, extents: Sequence[Dim], *, borders: bool = False
) -> tuple[Segment, ...]:
    """How the elements that `map_` picks of `value` lie in bindings, segment by segment; none where they are computed,
    or lie behind borders that repeat a tensor, unless the caller can read those (`borders`)."""
    found = segments(view.shapes, value, map_, extents, is_binding) or ()
    return () if any(segment.access.borders for segment in found) and not borders else found


def linear_access(view: DispatchView, value: SSAValue, map_: AffineMap, extents: Sequence[Dim]) -> LinearAccess | None:
    """The one access, linear in the loops, behind all elements; None where there is none."""
    return plain_access(access_segments(view, value, map_, extents))


def plain_access(found: Sequence[Segment]) -> LinearAccess | None:
    """The access of an only segment without floordiv_terms."""
    return found[0].access if len(found) == 1 and not found[0].access.floordiv_terms else None


def loop_boundaries(
    view: DispatchView, value: SSAValue, map_: AffineMap, loop: int, extents: Sequence[Dim], *, step: int = 1
) -> tuple[int, ...]:
    """Where to cut a loop so that what `value` is made of meets no border inside a piece: multiples of `step`, and not
    too many."""
    cuts = segment_boundaries(view.shapes, value, map_, loop, extents, is_binding)
    return cuts if len(cuts) < MOST_PIECES and all(cut % step == 0 for cut in cuts) else ()


def value_boundaries(view: DispatchView, value: SSAValue, axis: int, start: int, step: int) -> tuple[int, ...]:
    """Where to cut every `step`-th place along a dimension of `value`, from `start` on, so that no piece meets a border
    of what it is made of."""
    sizes = view.shapes.dims(value)
    size = sizes[axis]
    if not isinstance(size, int):
        return ()
    dims = [AffineExpr.dimension(i) for i in range(len(sizes))]
    map_ = AffineMap(len(sizes), 0, tuple(dim * step + start if i == axis else dim for i, dim in enumerate(dims)))
    extents = [-(-(size - start) // step) if i == axis else extent for i, extent in enumerate(sizes)]
    return loop_boundaries(view, value, map_, axis, extents)


def contiguous_reads(view: DispatchView, value: SSAValue, map_: AffineMap, loop: int, extents: Sequence[Dim]) -> int:
    """How many of the tensors that `value` is made of are traversed element by element by `loop`."""
    return stored_strides(view.shapes, value, map_, loop, extents, is_binding).count(1)


def is_binding(value: SSAValue) -> bool:
    """Whether a value lies in memory: it is a tensor that the dispatch is given."""
    return isinstance(value, BlockArgument) and isinstance(value.type, TensorType)
