"""Pass `require-equal-sizes`: what the ops take for granted about symbolic sizes is written down, so that a run can
check it.

A structured op reads its operands in one iteration space: the sizes that one loop traverses must be equal, as must
those beside a concat and the products on both sides of a reshape; and a slice must lie inside of what it is a slice of.
Where that does not follow from the symbols alone, it becomes a requirement of the program; feeds that break one are
refused (E0203) before anything is read out of bounds.

    add(x[h], y[2 * ceil(h / 2)])      requires h == 2 * ceil(h / 2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import linalg, scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.fast import attributes
from fuseline.ir.provenance import node_names
from fuseline.passes.cleanup.inside_requirements import operations, require_of_symbols
from fuseline.size_requirement import SizeRequirement

Pair = tuple[Dim, Dim]


@dataclass(frozen=True)
class RequireEqualSizesPass(ModulePass):
    """Notes in the context which sizes must be equal for the program to be right.

    Raises FuselineError: E0107 for sizes that never are.
    """

    name = "require-equal-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every op; nothing changes. Raises FuselineError: E0107 for sizes that must be equal, or one at least
        the other, and never are."""
        assert isinstance(ctx, CompilerContext)
        shapes = ShapeAnalysis(ctx.symbols)
        for inner in operations(op):
            for left, right in _pairs(inner, shapes):
                _require(ctx, inner, left, right)
            for pair in _bounds(inner, shapes):
                for large, small in _at_ends(inner, pair, shapes):
                    _require_at_least(ctx, inner, large, small)


def _pairs(op: Operation, shapes: ShapeAnalysis) -> Iterator[Pair]:
    """The sizes that `op` takes to be equal."""
    if isinstance(op, linalg.ops.GenericOp):
        yield from _along_loops(op, shapes)
    elif isinstance(op, tensor.ConcatOp):
        yield from _beside(op.dim.value.data, [shapes.dims(part) for part in op.inputs], shapes.dims(op.result))
    elif isinstance(op, tensor.InsertSliceOp):
        sizes = shapes.mixed(attributes.values(op.static_sizes), op.sizes)
        source = shapes.dims(op.source)
        yield from zip(source, sizes, strict=True) if len(source) == len(sizes) else ()
    elif isinstance(op, tensor.CastOp):
        yield from zip(shapes.dims(op.source), shapes.dims(op.dest), strict=True)
    elif isinstance(op, tensor.ExpandShapeOp):
        source, result = shapes.dims(op.src), shapes.dims(op.result)
        for size, group in zip(source, op.reassociation.data, strict=True):
            yield size, d.product(result[axis.value.data] for axis in group.data)
    elif isinstance(op, tensor.CollapseShapeOp):
        source, result = shapes.dims(op.src), shapes.dims(op.result)
        for size, group in zip(result, op.reassociation.data, strict=True):
            yield d.product(source[axis.value.data] for axis in group.data), size


def _bounds(op: Operation, shapes: ShapeAnalysis) -> Iterator[Pair]:
    """The sizes that `op` takes to be large enough, each with what it must not be below."""
    if isinstance(op, tensor.ExtractSliceOp):
        yield from _slice_bounds(op, shapes.dims(op.source), shapes)
    elif isinstance(op, tensor.InsertSliceOp):
        yield from _slice_bounds(op, shapes.dims(op.dest), shapes)
    elif isinstance(op, tensor.PadOp):
        amounts = (
            *shapes.mixed(attributes.values(op.static_low), op.low),
            *shapes.mixed(attributes.values(op.static_high), op.high),
        )
        yield from ((amount, 0) for amount in amounts if not isinstance(amount, int))  # a number below 0 crops
    elif isinstance(op, tensor.EmptyOp):
        yield from ((size, 0) for size in shapes.dims(op.tensor))


