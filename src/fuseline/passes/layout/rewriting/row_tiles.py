"""Ops that cut dimensions into tiles and put those beside each other, and how.

expand (30, 30, 96) to (5, 6, 5, 6, 96), then transpose [0, 2, 1, 3, 4]
copy (i, j, k, l) of x[8 * i + k, 32 * j + l]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, yielded
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.generics import plain_loops
from fuseline.passes.layout.rewriting.permutation import apply, permutation_of, transpose, users_of
from fuseline.passes.layout.rewriting.scope import Scope

Part = tuple[int, int]
"""A dimension, and which of the sizes that it is cut into."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """`result` has the elements of `source`, each dimension of which is cut into `factors`, all numbers but the first;
    `order`: the parts as they are traversed."""

    source: SSAValue
    result: OpResult
    factors: Sequence[Sequence[Dim]]
    order: Sequence[Part]

    def replacement(self, scope: Scope, tiles: SSAValue) -> SSAValue:
        """What `result` is once `tiles` has the elements in `order`."""
        if is_generic(self.result.op):
            return tiles
        parts = [(axis, i) for axis, sizes in enumerate(self.factors) for i in range(len(sizes))]
        return transpose(scope, Emitter.before(self.result.op), tiles, [self.order.index(part) for part in parts])


def tiles_of(scope: Scope, op: Operation) -> Tiles | None:
    """The tiles that `op` makes; None where it makes none, or where a reader keeps its parts as they are."""
    if type(op) is tensor.ExpandShapeOp:
        return _expanded(scope, op)
    return _copied(scope, op) if is_generic(op) and len(op.inputs) == len(op.results) == 1 else None


def _expanded(scope: Scope, op: tensor.ExpandShapeOp) -> Tiles | None:
    readers = users_of(op.result)
    order = _order(op) if readers and all(_moves_on(reader) for reader in readers) else None
    if order is None:
        return None
    sizes = scope.dims(op.result)
    factors = [[sizes[axis] for axis in group] for group in groups_of(op)]
    if not all(isinstance(size, int) for group in factors for size in group[1:]):
        return None
    return Tiles(op.src, op.result, factors, order)


def _moves_on(reader: Operation) -> bool:
    """Whether `reader` takes parts in another order, and reads an element once."""
    if type(reader) is linalg.ops.TransposeOp:
        return True
    return is_generic(reader) and kind(reader) in (Kind.ELEMENTWISE, Kind.TRANSPOSE)


def _order(op: tensor.ExpandShapeOp) -> list[Part] | None:
    """In which order the first reader of `op` traverses its dimensions."""
    parts = [(axis, i) for axis, group in enumerate(groups_of(op)) for i in range(len(group))]
    reader = users_of(op.result)[0]
    if type(reader) is linalg.ops.TransposeOp:
        return apply(permutation_of(reader), parts)
    view = StructuredOp(cast(linalg.ops.GenericOp, reader))
    loops = plain_loops(view.maps[view.operands.index(op.result)])
    return [part for _, part in sorted(zip(loops, parts, strict=True))] if loops is not None else None


def _copied(scope: Scope, op: linalg.ops.GenericOp) -> Tiles | None:
    """A copy through a map each result of which is a number whose digits are loops."""
    view = StructuredOp(op)
    read, extents = view.input_maps[0], scope.dims(op.results[0])
    if not is_identity(view.output_maps[0]) or yielded(op)[0] is not view.body.args[0]:
        return None
    digits = [_digits(expr, extents) for expr in read.results]
    found = [loops for loops in digits if loops is not None]
    if len(found) != len(digits) or sorted(loop for loops in found for loop in loops) != list(range(view.rank)):
        return None
    factors = [[extents[loop] for loop in loops] for loops in found]
    if [d.product(sizes) for sizes in factors] != list(scope.dims(view.inputs[0])) or max(map(len, found)) == 1:
        return None
    part = {loop: (axis, i) for axis, loops in enumerate(found) for i, loop in enumerate(loops)}
    return Tiles(view.inputs[0], op.results[0], factors, [part[loop] for loop in range(view.rank)])


def _digits(expr: AffineExpr, extents: Sequence[Dim]) -> list[int] | None:
    """The loops that `expr` counts with, the slowest first; None where some elements are left out or met twice."""
    found = linear_terms(expr)
    if found is None or found[1] != 0:
        return None
    strides, stride = found[0], 1
    loops = sorted(strides, key=lambda loop: -strides[loop])
    for loop in reversed(loops):
        if strides[loop] != stride:
            return None
        size = extents[loop]
        if loop != loops[0] and not isinstance(size, int):
            return None
        stride *= size if isinstance(size, int) else 1
    return loops
