"""What a body reads at places of its own: the coordinates of every `tensor.extract`, as loops where they are loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.analysis.structured import StructuredOp, used_dims


@dataclass(frozen=True)
class Gather:
    """Reads of `source`: per dimension the loop whose index is the coordinate (None: it is computed), and the loops that computed ones vary with."""

    source: SSAValue
    loops: tuple[int | None, ...]
    varies: frozenset[int]


def gathers(op: linalg.ops.GenericOp) -> list[Gather]:
    """Every read that the body of `op` makes by coordinates."""
    view = StructuredOp(op)
    found: list[Gather] = []
    for inner in view.body.ops:
        if isinstance(inner, tensor.ExtractOp):
            loops = tuple(_loop(i) for i in inner.indices)
            computed = [loops_behind(view, i) for i, loop in zip(inner.indices, loops, strict=True) if loop is None]
            found.append(Gather(inner.tensor, loops, frozenset[int]().union(*computed)))
    return found


def _loop(index: SSAValue) -> int | None:
    op = index.owner
    return op.dim.value.data if isinstance(op, linalg.ops.IndexOp) else None


def loops_behind(view: StructuredOp, value: SSAValue) -> frozenset[int]:
    """The loops that a scalar of the body varies with."""
    if isinstance(value, BlockArgument):
        return frozenset(used_dims(view.maps[value.index])) if value.owner is view.body else frozenset()
    assert isinstance(value, OpResult)
    if value.op.parent_block() is not view.body:
        return frozenset()
    if isinstance(value.op, linalg.ops.IndexOp):
        return frozenset({value.op.dim.value.data})
    return frozenset[int]().union(*(loops_behind(view, operand) for operand in value.op.operands))
