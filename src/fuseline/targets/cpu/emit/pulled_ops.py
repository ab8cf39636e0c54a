"""How each kind of op is pulled: the elements of one of its results at one point, from the elements of what it
reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.structured import StructuredOp, yielded
from fuseline.errors import FuselineError
from fuseline.targets.cpu.emit import borders, concats
from fuseline.targets.cpu.emit.body_point import BodyPoint, narrowed, widened
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.lane_coordinates import lane_sources
from fuseline.targets.cpu.emit.puller import Puller
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

PulledOp: TypeAlias = Callable[[Puller, OpResult, Sequence[AnyIndex], int, "Operand | None"], Value]
"""`(puller, result, index, lanes, active) -> elements`; a scalar where all lanes agree."""


def _generic(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    op = value.op
    assert isinstance(op, linalg.ops.GenericOp)
    view = StructuredOp(op)
    loops = loops_at(e, view, value.index, index)
    if view.reduction:
        return reduce_at(e, view, loops, lanes, active)[value.index]
    return BodyPoint(e, view, loops, lanes, active).value(yielded(op)[value.index])


def loops_at(e: Puller, view: StructuredOp, result: int, index: Sequence[AnyIndex]) -> list[AnyIndex]:
    """The point of the loops of `view` that makes element `index` of a result; reduction loops are at 0.

    Raises E0901 for a result that is written at anything but loops and constants.
    """
    loops: list[AnyIndex] = [Index(0)] * view.rank
    found: set[int] = set()
    for expr, coordinate in zip(view.output_maps[result].results, index, strict=True):
        if isinstance(expr, AffineDimExpr):
            loops[expr.position] = coordinate
            found.add(expr.position)
        elif not isinstance(expr, AffineConstantExpr):
            raise FuselineError("E0901", f"a result is indexed by {expr}", node=e.view.entry.sym_name.data)
    if not found.issuperset(view.parallel):
        raise FuselineError("E0901", "a result does not depend on every parallel loop", node=e.view.entry.sym_name.data)
    return loops


def reduce_at(
    e: Puller, view: StructuredOp, loops: Sequence[AnyIndex], lanes: int, active: Operand | None
) -> list[Value]:
    """All results of a reduction at one point of its parallel loops: plain nested loops, the lanes side by side."""
    kernel, extents = e.kernel, view.loops(e.view.shapes)
    inits = [
        widened(kernel, e.value_at(init, e.through(map_, loops, lanes), lanes, active))
        for init, map_ in zip(view.outputs, view.output_maps, strict=True)
    ]

    def nest(remaining: tuple[int, ...], at: list[AnyIndex], accumulators: Sequence[Value]) -> Sequence[Value]:
        if not remaining:
            point = BodyPoint(e, view, at, lanes, active, accumulators, wide=True)
            return [kernel.splat(v, lanes) for v in point.yields()]
        loop, rest = remaining[0], remaining[1:]

        def body(i: Operand, *carried: Value) -> Sequence[Value]:
            return nest(rest, [*at[:loop], Index(i), *at[loop + 1 :]], carried)

        return kernel.loop(0, e.buffers.operand(extents[loop]), 1, body, accumulators)

    totals = nest(view.reduction, list(loops), inits)
    return [narrowed(kernel, total, dtype_of(output.type)) for total, output in zip(totals, view.outputs, strict=True)]


def _fill(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    del index, lanes, active
    return e.scalar(value.op.operands[0])


def _empty(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """What an uninitialised tensor holds is anything: zero."""
    del index, lanes, active
    return e.kernel.const(0, dtype_of(value.type))


def _constant(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """A small constant that is not one number throughout lies inside the kernel's code."""
    op = value.op
    assert isinstance(op, arith.ConstantOp) and isinstance(value.type, TensorType)
    numbers = cast(tuple[float | int, ...], tuple(op.value.get_values()))  # pyright: ignore[reportAttributeAccessIssue]
    memory = e.kernel.table("constant", numbers, dtype_of(value.type))
    return e.buffers.load(memory, e.buffers.linear(index, e.buffers.dims(value), lanes), lanes, active)


def _moved(e: Puller, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """An op that only moves data, with one source that is there everywhere."""
    (source,) = lane_sources(e, value.op, index, lanes)
    return e.pull(source.value, source.at, lanes, active)


PULLED_OPS: dict[type[Operation], PulledOp] = {
    linalg.ops.GenericOp: _generic,
    linalg.ops.FillOp: _fill,
    linalg.ops.TransposeOp: _moved,
    linalg.ops.BroadcastOp: _moved,
    arith.ConstantOp: _constant,
    tensor.EmptyOp: _empty,
    tensor.ExpandShapeOp: _moved,
    tensor.CollapseShapeOp: _moved,
    tensor.CastOp: _moved,
    tensor.ExtractSliceOp: _moved,
    tensor.PadOp: borders.pad,
    tensor.ConcatOp: concats.concat,
    tensor.InsertSliceOp: borders.insert_slice,
}
