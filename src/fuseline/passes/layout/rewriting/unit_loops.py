"""The loops of size 1 dropped from a generic, with the dimensions that they walk.

A loop stays where dropping it would leave a coordinate that is no plain loop: the window loop of a strided 1x1 convolution
(`2 * d0 + d1`) is kept, so that the op is still recognised as a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.shapes import Dims
from fuseline.analysis.structured import StructuredOp, captured_tensors, dims_of, producer_of
from fuseline.ir import attributes
from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.create import create_constant
from fuseline.ir.dim import Dim
from fuseline.ir.direct import body_of, operands_of, ops_of, replace_uses, set_operands
from fuseline.passes.layout.rewriting.generics import extracts_of, finish, index_ops, rebuilt
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.unit_dims import Squeezer, kept_axes

Maps = tuple[AffineMap, ...]


@dataclass(frozen=True)
class _Plan:
    """`loops`: the loops that stay; `maps`: operand maps over them, and `axes` the dimensions that stay, one entry per operand."""

    loops: tuple[int, ...]
    maps: tuple[AffineMap, ...]
    axes: tuple[tuple[int, ...], ...]


def drop_unit_loops(scope: Scope, squeezer: Squeezer, op: linalg.ops.GenericOp) -> None:
    """Replace `op` by one without its unit loops (see the module); nothing happens where there are none."""
    _squeeze_captured(squeezer, op)
    view = StructuredOp(op)
    try:
        extents = view.loops(scope.shapes)
    except ValueError:
        return
    dropped = _droppable(scope, view, extents)
    unit = frozenset(loop for loop, size in enumerate(extents) if size == 1)
    ones = tuple([tuple([size == 1 for size in shape_of(value)]) for value in view.operands])
    plan = _plan(view.maps, view.input_count, ones, frozenset(dropped), unit)
    if not dropped and all(len(axes) == len(map_.results) for axes, map_ in zip(plan.axes, view.maps, strict=True)):
        return
    _apply(scope, squeezer, view, plan)


def _droppable(scope: Scope, view: StructuredOp, extents: Dims) -> set[int]:
    dropped = {loop for loop, size in enumerate(extents) if size == 1}
    changed = bool(dropped)
    while changed:
        changed = False
        for value, map_ in zip(view.operands, view.maps, strict=True):
            for expr, size in zip(map_.results, scope.dims(value), strict=True):
                if not _stays_plain(expr, dropped, size, extents):
                    dropped -= dims_of(expr)
                    changed = True
    written = [expr.position for expr in view.output_maps[0].results if type(expr) is AffineDimExpr]
    if written and all(loop in dropped for loop in view.parallel):
        dropped.discard(written[-1])
    if view.reduction and all(loop in dropped for loop in view.reduction) and _start_value(view) is None:
        dropped.discard(view.reduction[-1])
    return dropped


def _stays_plain(expr: AffineExpr, dropped: set[int], size: Dim, extents: Dims) -> bool:
    """Whether `expr` without the loops in `dropped` is still a window, or one loop that walks the whole dimension of `size`."""
    if type(expr) is AffineDimExpr or type(expr) is AffineConstantExpr or not dims_of(expr) & dropped:
        return True
    linear = linear_terms(expr)
    if linear is None:
        return False
    rest = {loop: factor for loop, factor in linear[0].items() if loop not in dropped}
    if len(rest) > 1:
        return True
    return linear[1] == 0 and all(factor == 1 and extents[loop] == size for loop, factor in rest.items())


def _start_value(view: StructuredOp) -> SSAValue | None:
    """The scalar that the only result starts from, where its init is a fill."""
    op = producer_of(view.outputs[0])
    return op.inputs[0] if len(view.outputs) == 1 and type(op) is linalg.ops.FillOp else None


def _without_unit_results(maps: Maps, input_count: int, names: Sequence[AffineExpr], stay: frozenset[int]) -> list[AffineExpr]:
    """How inputs name the loops: a unit loop that stays for the sake of a result is 0 to them."""
    windowed = {loop for map_ in maps for expr in map_.results if type(expr) is not AffineDimExpr for loop in dims_of(expr)}
    written = {expr.position for map_ in maps[input_count:] for expr in map_.results if type(expr) is AffineDimExpr}
    return [AffineExpr.constant(0) if loop in stay & written - windowed else name for loop, name in enumerate(names)]


@lru_cache(maxsize=1024)
def _plan(maps: Maps, input_count: int, ones: tuple[tuple[bool, ...], ...], dropped: frozenset[int], unit: frozenset[int]) -> _Plan:
    """What becomes of operands read through `maps`, the dimensions `ones` of which are 1 (the layers of a model are much alike)."""
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
    return _Plan(loops, tuple(new), tuple(kept))


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
    kept = [axis for axis, (unit, expr) in enumerate(zip(units, exprs, strict=True)) if not unit or type(expr) is not AffineConstantExpr]
    return tuple(kept or range(len(units))[-1:])


def _apply(scope: Scope, squeezer: Squeezer, view: StructuredOp, plan: _Plan) -> None:
    op = view.op
    _rename_indices(op, plan.loops)
    values = [squeezer.keep(value, axes) for value, axes in zip(operands_of(op), plan.axes, strict=True)]
    inputs, outputs = values[: view.input_count], values[view.input_count :]
    iterators = [view.iterators[loop] for loop in plan.loops]
    maps = list(plan.maps)
    if view.reduction and "reduction" not in iterators:
        outputs = [_without_start(scope, op, outputs[0])]
    _drop_unread_scalars(op, inputs, maps)
    old_results = [scope.dims(result) for result in op.results]
    new = rebuilt(op, inputs, outputs, maps, iterators)
    after = Emitter(InsertPoint.after(new), location=new.location)
    finish(op, [squeezer.restore(after, value, dims) for value, dims in zip(new.results, old_results, strict=True)])


def _rename_indices(op: linalg.ops.GenericOp, loops: Sequence[int]) -> None:
    position = {loop: i for i, loop in enumerate(loops)}
    for index in index_ops(op):
        loop = index.dim.value.data
        if loop in position:
            index.properties["dim"] = attributes.integer64(position[loop])
        else:
            zero = create_constant(attributes.index(0), attributes.INDEX, index.location)
            Rewriter.replace_op(index, zero)


def _without_start(scope: Scope, op: linalg.ops.GenericOp, init: SSAValue) -> SSAValue:
    """A reduction without loops computes once from the start value: put it in the body and start from an empty tensor."""
    start = _start_value(StructuredOp(op))
    assert start is not None
    replace_uses(body_of(op).args[-1], start)
    return scope.empty(Emitter.before(op), init.type.get_element_type(), scope.dims(init))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def _drop_unread_scalars(op: linalg.ops.GenericOp, inputs: list[SSAValue], maps: list[AffineMap]) -> None:
    """Leave out inputs that neither the body reads nor any loop walks (the window of a 1x1 pooling)."""
    for i in reversed(range(len(inputs))):
        argument = body_of(op).args[i]
        if not argument.uses and all(type(expr) is AffineConstantExpr for expr in maps[i].results):
            body_of(op).erase_arg(argument)
            del inputs[i], maps[i]


def _squeeze_captured(squeezer: Squeezer, op: linalg.ops.GenericOp) -> None:
    if not any(type(inner) is tensor.ExtractOp for inner in ops_of(body_of(op))):
        return
    for value in captured_tensors(op):
        axes = kept_axes(shape_of(value))
        if len(axes) == len(shape_of(value)) or not squeezer.can(value):
            continue
        core = squeezer.keep(value, axes)
        for extract in extracts_of(op, value):
            set_operands(extract, [core, *(extract.indices[axis] for axis in axes)])
