"""What a body takes out of a repeated tensor it takes out of the tensor itself.

    %r[i, a, j, b] = %x[i, j]            %x[n, m], 2 times along both dimensions
    %u = collapse %r [[0, 1], [2, 3]]                                                   =>
    linalg.generic { tensor.extract %u[%p, %q] }            linalg.generic { tensor.extract %x[%p / 2, %q / 2] }

A read at places of which only the run tells where they are is no operand with a map, so that the repeated tensor, which
nothing else reads, would be stored to be read once: four times %x for an image of twice the height and the width.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeVar

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.moves import groups_of
from fuseline.analysis.structured import Kind, kind
from fuseline.ir.build import shape_of
from fuseline.ir.fast.direct import body_of, operands_of, ops_of
from fuseline.passes.cleanup.folds.worklist import Worklist

OpT = TypeVar("OpT", bound=Operation)


def fold_repeated_read(op: linalg.ops.GenericOp, work: Worklist) -> bool:
    """The first element that a body takes so out of a tensor that nothing but reads of elements needs."""
    for read in ops_of(body_of(op)):
        new = _unrepeated(read) if isinstance(read, tensor.ExtractOp) else None
        if new is not None:
            work.replace(read, new)
            return True
    return False


def _unrepeated(read: tensor.ExtractOp) -> list[Operation] | None:
    """The read of what is repeated, behind the arithmetic of its place; None for a read of anything else."""
    flat = _made_by(read.tensor, tensor.CollapseShapeOp)
    repeat = _made_by(flat.src, linalg.ops.GenericOp) if flat is not None else None
    if flat is None or repeat is None or kind(repeat) is not Kind.BROADCAST or not _only_elements_taken(flat, repeat):
        return None
    steps: list[Operation] = []
    places: list[SSAValue] = []
    for place, group in zip(read.indices, groups_of(flat), strict=True):
        found = _split(place, [shape_of(flat.src)[axis] for axis in group], steps)
        if found is None:
            return None
        places += found
    source, map_ = operands_of(repeat)[0], repeat.indexing_maps.data[0].data
    written = repeat.indexing_maps.data[-1].data.results
    by_loop = {expr.position: at for expr, at in zip(written, places, strict=True) if isinstance(expr, AffineDimExpr)}
    if not all(isinstance(expr, AffineDimExpr) and expr.position in by_loop for expr in map_.results):
        return None
    at = [by_loop[expr.position] for expr in map_.results if isinstance(expr, AffineDimExpr)]
    needed = _needed(steps, at)
    return [*needed, tensor.ExtractOp(source, at, read.result.type)]


def _made_by(value: SSAValue, form: type[OpT]) -> OpT | None:
    return value.op if isinstance(value, OpResult) and isinstance(value.op, form) else None


def _only_elements_taken(flat: tensor.CollapseShapeOp, repeat: linalg.ops.GenericOp) -> bool:
    """Whether all that becomes of a repeated tensor is read element by element (its sizes may be asked)."""
    readers = [use.operation for use in repeat.results[0].uses if not isinstance(use.operation, tensor.DimOp)]
    taken = [use.operation for use in flat.result.uses if not isinstance(use.operation, tensor.DimOp)]
    return readers == [flat] and all(isinstance(user, tensor.ExtractOp) for user in taken)


def _split(place: SSAValue, sizes: Sequence[int], steps: list[Operation]) -> list[SSAValue] | None:
    """The places along dimensions of `sizes` of place `place` along all of them; None where a quotient is not known."""
    if DYNAMIC_INDEX in sizes[1:]:
        return None
    found: list[SSAValue] = []
    for axis in range(len(sizes)):
        at, below = place, prod(sizes[axis + 1 :])
        if below > 1:
            at = _by(arith.FloorDivSIOp, at, below, steps)
        if axis and sizes[axis] > 0:
            at = _by(arith.RemSIOp, at, sizes[axis], steps)
        found.append(at)
    return found


def _by(
    form: type[arith.FloorDivSIOp] | type[arith.RemSIOp], value: SSAValue, number: int, steps: list[Operation]
) -> SSAValue:
    constant = arith.ConstantOp(IntegerAttr(number, IndexType()))
    steps += [constant, form(value, constant.result)]
    return steps[-1].results[0]


def _needed(steps: Sequence[Operation], values: Sequence[SSAValue]) -> list[Operation]:
    """The steps that `values` follow from, in their order."""
    wanted = set(values)
    kept: list[Operation] = []
    for step in reversed(steps):
        if step.results[0] in wanted:
            kept.append(step)
            wanted |= set(step.operands)
    return kept[::-1]
