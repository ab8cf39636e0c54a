"""The loops that the members of a body share, where nobody has said them: for regions of hand-written MLIR, and for
entry functions that code generation makes of parts of a dispatch.

What is kept are results and reductions; everything else may be evaluated where it is read. The grid are the axes that
all kept values have once, that nothing reduces and along which nobody reads a kept value out of step. Parts that share
no value go along every argument together that several of them read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.online_softmax import online_softmaxes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic, tensor_operands
from fuseline.dispatch.axes import Axes, Grid, LoopRef, is_internal, non_identity_reads
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, Role, member_loops, members_of
from fuseline.dispatch.result_places import stored_places
from fuseline.dispatch.shared_loops import SharedLoops


def derived_loops(body: Block, shapes: ShapeAnalysis) -> FusedLoops:
    """The loops of an entry function, as those of one arm."""
    along = list(_along(body))
    axes = Axes(body, shapes, Grid(along=tuple(op.operands[operand] for op, operand in along)))
    stored = [place.value for _, place in stored_places(body, shapes)]
    live = live_ops(stored)
    reduced = [result for op in axes.ops if op in live and _reduces(op) for result in op.results]
    grid = _shared(axes, live, list(dict.fromkeys([*stored, *reduced])))
    ops = members_of(body)
    members = tuple(_member(axes, op, grid, {*stored, *reduced}) for op in ops)
    return FusedLoops(
        (tuple(axes.extents[axis] for axis in grid),),
        members,
        tuple(_online(body, shapes)),
        tuple((ops.index(op), operand) for op, operand in along),
    )


def _along(body: Block) -> Iterator[tuple[Operation, int]]:
    """The arguments that several parts read, each as an operand of a member."""
    members, ops = members_of(body), [op for op in body.ops if op.results]
    made = [(value, op) for op in ops for value in tensor_operands(op) if isinstance(value, OpResult)]
    parts = DisjointSets((value.op, op) for value, op in made if is_internal(value) and tensor_operands(value.op))
    for argument in (one for one in body.args if isinstance(one.type, TensorType)):
        readers = [op for op in ops if argument in op.operands]
        if len({parts.of(op) for op in readers}) > 1:
            reader = next((op for op in readers if op in members), None)
            if reader is not None:
                yield reader, list(reader.operands).index(argument)


def _online(body: Block, shapes: ShapeAnalysis) -> Iterator[OnlineReduction]:
    """The softmaxes that may be met block by block: along their loop, everything is read in step."""
    members = members_of(body)
    found = online_softmaxes(members)
    shared = SharedLoops([op for op in members if member_loops(op, shapes)], (), (), shapes) if found else None
    for chain in found:
        if shared is not None and all(shared.classes.of(loop) not in shared.classes.broken for loop in chain.loops):
            loops = tuple((members.index(op), loop) for op, loop in chain.loops)
            yield OnlineReduction(loops, members.index(chain.product), 1)


def live_ops(results: Iterable[SSAValue]) -> set[Operation]:
    """The ops that make `results`."""
    pending, found = list(results), set[Operation]()
    while pending:
        value = pending.pop()
        if isinstance(value, OpResult) and is_internal(value) and value.op not in found:
            found.add(value.op)
            pending += tensor_operands(value.op)
    return found


def _reduces(op: Operation) -> bool:
    return is_generic(op) and bool(StructuredOp(op).reduction)


def _shared(axes: Axes, live: set[Operation], kept: list[SSAValue]) -> list[LoopRef]:
    """The axes of the grid, in the order of the value that has most."""
    along = [[axis for axis in axes.of_value(value) if axis is not None] for value in kept]
    main = max(along, key=len, default=[])
    forbidden = {axis for mine in along for axis in mine if mine.count(axis) > 1} | _out_of_step(axes, live, kept)
    return [axis for axis in main if axis not in forbidden and all(axis in mine for mine in along)]


def _out_of_step(axes: Axes, live: set[Operation], kept: list[SSAValue]) -> set[LoopRef]:
    """The axes that some op has twice or reduces, or along which a kept value is read at another point."""
    found: set[LoopRef | None] = set()
    for op in (op for op in live if is_generic(op)):
        loops = axes.of_op(op)
        found |= {axis for axis in loops if loops.count(axis) > 1} | {loops[i] for i in StructuredOp(op).reduction}
    loose = non_identity_reads(axes, kept)
    for value in filter(is_internal, kept):
        of = axes.of_value(value)
        found |= {of[i] for i in loose.get(value, ())}
    return {axis for axis in found if axis is not None}


def _member(axes: Axes, op: Operation, grid: list[LoopRef], kept: set[SSAValue]) -> MemberLoops:
    """A member that makes a kept value runs over the grid; any other is evaluated where it is read."""
    if kept.isdisjoint(op.results):
        return MemberLoops((), Role.INLINED)
    loops = axes.of_op(op) if is_generic(op) else axes.of_value(op.results[0])
    return MemberLoops(tuple(grid.index(axis) if axis in grid else None for axis in loops))
