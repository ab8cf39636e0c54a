"""Where a root's values go: for every result of a dispatch, the root's loop behind each of its coordinates.

An epilogue is all-parallel and covers the root's parallel loops, so each of its results is written once, at coordinates that are loops of the
root in some order. Reshapes at the end change nothing in memory and are looked through.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.dispatch_view import DispatchView
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.targets.target import Refusal

Coordinates = tuple[int | None, ...]
"""Per dimension the root's loop that it is; None for the constant 0."""


@dataclass(frozen=True, slots=True)
class ResultPath:
    """Result `position` of the dispatch: the value to evaluate and its coordinates."""

    position: int
    value: SSAValue
    coordinates: Coordinates


def result_paths(view: DispatchView) -> list[ResultPath] | Refusal:
    """How each result follows from the root; a refusal where one does not, or is laid out anew on the way."""
    root = view.root_view
    if root is None:
        return Refusal("no-root", "the root is not a structured op")
    found = _coordinates(view, root)
    paths: list[ResultPath] = []
    for position, result in enumerate(view.results):
        value = _before_reshapes(result)
        if value not in found:
            return Refusal("result-beside-root", f"result {position} does not follow from the root point by point")
        paths.append(ResultPath(position, value, found[value]))
    return paths


def _before_reshapes(value: SSAValue) -> SSAValue:
    while isinstance(value, OpResult) and isinstance(value.op, tensor.ExpandShapeOp | tensor.CollapseShapeOp | tensor.CastOp):
        value = value.op.operands[0]
    return value


def _coordinates(view: DispatchView, root: StructuredOp) -> dict[SSAValue, Coordinates]:
    """The coordinates of every value that follows from the root."""
    found: dict[SSAValue, Coordinates] = {}
    for result, map_ in zip(root.op.results, root.output_maps, strict=True):
        found[result] = tuple(expr.position if isinstance(expr, AffineDimExpr) else None for expr in map_.results)
    for op in view.members:
        if op is root.op or not is_generic(op):
            continue
        follower = StructuredOp(op)
        loops = _loops(view, follower, found)
        if loops is None:
            continue
        for result, map_ in zip(op.results, follower.output_maps, strict=True):
            found[result] = tuple(loops.get(expr.position) if isinstance(expr, AffineDimExpr) else None for expr in map_.results)
    return found


def _loops(view: DispatchView, follower: StructuredOp, found: dict[SSAValue, Coordinates]) -> dict[int, int | None] | None:
    """The root's loop behind each loop of an op that reads what follows from the root; None where a moving loop has none."""
    if follower.reduction:
        return None
    loops: dict[int, int | None] = {}
    for value, map_ in zip(follower.inputs, follower.input_maps, strict=True):
        for expr, coordinate in zip(map_.results, found.get(value, ()), strict=False):
            if isinstance(expr, AffineDimExpr) and loops.get(expr.position) is None:
                loops[expr.position] = coordinate
    extents = follower.loops(view.shapes)
    missing = [loop for loop in range(follower.rank) if loops.get(loop) is None and extents[loop] != 1]
    return None if missing or not any(value in found for value in follower.inputs) else loops
