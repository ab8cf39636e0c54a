"""Loops of a generic split into several, or merged into one, with reshapes around the op.

expand_loops:    op over (384)         =>      collapse(op over (12, 32) of expanded operands)
collapse_loops:  op over (12, 32)      =>      expand(op over (384) of collapsed operands)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from fuseline.analysis.idioms import counted_loops, idiom_of
from fuseline.analysis.indexing_maps import dims_of, loops_of
from fuseline.analysis.structured import StructuredOp
from fuseline.analysis.structured_op import extents_of
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import erase, replace_uses
from fuseline.passes.layout.rewriting.generics import finish, index_ops, rebuilt
from fuseline.passes.layout.rewriting.reshapes import can_reshape, reshape
from fuseline.passes.layout.rewriting.scope import Scope

# More loops than this make a generic harder to lower than the reshape that they save.
MAX_LOOPS = 8


def can_expand(scope: Scope, view: StructuredOp, splits: Mapping[int, Sequence[Dim]]) -> bool:
    """Whether every loop in `splits` (loop -> sizes) occurs as a plain coordinate only, no idiom walks along it, and
    all sizes can be written down."""
    if view.rank + sum(len(sizes) - 1 for sizes in splits.values()) > MAX_LOOPS:
        return False
    for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
        for expr in map_.results:
            if type(expr) is not AffineDimExpr and dims_of(expr) & splits.keys():
                return False
        if dims_in(map_) & splits.keys() and not can_reshape(scope, expanded_dims(scope, value, map_, splits)):
            return False
    return all(can_reshape(scope, scope.dims(result)) for result in view.op.results) and not (
        _walked(scope, view) & splits.keys()
    )


def _walked(scope: Scope, view: StructuredOp) -> set[int]:
    """The loops that an idiom counts: of two in the place of one it would be none."""
    if not view.reduction:
        return set()
    extents = extents_of(view.maps, [scope.dims(value) for value in view.operands], view.rank)
    if any(extent is None for extent in extents):
        return set()
    known = [extent for extent in extents if extent is not None]
    return counted_loops(view) | set(view.reduction) if idiom_of(view, known) is not None else set()


def dims_in(map_: AffineMap) -> set[int]:
    """The loops that are plain coordinates of `map_`."""
    return {expr.position for expr in map_.results if type(expr) is AffineDimExpr}


def expanded_dims(scope: Scope, value: SSAValue, map_: AffineMap, splits: Mapping[int, Sequence[Dim]]) -> list[Dim]:
    """The sizes of an operand after the loops that traverse it are split."""
    out: list[Dim] = []
    for size, expr in zip(scope.dims(value), map_.results, strict=True):
        factors = splits.get(expr.position) if type(expr) is AffineDimExpr else None
        out.extend(factors if factors is not None else [size])
    return out


def expand_loops(scope: Scope, op: linalg.ops.GenericOp, splits: Mapping[int, Sequence[Dim]]) -> linalg.ops.GenericOp:
    """Replace `op` by one whose loops are split (see `can_expand`); answers the new op."""
    view = StructuredOp(op)
    first, rank = _first_positions(view.rank, splits)
    at = Emitter.before(op)
    values: list[SSAValue] = []
    maps: list[AffineMap] = []
    for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
        values.append(reshape(scope, at, value, expanded_dims(scope, value, map_, splits)))
        maps.append(AffineMap(rank, 0, tuple(_split_exprs(map_, first, splits))))
    iterators = [kind for loop, kind in enumerate(view.iterators) for _ in range(len(splits.get(loop, (0,))))]
    _split_indices(scope, op, first, splits)
    return _replaced(scope, op, values, maps, iterators)


def _first_positions(rank: int, splits: Mapping[int, Sequence[Dim]]) -> tuple[list[int], int]:
    first: list[int] = []
    count = 0
    for loop in range(rank):
        first.append(count)
        count += len(splits.get(loop, (0,)))
    return first, count


def _split_exprs(map_: AffineMap, first: Sequence[int], splits: Mapping[int, Sequence[Dim]]) -> list[AffineExpr]:
    names = [AffineExpr.dimension(position) for position in first]
    out: list[AffineExpr] = []
    for expr in map_.results:
        if type(expr) is AffineDimExpr and expr.position in splits:
            out.extend(AffineExpr.dimension(first[expr.position] + i) for i in range(len(splits[expr.position])))
        else:
            out.append(expr.replace_dims_and_symbols(names, []))
    return out


def _split_indices(
    scope: Scope, op: linalg.ops.GenericOp, first: Sequence[int], splits: Mapping[int, Sequence[Dim]]
) -> None:
    for index in index_ops(op):
        loop = index.dim.value.data
        sizes = splits.get(loop)
        if sizes is None:
            index.properties["dim"] = attributes.integer64(first[loop])
            continue
        at = Emitter(InsertPoint.before(index), location=index.location)
        total = at.add(linalg.ops.IndexOp(first[loop])).result
        for i, size in enumerate(sizes[1:], start=1):
            factor = scope.size_value(size) if not isinstance(size, int) else at.index(size)
            scaled = at.add(arith.MuliOp(total, factor)).result
            total = at.add(arith.AddiOp(scaled, at.add(linalg.ops.IndexOp(first[loop] + i)).result)).result
        replace_uses(index.result, total)
        erase(index)


def _replaced(
    scope: Scope,
    op: linalg.ops.GenericOp,
    values: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    iterators: Sequence[str],
) -> linalg.ops.GenericOp:
    count = len(op.inputs)
    old = [scope.dims(result) for result in op.results]
    new = rebuilt(op, values[:count], values[count:], maps, iterators)
    after = Emitter(InsertPoint.after(new), location=new.location)
    finish(op, [reshape(scope, after, value, dims) for value, dims in zip(new.results, old, strict=True)])
    return new


def can_collapse(scope: Scope, view: StructuredOp, group: Sequence[int]) -> bool:
    """Whether the loops of `group` are consecutive, of one kind, and appear in every operand side by side in this order
    or not at all."""
    if (
        list(group) != list(range(group[0], group[0] + len(group)))
        or len({view.iterators[loop] for loop in group}) != 1
    ):
        return False
    if any(index.dim.value.data in group for index in index_ops(view.op)):
        return False
    for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
        if not _side_by_side(map_, group) or not can_reshape(scope, scope.dims(value)):
            return False
    return True


def _side_by_side(map_: AffineMap, group: Sequence[int]) -> bool:
    touched = [axis for axis, expr in enumerate(map_.results) if dims_of(expr) & set(group)]
    if not touched:
        return True
    loops = loops_of(map_.results)
    return loops[touched[0] : touched[0] + len(group)] == list(group) and len(touched) == len(group)


def collapsed_dims(scope: Scope, value: SSAValue, map_: AffineMap, group: Sequence[int]) -> list[Dim]:
    """The sizes of an operand after the loops of `group` are merged."""
    out: list[Dim] = []
    for size, expr in zip(scope.dims(value), map_.results, strict=True):
        if type(expr) is AffineDimExpr and expr.position in group[1:]:
            out[-1] = d.mul(out[-1], size)
        else:
            out.append(size)
    return out


def collapse_loops(scope: Scope, op: linalg.ops.GenericOp, group: Sequence[int]) -> linalg.ops.GenericOp:
    """Replace `op` by one whose loops `group` are one loop (see `can_collapse`); answers the new op."""
    view = StructuredOp(op)
    gone = set(group[1:])
    position = {loop: i for i, loop in enumerate(loop for loop in range(view.rank) if loop not in gone)}
    names = [AffineExpr.dimension(position.get(loop, 0)) for loop in range(view.rank)]
    at = Emitter.before(op)
    values: list[SSAValue] = []
    maps: list[AffineMap] = []
    for value, map_ in zip((*view.inputs, *view.outputs), view.maps, strict=True):
        values.append(reshape(scope, at, value, collapsed_dims(scope, value, map_, group)))
        exprs = [expr for expr in map_.results if not (type(expr) is AffineDimExpr and expr.position in gone)]
        maps.append(AffineMap(len(position), 0, tuple(expr.replace_dims_and_symbols(names, []) for expr in exprs)))
    for index in index_ops(op):
        index.properties["dim"] = attributes.integer64(position[index.dim.value.data])
    return _replaced(scope, op, values, maps, [kind for loop, kind in enumerate(view.iterators) if loop not in gone])
