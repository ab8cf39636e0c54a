"""Where a root's values go: for every result of a dispatch, the root's loop behind each of its coordinates.

An epilogue is all-parallel and covers the root's parallel loops, so each of its results is written once, at coordinates
that are loops of the root in some order. A reshape on the way makes a coordinate of several loops, or several of one;
at the end it changes nothing in memory and is looked through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic, tensor_operands
from fuseline.dispatch.result_boxes import ResultBox, box_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.emit.coordinates import AnyIndex, DelinearizedIndex, Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.kernel_ir.types import Operand, Value
from fuseline.targets.target import Refusal


@dataclass(frozen=True, slots=True)
class Joined:
    """The row-major number of several coordinates: a dimension that a reshape collapsed."""

    digits: tuple[Coordinate, ...]
    sizes: tuple[Dim, ...]


Coordinate: TypeAlias = "int | DelinearizedIndex[Coordinate] | Joined | None"
"""A loop of the root, the constant 0 (None), or what a reshape makes of them."""

Coordinates: TypeAlias = tuple[Coordinate, ...]


@dataclass(frozen=True, slots=True)
class RootPath:
    """A value, where in memory it lies, and its coordinates by the loops of the root."""

    box: ResultBox
    coordinates: Coordinates

    @property
    def value(self) -> SSAValue:
        """What is evaluated, or read."""
        return self.box.value

    def index(self, buffers: DispatchBuffers, loops: Sequence[AnyIndex], lanes: int) -> list[AnyIndex]:
        """The coordinates where the root's loops are at `loops`."""
        return [_index(buffers, coordinate, loops, lanes) for coordinate in self.coordinates]


