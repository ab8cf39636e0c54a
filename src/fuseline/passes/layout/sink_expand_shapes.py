"""An expand_shape sinks below the elementwise op or reduction that reads it, whose loops are merged.

    elementwise(expand(x))      =>      expand(elementwise(x))
    slice(expand(x))            =>      expand(slice(x))              where the slice is one range of each dimension of
                                                                      x

So the elementwise op stands right behind the producer of `x` and can be its epilogue. An op stays where an operand
names only some of the dimensions that would merge (a scale per head over heads x width), or where the reshape would
only move to another operand.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.rounds import rounds
from fuseline.passes.layout.rewriting.free_reshapes import cancels, is_free
from fuseline.passes.layout.rewriting.loops import can_collapse, collapse_loops, collapsed_dims, dims_in
from fuseline.passes.layout.rewriting.reshapes import is_reshape, merge_chain
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.slices import slice_collapsed

_KINDS = (Kind.ELEMENTWISE, Kind.COPY, Kind.BROADCAST, Kind.REDUCTION)


@dataclass(frozen=True)
class SinkExpandShapesPass(ScopedPass):
    """Moves expand_shape ops below elementwise ops and reductions."""

    name = "sink-expand-shapes"

    def rewrite(self, scope: Scope) -> None:
        """In order, so that an expand that sank is met again by the next op."""
        scope.lift_sizes()
        for inner in ops_of(scope.block):
            if type(inner) is tensor.ExtractSliceOp:
                slice_collapsed(scope, inner)
            elif is_reshape(inner):
                merge_chain(scope, inner)
            elif is_generic(inner) and kind(inner) in _KINDS:
                _sink_into(scope, inner)
        scope.sweep()


def _sink_into(scope: Scope, op: linalg.ops.GenericOp) -> None:
    """Merge one group of loops at a time; each merge removes loops, so this ends."""
    for _ in rounds("merging loops", most=len(op.iterator_types)):
        group = _next_group(scope, op)
        if group is None:
            break
        op = collapse_loops(scope, op, group)


def _next_group(scope: Scope, op: linalg.ops.GenericOp) -> list[int] | None:
    view = StructuredOp(op)
    for value, map_ in zip(view.inputs, view.input_maps, strict=True):
        made = producer_of(value)
        if type(made) is tensor.ExpandShapeOp and not is_free(value):
            for axes in groups_of(made):
                group = _loops(map_, axes)
                if group is not None and can_collapse(scope, view, group) and _pays(scope, view, group):
                    return group
    return None


def _loops(map_: AffineMap, axes: list[int]) -> list[int] | None:
    exprs = [map_.results[axis] for axis in axes]
    loops = [expr.position for expr in exprs if type(expr) is AffineDimExpr]
    return loops if len(loops) == len(axes) > 1 else None


def _pays(scope: Scope, view: StructuredOp, group: list[int]) -> bool:
    """Whether more reshapes cancel than are made; reshapes of arguments, constants and inits count nothing."""
    balance = 0
    for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
        if not dims_in(map_) & set(group) or is_free(value):
            continue
        balance += 1 if cancels(scope, value, collapsed_dims(scope, value, map_, group)) else -1
    return balance > 0


EXPORT = SinkExpandShapesPass
