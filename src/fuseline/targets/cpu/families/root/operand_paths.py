"""Where an epilogue reads arguments: for every one that it reads at one point, the root's loop behind each of its
coordinates.

    root (n, h, w, c)  ──> + z[n, c, h, w] ──> result        z: loops 0 3 1 2
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic, splat_value, tensor_operands
from fuseline.dispatch.result_boxes import ResultBox
from fuseline.dispatch.view import DispatchView
from fuseline.ir.reachable import reachable
from fuseline.targets.cpu.families.contraction.results import Coordinate, Coordinates, RootPath, reshaped

_Read = tuple[SSAValue, "Coordinates | None"]
"""A value, and its coordinates by the root's loops; None where they are anything else."""


def operand_paths(view: DispatchView, root: StructuredOp, paths: Sequence[RootPath]) -> list[RootPath]:
    """Where the epilogue of `root` behind the results `paths` reads arguments, of those that it reads at one point."""
    starts: list[_Read] = [(path.value, path.coordinates) for path in paths]
    found: dict[BlockArgument, set[Coordinates | None]] = {}
    for value, coordinates in reachable(starts, partial(_reads, view, root)):
        if isinstance(value, BlockArgument):
            found.setdefault(value, set()).add(coordinates)
    alone = ((value, next(iter(places))) for value, places in found.items() if len(places) == 1)
    return [RootPath(ResultBox(value, view.shapes.dims(value)), at) for value, at in alone if at is not None]


def _reads(view: DispatchView, root: StructuredOp, read: _Read) -> Iterator[_Read]:
    """What is read for a value, and where."""
    value, at = read
    if not isinstance(value, OpResult) or value.op is root.op or splat_value(value) is not None:
        return
    op = value.op
    if at is not None and isinstance(op, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        yield op.src, reshaped(view, op, at, back=True)
        return
    point = StructuredOp(op) if is_generic(op) else None
    loops = _loops(point, value.index, at) if point is not None and at is not None else None
    if point is None or loops is None:
        yield from ((operand, None) for operand in tensor_operands(op))
        return
    yield from ((x, _through(map_, loops)) for x, map_ in zip(point.inputs, point.input_maps, strict=True))
    yield from ((x, None) for x in (*point.outputs, *captured_tensors(op)))


def _loops(op: StructuredOp, number: int, at: Coordinates) -> dict[int, Coordinate] | None:
    """What is behind each loop of an op whose result is asked for at a point; None where it reduces."""
    loops = [loop for loop in loops_of(op.output_maps[number].results) if loop is not None]
    return None if op.reduction or len(loops) < len(at) else dict(zip(loops, at, strict=True))


def _through(map_: AffineMap, loops: dict[int, Coordinate]) -> Coordinates | None:
    """The coordinates that a map of plain loops gives."""
    found: list[Coordinate] = []
    for expr in map_.results:
        if isinstance(expr, AffineDimExpr) and expr.position in loops:
            found.append(loops[expr.position])
        elif isinstance(expr, AffineConstantExpr) and expr.value == 0:
            found.append(None)
        else:
            return None
    return tuple(found)
