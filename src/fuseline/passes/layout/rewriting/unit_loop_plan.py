"""Which loops and dimensions of size 1 a generic can do without.

A loop stays where dropping it would leave a coordinate that is no plain loop: the window loop of a strided 1x1
convolution (`2 * d0 + d1`) is kept, so that the op is still recognised as a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xdsl.dialects import linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.shapes import Dims, ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, producer_of
from fuseline.analysis.structured_op import extents_of, input_count, iterators_in, maps_in
from fuseline.ir.dim import Dim
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import operands_of
from fuseline.ir.fast.identity import by_identities
from fuseline.ir.rounds import rounds

Maps = tuple[AffineMap, ...]


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """`loops`: the loops that stay; `maps`: operand maps over them, and `axes` the dimensions that stay, one entry per
    operand.

    `scalars`: the inputs that no loop traverses any more. `emptied`: whether all loops of a reduction go.
    """

    loops: tuple[int, ...]
    iterators: tuple[str, ...]
    maps: Maps
    axes: tuple[tuple[int, ...], ...]
    scalars: tuple[int, ...]
    emptied: bool


@dataclass(frozen=True, slots=True)
class _Loops:
    """What decides about a generic: its maps, iterators and the sizes of its operands; `starts`: whether its only init
    is a fill."""

    maps: Maps
    iterators: tuple[str, ...]
    input_count: int
    starts: bool
    sizes: tuple[Dims, ...]

    def of_kind(self, kind: str) -> list[int]:
        return [loop for loop, iterator in enumerate(self.iterators) if iterator == kind]


def start_value(op: linalg.ops.GenericOp) -> SSAValue | None:
    """The scalar that the only result starts from, where its init is a fill."""
    fill = producer_of(operands_of(op)[-1])
    return operands_of(fill)[0] if len(op.results) == 1 and type(fill) is linalg.ops.FillOp else None


def plan_of(shapes: ShapeAnalysis, op: linalg.ops.GenericOp) -> UnitPlan | None:
    """What `op` becomes; None where nothing of it goes."""
    types = [value.type for value in operands_of(op)]
    starts = start_value(op) is not None
    if all([attributes.is_static(type_) for type_ in types]):
        return _static_plan(
            (op.properties["indexing_maps"], op.properties["iterator_types"], input_count(op), starts, *types)
        )
    view = StructuredOp(op)
    return _plan(
        _Loops(
            view.maps, view.iterators, view.input_count, starts, tuple([shapes.dims(value) for value in view.operands])
        )
    )


@by_identities
def _static_plan(signature: tuple[Any, ...]) -> UnitPlan | None:
    """The plan of a generic whose sizes are all numbers: they stand in the types of its operands (the layers of a model
    are much alike)."""
    maps, iterators, inputs, starts, *types = signature
    sizes = tuple([attributes.shape(type_) for type_ in types])
    return _plan(_Loops(maps_in(maps), iterators_in(iterators), inputs, starts, sizes))


def _plan(loops: _Loops) -> UnitPlan | None:
    extents = extents_of(loops.maps, loops.sizes, len(loops.iterators))
    if None in extents:
        return None
    found = tuple([size for size in extents if size is not None])
    dropped = _droppable(loops, found)
    unit = frozenset(loop for loop, size in enumerate(found) if size == 1)
    ones = tuple([tuple([size == 1 for size in sizes]) for sizes in loops.sizes])
    plan = _made(loops.maps, loops.iterators, loops.input_count, ones, frozenset(dropped), unit)
    if not dropped and all(len(axes) == len(map_.results) for axes, map_ in zip(plan.axes, loops.maps, strict=True)):
        return None
    return plan


def _droppable(loops: _Loops, extents: Dims) -> set[int]:
    dropped = {loop for loop, size in enumerate(extents) if size == 1}
    written = [expr.position for expr in loops.maps[loops.input_count].results if type(expr) is AffineDimExpr]
    reduction = loops.of_kind("reduction")
    for _ in rounds("dropping unit loops", most=len(extents) + 1):  # each round but the last keeps a loop more
        before = len(dropped)
        for sizes, map_ in zip(loops.sizes, loops.maps, strict=True):
            for expr, size in zip(map_.results, sizes, strict=True):
                if not _stays_plain(expr, dropped, size, extents):
                    dropped -= dims_of(expr)
        if written and all(loop in dropped for loop in loops.of_kind("parallel")):
            dropped.discard(written[-1])
        if reduction and all(loop in dropped for loop in reduction) and not loops.starts:
            dropped.discard(reduction[-1])
        if len(dropped) == before:
            break
    return dropped


def _stays_plain(expr: AffineExpr, dropped: set[int], size: Dim, extents: Dims) -> bool:
    """Whether `expr` without the loops in `dropped` is still a window, or one loop that traverses the whole dimension
    of `size`."""
    if type(expr) is AffineDimExpr or type(expr) is AffineConstantExpr or not dims_of(expr) & dropped:
        return True
    linear = linear_terms(expr)
    if linear is None:
        return False
    rest = {loop: factor for loop, factor in linear[0].items() if loop not in dropped}
    if len(rest) > 1:
        return True
    return linear[1] == 0 and all(factor == 1 and extents[loop] == size for loop, factor in rest.items())


def _without_unit_results(
    maps: Maps, input_count: int, names: Sequence[AffineExpr], stay: frozenset[int]
) -> list[AffineExpr]:
    """How inputs name the loops: a unit loop that stays for the sake of a result is 0 to them."""
    windowed = {
        loop for map_ in maps for expr in map_.results if type(expr) is not AffineDimExpr for loop in dims_of(expr)
    }
    written = {expr.position for map_ in maps[input_count:] for expr in map_.results if type(expr) is AffineDimExpr}
    return [AffineExpr.constant(0) if loop in stay & written - windowed else name for loop, name in enumerate(names)]


@lru_cache(maxsize=1024)
def _made(
    maps: Maps,
    iterators: tuple[str, ...],
    input_count: int,
    ones: tuple[tuple[bool, ...], ...],
    dropped: frozenset[int],
    unit: frozenset[int],
) -> UnitPlan:
    """What becomes of operands read through `maps`, the dimensions `ones` of which are 1."""
    rank = maps[0].num_dims
    loops = tuple(loop for loop in range(rank) if loop not in dropped)
    names: list[AffineExpr] = [AffineExpr.constant(0)] * rank
    for i, loop in enumerate(loops):
        names[loop] = AffineExpr.dimension(i)
    read_names = _without_unit_results(maps, input_count, names, unit - dropped)
    new: list[AffineMap] = []
    kept: list[tuple[int, ...]] = []
    for i, (units, map_) in enumerate(zip(ones, maps, strict=True)):
        exprs = [_substituted(expr, read_names if i < input_count else names) for expr in map_.results]
        axes = _kept(units, exprs)
        new.append(AffineMap(len(loops), 0, tuple(exprs[axis] for axis in axes)))
        kept.append(axes)
    scalars = tuple(
        i for i, map_ in enumerate(new[:input_count]) if all(type(expr) is AffineConstantExpr for expr in map_.results)
    )
    left = tuple(iterators[loop] for loop in loops)
    return UnitPlan(loops, left, tuple(new), tuple(kept), scalars, "reduction" in iterators and "reduction" not in left)


def _substituted(expr: AffineExpr, names: Sequence[AffineExpr]) -> AffineExpr:
    linear = linear_terms(expr)
    if linear is None:
        return expr.replace_dims_and_symbols(names, [])
    total: AffineExpr | None = None
    for loop, factor in linear[0].items():
        name = names[loop]
        if type(name) is AffineConstantExpr:
            continue
        term = name if factor == 1 else name * factor
        total = term if total is None else total + term
    if total is None:
        return AffineExpr.constant(linear[1])
    return total + linear[1] if linear[1] else total


def _kept(units: Sequence[bool], exprs: Sequence[AffineExpr]) -> tuple[int, ...]:
    kept = [
        axis
        for axis, (unit, expr) in enumerate(zip(units, exprs, strict=True))
        if not unit or type(expr) is not AffineConstantExpr
    ]
    return tuple(kept or range(len(units))[-1:])
