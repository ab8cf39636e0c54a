"""Which dimensions of values are read out of step with the loops of their readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import func, linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.moves import affine_sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.targets.cpu.families.nests.gathers import gathers


def non_identity_reads(
    ops: Sequence[Operation], shapes: ShapeAnalysis, stored: Iterable[SSAValue]
) -> dict[SSAValue, set[int]]:
    """Per value that `ops`, those of a body in order, read: the dimensions that some reader visits at another
    coordinate than its own loop's (windows, gathers, reshapes, pads).

    Looseness passes from a result to what it is made of, but not through `stored` values, which are made at their own
    loops.
    """
    loose: dict[SSAValue, set[int]] = {}
    kept = set(stored)
    for op in reversed(ops):
        if is_generic(op):
            _loose_in_generic(op, loose, kept)
        else:
            _loose_in_move(shapes, op, loose, kept)
    return loose


def _loose_in_generic(op: linalg.ops.GenericOp, loose: dict[SSAValue, set[int]], kept: set[SSAValue]) -> None:
    structured = StructuredOp(op)
    loops: set[int] = set()
    for result, map_ in zip(op.results, structured.output_maps, strict=True):
        if result not in kept:
            loops.update(loop for axis in loose.get(result, ()) for loop in dims_of(map_.results[axis]))
    for value, map_ in zip((*structured.inputs, *structured.outputs), structured.maps, strict=True):
        for axis, expr in enumerate(map_.results):
            plain = isinstance(expr, AffineDimExpr) and expr.position not in loops
            if not plain and not (isinstance(expr, AffineConstantExpr) and expr.value == 0 and _size_one(value, axis)):
                loose.setdefault(value, set()).add(axis)
    for read in gathers(op):
        found = {axis for axis, loop in enumerate(read.loops) if loop is None or loop in loops}
        loose.setdefault(read.source, set()).update(found)


def _only_places(op: Operation) -> bool:
    """Whether an op says where a result lies and computes nothing."""
    return isinstance(op, tensor.InsertSliceOp) and all(
        isinstance(use.operation, func.ReturnOp) for use in op.result.uses
    )


def _loose_in_move(shapes: ShapeAnalysis, op: Operation, loose: dict[SSAValue, set[int]], kept: set[SSAValue]) -> None:
    if _only_places(op):
        return
    read = {one.value: one.at for one in affine_sources(op, shapes) or ()}
    through: set[int] = set()
    if op.results and op.results[0] not in kept:
        through = loose.get(op.results[0], set())
    for source in op.operands:
        if not isinstance(source.type, TensorType):
            continue
        at = enumerate(read.get(source, ()))
        plain = {axis for axis, c in at if isinstance(c, AffineDimExpr) and c.position not in through}
        rest = {axis for axis in range(len(_shape(source))) if axis not in plain and not _size_one(source, axis)}
        loose.setdefault(source, set()).update(rest)


def _shape(value: SSAValue) -> Sequence[int]:
    assert isinstance(value.type, TensorType)
    return value.type.get_shape()


def _size_one(value: SSAValue, axis: int) -> bool:
    return _shape(value)[axis] == 1
