"""The loops that the members of a body share, where nobody has said them: for regions of hand-written MLIR, and for
entry functions that code generation makes of parts of a dispatch.

What is kept are results and reductions; everything else may be evaluated where it is read. The grid are all loops that
what makes kept values shares, by the same classes as what is said is checked with (`shared_loops.py`). Components that
share no value go along every argument together that several of them read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.online_softmax import online_softmaxes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import is_reduction, tensor_operands
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, OnlineReduction, Role, member_loops, members_of
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.result_boxes import stored_boxes
from fuseline.dispatch.shared_loops import Loop, SharedLoops
from fuseline.ir.reachable import reachable


def derived_loops(body: Block, shapes: ShapeAnalysis) -> FusedLoops:
    """The loops of an entry function, as those of one arm."""
    ops, along = members_of(body), list(_along(body))
    arguments = [op.operands[operand] for op, operand in along]
    placed, inlined = _kept_apart(ops, [box.value for _, box in stored_boxes(body, shapes)])
    shared = SharedLoops(placed, inlined, (), shapes, arguments, go_along=True)
    grid = _grid(shared)
    return FusedLoops(
        (tuple(shared.nests[op].loops[loop] for op, loop in grid),),
        tuple(_member(shared, op, grid) for op in ops),
        tuple(_online(body, shapes)),
        tuple((ops.index(op), operand) for op, operand in along),
    )


def _kept_apart(ops: Sequence[Operation], stored: Collection[SSAValue]) -> tuple[list[Operation], list[Operation]]:
    """The members that make results or reduce, and the others that these need."""
    live, results = live_ops(stored), set(stored)
    placed = [op for op in ops if op in live and (is_reduction(op) or not results.isdisjoint(op.results))]
    return placed, [op for op in ops if op in live and op not in placed]


def _grid(shared: SharedLoops) -> list[Loop]:
    """The loops that all placed members share, in the order of the one that has most."""
    order = sorted(shared.placed, key=lambda op: list(shared.nests[op].iterators).count("parallel"))
    return shared.classes.shared(order) if order else []


def _along(body: Block) -> Iterator[tuple[Operation, int]]:
    """The arguments that several components read, each as an operand of a member."""
    members, ops = members_of(body), [op for op in body.ops if op.results]
    made = [(value, op) for op in ops for value in tensor_operands(op) if isinstance(value, OpResult)]
    components = DisjointSets((value.op, op) for value, op in made if is_internal(value) and tensor_operands(value.op))
    for argument in (one for one in body.args if isinstance(one.type, TensorType)):
        readers = [op for op in ops if argument in op.operands]
        if len({components.of(op) for op in readers}) > 1:
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
            yield OnlineReduction(loops, chain.roles.mapped(members.index), 1)


def live_ops(results: Iterable[SSAValue]) -> set[Operation]:
    """The ops that make `results`."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [value.op for value in values if isinstance(value, OpResult) and is_internal(value)]

    return set(reachable(makers(results), lambda op: makers(tensor_operands(op))))


def _member(shared: SharedLoops, op: Operation, grid: Sequence[Loop]) -> MemberLoops:
    """A member that makes a kept value runs over the grid; any other is evaluated where it is read."""
    if op not in shared.placed:
        return MemberLoops((), Role.INLINED)
    classes = [shared.classes.of((op, loop)) for loop in range(len(shared.nests[op].loops))]
    return MemberLoops(tuple(grid.index(class_) if class_ in grid else None for class_ in classes))
