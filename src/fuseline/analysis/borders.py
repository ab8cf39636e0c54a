"""Borders that repeat the tensor itself, as the gathers that they are: an element extracted where index arithmetic of
one loop per dimension says.

    extract x[n, min(max(i - 1, 0), 19)]       =>      dimension 1: border "edge" around i - 1

They are found by what their indices are everywhere, not by how those are spelled: each is computed for all iterations
of its loop and compared with the three modes; those of a size that only the run knows at many sizes
(`borders_of_any_size.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.border_modes import BORDER_MODES, BorderMode, folded, reach
from fuseline.analysis.borders_of_any_size import border_of_any_size
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic, yielded
from fuseline.evaluation.program import Program, Scope, run_op
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import ops_of

MOST_POSITIONS = 1 << 16
"""Iterations of a loop beyond which its index is not computed for all of them."""

MOST_LOWS = 4
"""Places tried for the source's first element: where most positions agree on it, which those inside do."""

_ARITHMETIC = {
    arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp, arith.CmpiOp,
    arith.SelectOp, arith.RemSIOp, arith.RemUIOp, arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.IndexCastOp,
    arith.ExtSIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, linalg.ops.IndexOp, arith.ConstantOp,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BorderedAxis:
    """Dimension of the source read at `loop - low`, folded back by `mode` (None: it never leaves the source)."""

    loop: int
    low: int
    mode: BorderMode | None


@dataclass(frozen=True, slots=True)
class BorderRead:
    """A gather that is `source` with borders: where each of its dimensions is read."""

    source: SSAValue
    axes: tuple[BorderedAxis, ...]


def border_read(op: Operation, shapes: ShapeAnalysis) -> BorderRead | None:
    """The borders that `op` puts around a tensor; None where it is something else. It is found out once."""
    key = border_read, id(op)
    if key not in shapes.remembered:
        shapes.remembered[key] = op, _border_read(op, shapes)  # the op, to keep it alive
    return shapes.remembered[key][1]


def _border_read(op: Operation, shapes: ShapeAnalysis) -> BorderRead | None:
    extracted = _extracted(op)
    if extracted is None or not is_generic(op):
        return None
    extents, sizes = StructuredOp(op).loops(shapes), shapes.dims(extracted.tensor)
    if not extents or any(isinstance(size, int) and size < 1 for size in (*extents, *sizes)):
        return None
    found = [_axis(index, extents, size, shapes) for index, size in zip(extracted.indices, sizes, strict=True)]
    axes = tuple(axis for axis in found if axis is not None)
    return BorderRead(extracted.tensor, axes) if len(axes) == len(found) else None


def _extracted(op: Operation) -> tensor.ExtractOp | None:
    """The element of a tensor from outside that a generic yields wherever its loops are, each dimension of its result a
    loop; else None."""
    if not is_generic(op) or len(op.results) != 1:
        return None
    view = StructuredOp(op)
    last = yielded(op)[0]
    written = {expr.position for expr in view.output_maps[0].results if isinstance(expr, AffineDimExpr)}
    if view.reduction or len(written) != view.rank or len(view.output_maps[0].results) != view.rank:
        return None
    if not isinstance(last, OpResult) or not isinstance(last.op, tensor.ExtractOp) or last.op.parent is not view.body:
        return None
    source = last.op.tensor
    outside = not (isinstance(source.owner, Operation) and source.owner.parent is view.body)
    others = [inner for inner in ops_of(view.body) if inner not in (last.op, view.body.last_op)]
    return last.op if outside and all(type(inner) in _ARITHMETIC for inner in others) else None


def _axis(index: SSAValue, extents: Sequence[Dim], size: Dim, shapes: ShapeAnalysis) -> BorderedAxis | None:
    """How an index traverses a dimension of `size`; None where it is no border of one loop, or that is not known."""
    loop = index.op.dim.value.data if isinstance(index, OpResult) and isinstance(index.op, linalg.ops.IndexOp) else None
    if loop is not None and extents[loop] == size:
        return BorderedAxis(loop, 0, None)
    if not isinstance(size, int):
        found = border_of_any_size(index, extents, size, shapes)
        return BorderedAxis(*found) if found is not None else None
    return _computed_axis(index, extents, size)


def _computed_axis(index: SSAValue, extents: Sequence[Dim], size: int) -> BorderedAxis | None:
    """The same, by what the index is in each iteration."""
    ops: dict[Operation, None] = {}
    loops: set[int] = set()
    if not _collect(index, ops, loops) or len(loops) != 1:
        return None
    (loop,) = loops
    extent = extents[loop]
    if not isinstance(extent, int) or extent > MOST_POSITIONS:
        return None
    positions = np.arange(extent)
    scope = Scope(Program(), indices=[positions if i == loop else np.zeros(1, np.int64) for i in range(len(extents))])
    for op in ops:
        run_op(op, scope)
    found = np.broadcast_to(np.asarray(scope[index]), positions.shape)
    if found.min() < 0 or found.max() >= size:
        return None
    return _mode(loop, positions, found, size)


def _mode(loop: int, positions: NDArray[np.int64], found: NDArray[np.int64], size: int) -> BorderedAxis | None:
    lows, counts = np.unique(positions - found, return_counts=True)
    for low in lows[np.argsort(-counts, kind="stable")][:MOST_LOWS].tolist():
        at = positions - low
        if np.array_equal(found, at):
            return BorderedAxis(loop, low, None)
        for mode in BORDER_MODES:
            if _in_reach(at, size, mode) and np.array_equal(found, folded(at, size, mode)):
                return BorderedAxis(loop, low, mode)
    return None


def _in_reach(at: NDArray[np.int64], size: int, mode: BorderMode) -> bool:
    """Whether one turn brings all coordinates back, which is all that kernels do: a reflection of two elements looks
    like a turn around them, and does not reach as far."""
    most = reach(size, mode)
    return most is None or (at[0] >= -most and at[-1] < size + most)


def _collect(value: SSAValue, ops: dict[Operation, None], loops: set[int]) -> bool:
    """The integer arithmetic behind a value, operands first, and the loops it starts from; whether that is all there
    is."""
    if not isinstance(value, OpResult) or not isinstance(value.type, IndexType | IntegerType):
        return False
    if type(value.op) not in _ARITHMETIC:
        return False
    if value.op in ops:
        return True
    if isinstance(value.op, linalg.ops.IndexOp):
        loops.add(value.op.dim.value.data)
    found = all([_collect(operand, ops, loops) for operand in value.op.operands])
    ops[value.op] = None
    return found