def _at_ends(op: Operation, pair: Pair, shapes: ShapeAnalysis) -> Sequence[Pair]:
    """The pair in that iteration of each counted loop around `op` in which it is the tightest (in the first and the
    last where that is not known): what is linear in a counter holds in between as well."""
    pairs, loop = [pair], op.parent_op()
    while loop is not None and not isinstance(loop, FuncOp):
        if isinstance(loop, scf.ForOp):
            (counter,) = d.symbols(shapes.index(loop.body.block.args[0]))
            first, last = shapes.index(loop.lb), d.sub(shapes.index(loop.ub), 1)
            pairs = [one for two in pairs for one in _tightest(two, counter.name, first, last)]
        loop = loop.parent_op()
    return pairs


def _tightest(pair: Pair, counter: str, first: Dim, last: Dim) -> Sequence[Pair]:
    if not any(symbol.name == counter for side in pair for symbol in d.symbols(side)):
        return [pair]

    def at(value: Dim) -> Pair:
        return d.substitute(pair[0], {counter: value}), d.substitute(pair[1], {counter: value})

    (large, small), (later, lesser) = at(first), at(d.add(first, 1))
    slope = d.sub(d.sub(later, lesser), d.sub(large, small))
    low, high = d.lower_bound(slope), d.upper_bound(slope)
    if low is not None and low >= 0:
        return [at(first)]
    return [at(last)] if high is not None and high <= 0 else [at(first), at(last)]


def _slice_bounds(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp, whole: Sequence[Dim], shapes: ShapeAnalysis
) -> Iterator[Pair]:
    bounds = (
        shapes.mixed(attributes.values(static), dynamic)
        for static, dynamic in (
            (op.static_offsets, op.offsets),
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        )
    )
    for extent, offset, size, stride in zip(whole, *bounds, strict=True):
        last = d.add(offset, d.mul(d.sub(size, 1), stride))
        backwards = isinstance(stride, int) and stride < 0
        if not isinstance(stride, int):
            yield stride, 1
        yield from ((offset, 0), (size, 0), (extent, d.add(offset if backwards else last, 1)))
        if backwards:
            yield d.add(last, stride), -1


def _along_loops(op: linalg.ops.GenericOp, shapes: ShapeAnalysis) -> Iterator[Pair]:
    extents: dict[int, Dim] = {}
    for operand, map_ in zip(op.operands, op.get_indexing_maps(), strict=True):
        for expr, size in zip(map_.data.results, shapes.dims(operand), strict=True):
            if isinstance(expr, AffineDimExpr):
                yield extents.setdefault(expr.position, size), size


def _beside(axis: int, parts: Sequence[Sequence[Dim]], whole: Sequence[Dim]) -> Iterator[Pair]:
    for part in parts[1:]:
        for other, (first, size) in enumerate(zip(parts[0], part, strict=True)):
            if other != axis:
                yield first, size
    for other, (first, size) in enumerate(zip(parts[0], whole, strict=True)):
        yield (reduce(d.add, [part[axis] for part in parts]) if other == axis else first), size


def _require(ctx: CompilerContext, op: Operation, left: Dim, right: Dim) -> None:
    if left == right:
        return
    node = node_names(op) or op.name
    difference = d.sub(left, right)
    low, high = d.lower_bound(difference), d.upper_bound(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        raise FuselineError(
            "E0107", f"sizes {d.to_text(left)} and {d.to_text(right)} must be equal and never are", node=node
        )
    require_of_symbols(ctx, SizeRequirement(left, right, node))


def _require_at_least(ctx: CompilerContext, op: Operation, large: Dim, small: Dim) -> None:
    difference = d.sub(large, small)
    low, high = d.lower_bound(difference), d.upper_bound(difference)
    if low is not None and low >= 0:
        return
    node = node_names(op) or op.name
    if high is not None and high < 0:
        raise FuselineError(
            "E0107", f"size {d.to_text(large)} must be at least {d.to_text(small)} and never is", node=node
        )
    require_of_symbols(ctx, SizeRequirement(large, small, node, relation="at_least"))


EXPORT = RequireEqualSizesPass
