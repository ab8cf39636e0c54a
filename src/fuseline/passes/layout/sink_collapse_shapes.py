"""A collapse_shape sinks below the generic that reads it, whose loops are split.

    elementwise(collapse(x))      =>      collapse(elementwise(x))

So elementwise ops and reductions run in the shape in which their operand was made and stand right behind its producer;
a collapse comes to rest before an op whose summed loops or windows it feeds, where it is the free alias of a contiguous
buffer, or meets an expand and cancels. So it does below a concat (`rewriting/collapsed_parts.py`). One of repeated
pixels beside what a window makes, whose loops cannot be split, is read at computed places instead
(`rewriting/repeated_images.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import ops_of
from fuseline.passes.layout.rewriting.broadcasts import broadcast_source
from fuseline.passes.layout.rewriting.collapsed_parts import sink_below_concat
from fuseline.passes.layout.rewriting.common_refinement import common_refinement
from fuseline.passes.layout.rewriting.free_reshapes import cancels, is_free
from fuseline.passes.layout.rewriting.loops import can_expand, dims_in, expand_loops, expanded_dims
from fuseline.passes.layout.rewriting.repeated_images import read_repeated_images
from fuseline.passes.layout.rewriting.reshapes import is_reshape, merge_chain, root_of, segments
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.stored_values import is_stored_before
from fuseline.passes.layout.rewriting.upward import can_expand_result

_ANY_LOOP = (Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST, Kind.REDUCTION)
_PARALLEL_LOOPS = (Kind.CONTRACTION, Kind.GATHER)

Splits = dict[int, list[Dim]]


@dataclass(frozen=True)
class SinkCollapseShapesPass(ScopedPass):
    """Moves collapse_shape ops below elementwise ops, reductions and the rows of contractions."""

    name = "sink-collapse-shapes"

    def rewrite(self, scope: Scope) -> None:
        """In order, so that a collapse that sank is met again by the next op."""
        scope.lift_sizes()
        for inner in ops_of(scope.block):
            if is_generic(inner):
                _sink_into(scope, inner)
            elif type(inner) is tensor.ConcatOp:
                sink_below_concat(scope, inner)
            elif is_reshape(inner):
                merge_chain(scope, inner)
        scope.sweep()


def _sink_into(scope: Scope, op: linalg.ops.GenericOp) -> None:
    read_repeated_images(scope, op)
    view = StructuredOp(op)
    wanted = _wanted(scope, view)
    splits = {loop: sizes for loop, sizes in wanted.items() if _pays(scope, view, {loop: sizes})}
    if splits and can_expand(scope, view, splits):
        expand_loops(scope, op, splits)


def _wanted(scope: Scope, view: StructuredOp) -> Splits:
    """The loops that traverse a collapsed dimension, with the sizes it was collapsed from; the first operand in order
    decides."""
    what = kind(view.op)
    found: Splits = {}
    if what not in _ANY_LOOP and what not in _PARALLEL_LOOPS:
        return found
    for value, map_ in zip(view.inputs, view.input_maps, strict=True):
        collapsed = _collapsed(scope, value, what)
        if collapsed is None:
            continue
        for expr, sizes in zip(map_.results, collapsed, strict=True):
            if (
                sum(size != 1 for size in sizes) > 1
                and type(expr) is AffineDimExpr
                and (what in _ANY_LOOP or view.iterators[expr.position] == "parallel")
            ):
                found.setdefault(expr.position, list(sizes))
    return found


def _collapsed(scope: Scope, value: SSAValue, reader: Kind) -> Sequence[Sequence[Dim]] | None:
    """For each dimension of `value` the sizes it was collapsed from; None where it was not. One that was expanded as
    well, 64 x 16 to 512 x 2, is so for a transpose alone, which has no rows that would become short."""
    op = producer_of(value)
    if is_free(value):
        return None
    if type(op) is tensor.CollapseShapeOp:
        dims = scope.dims(op.src)
        return [[dims[axis] for axis in group] for group in groups_of(op)]
    return _regrouped(scope, value) if reader is Kind.TRANSPOSE and type(op) is tensor.ExpandShapeOp else None


def _regrouped(scope: Scope, value: SSAValue) -> Sequence[Sequence[Dim]] | None:
    """The sizes that fit `value` and what it is a reshape of, for its dimensions among several that were made of
    several."""
    before, after = scope.dims(root_of(value)), scope.dims(value)
    refined = common_refinement(before, after)
    if refined is None:
        return None
    mixed = [min(left, right) > 1 for left, right in segments(before, after) for _ in range(right)]
    return [sizes if apart else [size] for size, sizes, apart in zip(after, refined[1], mixed, strict=True)]


def _pays(scope: Scope, view: StructuredOp, splits: Mapping[int, Sequence[Dim]]) -> bool:
    """Whether splitting cancels more reshapes than it makes; reshapes of arguments, constants and inits count nothing,
    nor do those of the other end of a residual connection.

    A collapse behind a broadcast counts twice: without it the reader can do without the broadcast as well.
    """
    balance = 0
    for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
        if not dims_in(map_) & splits.keys() or is_free(value):
            continue
        dims = expanded_dims(scope, value, map_, splits)
        if cancels(scope, value, dims):
            balance += 2 if broadcast_source(root_of(value)) is not None else 1
        elif not can_expand_result(scope, value, dims) and not is_stored_before(value, view.op):
            balance -= 1
    return balance > 0


EXPORT = SinkCollapseShapesPass