@dataclass(frozen=True, slots=True)
class ResultPath(RootPath):
    """The same for what is stored: result `position` of the dispatch."""

    position: int

    def load(self, buffers: DispatchBuffers, loops: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        """What was stored where the root's loops are at `loops`."""
        index = buffers.placed(self.box, self.index(buffers, loops, lanes), lanes)
        return buffers.load(buffers.result(self.position), index, lanes, active)

    def store(self, buffers: DispatchBuffers, index: Sequence[AnyIndex], value: Value, active: Operand | None) -> None:
        """Write the elements at `index`."""
        buffers.store(buffers.result(self.position), buffers.placed(self.box, index, value.type.lanes), value, active)


def _index(buffers: DispatchBuffers, coordinate: Coordinate, loops: Sequence[AnyIndex], lanes: int) -> AnyIndex:
    if coordinate is None:
        return Index(0)
    if isinstance(coordinate, int):
        return loops[coordinate]
    if isinstance(coordinate, DelinearizedIndex):
        return buffers.delinearize(_index(buffers, coordinate.whole, loops, lanes), coordinate.sizes)[
            coordinate.position
        ]
    return buffers.linear(
        [_index(buffers, digit, loops, lanes) for digit in coordinate.digits], coordinate.sizes, lanes
    )


def result_paths(view: DispatchView) -> list[ResultPath] | Refusal:
    """How each result follows from the root; a refusal where one does not, or is laid out anew on the way."""
    root = view.root_view
    return Refusal("no-root", "the root is not a structured op") if root is None else paths_from(view, root)


def paths_from(view: DispatchView, root: StructuredOp) -> list[ResultPath] | Refusal:
    """The same for a member in the place of the root."""
    found = _coordinates(view, root)
    paths: list[ResultPath] = []
    for position, result in enumerate(view.results):
        box = box_of(view.shapes, result)
        if box.value not in found:
            return Refusal("result-beside-root", f"result {position} does not follow from the root point by point")
        paths.append(ResultPath(box, found[box.value], position))
    return paths


def lone_root_paths(view: DispatchView, root: StructuredOp) -> list[ResultPath] | Refusal:
    """The same where nothing but the root reduces: what else did would be computed anew for every element that asks
    for it."""
    beside = (view.structured(op) for op in view.members if op is not root.op)
    if any(other is not None and other.reduction for other in beside):
        return Refusal("second-reduction", "an op reduces beside the root")
    return result_paths(view)


def _coordinates(view: DispatchView, root: StructuredOp) -> dict[SSAValue, Coordinates]:
    """The coordinates of every value that follows from the root, and from nothing else that the root makes."""
    found: dict[SSAValue, Coordinates] = {}
    made = set(root.op.results)
    for result, map_ in zip(root.op.results, root.output_maps, strict=True):
        found[result] = tuple(loops_of(map_.results))
    for op in view.members:
        if op is not root.op and made.isdisjoint(tensor_operands(op)):
            continue
        gathers = not made.isdisjoint(captured_tensors(op))  # at places of its own
        made.update(op.results)
        if isinstance(op, tensor.ExpandShapeOp | tensor.CollapseShapeOp) and op.src in found:
            found[op.result] = reshaped(view, op, found[op.src])
        if op is root.op or not is_generic(op) or gathers:
            continue
        if any(value in made and value not in found for value in op.operands):
            continue
        follower = StructuredOp(op)
        loops = _loops(view, follower, found)
        if loops is None:
            continue
        for result, map_ in zip(op.results, follower.output_maps, strict=True):
            found[result] = tuple(
                loops.get(expr.position) if isinstance(expr, AffineDimExpr) else None for expr in map_.results
            )
    return found


def reshaped(
    view: DispatchView,
    op: tensor.ExpandShapeOp | tensor.CollapseShapeOp,
    coordinates: Coordinates,
    *,
    back: bool = False,
) -> Coordinates:
    """The coordinates of what a reshape makes from those of what it reads; `back`: the other way round."""
    groups = groups_of(op)
    expands = isinstance(op, tensor.ExpandShapeOp)
    dims = view.shapes.dims(op.result if expands else op.src)
    if expands == back:
        return tuple(_joined([coordinates[a] for a in group], [dims[a] for a in group]) for group in groups)
    return tuple(
        c
        for whole, group in zip(coordinates, groups, strict=True)
        for c in _delinearized(whole, tuple(dims[a] for a in group))
    )


def _joined(digits: Sequence[Coordinate], sizes: Sequence[Dim]) -> Coordinate:
    moving = [digit for digit, size in zip(digits, sizes, strict=True) if size != 1]
    return (moving or [None])[0] if len(moving) < 2 else Joined(tuple(digits), tuple(sizes))


def _delinearized(whole: Coordinate, sizes: tuple[Dim, ...]) -> list[Coordinate]:
    moving = [i for i, size in enumerate(sizes) if size != 1]
    return [
        None if i not in moving else whole if len(moving) == 1 else DelinearizedIndex(whole, sizes, i)
        for i in range(len(sizes))
    ]


def _loops(
    view: DispatchView, follower: StructuredOp, found: dict[SSAValue, Coordinates]
) -> dict[int, Coordinate] | None:
    """The root's loop behind each loop of an op that reads what follows from the root.

    None where a moving loop has none, where two have the same one (`y[i] * y[j]`), or where the op reads what follows
    from the root at another point, too (`y[i, j] + y[j, i]`): such an op needs results of other points.
    """
    if follower.reduction:
        return None
    loops: dict[int, Coordinate] = {}
    extents = follower.loops(view.shapes)
    for value, map_ in zip(follower.inputs, follower.input_maps, strict=True):
        for expr, coordinate in zip(map_.results, found.get(value, ()), strict=False):
            if not isinstance(expr, AffineDimExpr):
                continue
            known = loops.setdefault(expr.position, coordinate)
            if known is None:
                loops[expr.position] = coordinate
            elif known != coordinate and extents[expr.position] != 1:
                return None
    behind = [loops.get(loop) for loop in range(follower.rank) if extents[loop] != 1]
    read = any(value in found for value in follower.inputs)
    return loops if read and None not in behind and len(set(behind)) == len(behind) else None
