"""What `fuseline.loops` says of a body, against what the body has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import FusedLoops, OnlineReduction, Role, members_of
from fuseline.dispatch.member_classes import member_classes
from fuseline.dispatch.result_boxes import returned, unreshaped
from fuseline.dispatch.shared_loops import SharedLoops, shared_of_arm
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim


def require_shared(loops: FusedLoops, body: Block, shapes: ShapeAnalysis, node: str, code: str = "E0901") -> None:
    """Raises FuselineError (`code`) where the members of `body` do not share what the loops of the dispatch `node` say
    they share."""
    problem = next(_problems(loops, body, shapes, node), None)
    if problem is not None:
        raise FuselineError(code, f"fusion and the body of the dispatch disagree: {problem}", node=node)


def _problems(loops: FusedLoops, body: Block, shapes: ShapeAnalysis, node: str) -> Iterator[str]:
    members = members_of(body)
    yield from _leaving(loops, members, {unreshaped(result) for result in returned(body)})
    arms = [shared_of_arm(loops, members, arm, shapes) for arm in range(len(loops.grids))]
    for arm, (grid, shared) in enumerate(zip(loops.grids, arms, strict=True)):
        for position in (position for position, extent in enumerate(grid) if extent != 1):
            claimed = {
                op: one.grid_loops.index(position)
                for op, one in zip(members, loops.members, strict=True)
                if op in shared.placed and position in one.grid_loops
            }
            yield from _grid_loop_problems(shared, claimed, grid[position], f"grid loop {position} of arm {arm}")
        for one in loops.online:
            if members[one.product] in shared.placed:
                yield from _online_problems(shared, members, one)
    if loops.classes and loops.classes != member_classes(loops, members, arms, node):
        yield "its loops are in other classes than `classes` says"


def _leaving(loops: FusedLoops, members: Sequence[Operation], stored: Collection[SSAValue]) -> Iterator[str]:
    """What is evaluated where it is read, and stored: no block of the grid makes its own part of it."""
    for op, one in zip(members, loops.members, strict=True):
        if one.role is Role.INLINED and any(result in stored for result in op.results):
            yield f"{op.name} is inlined, and a result"


def _grid_loop_problems(
    shared: SharedLoops, claimed: Mapping[Operation, int], extent: Dim | None, what: str
) -> Iterator[str]:
    if len(claimed) != len(shared.placed):
        yield f"{what} is a loop of {len(claimed)} of {len(shared.placed)} members"
        return
    for component in shared.components():
        classes = {shared.classes.of((op, claimed[op])) for op in component}
        if len(classes) > 1 or not all(shared.classes.is_shared(class_, component) for class_ in classes):
            yield f"{what} is no loop that all members share"
    for op, loop in claimed.items() if extent is not None else ():
        if shared.nests[op].loops[loop] != extent:
            yield f"{what} runs to {extent}, a loop of {op.name} to {shared.nests[op].loops[loop]}"


def _online_problems(shared: SharedLoops, members: Sequence[Operation], one: OnlineReduction) -> Iterator[str]:
    claimed = {(members[member], loop) for member, loop in one.loops}
    classes = {shared.classes.of(loop) for loop in claimed}
    found = {(op, loop) for op in shared.placed for class_ in classes for loop in shared.classes.along(op, class_)}
    reduced = {op for op, loop in found if shared.nests[op].iterators[loop] == "reduction"}
    reductions = {members[member] for member in one.roles.reductions}
    if classes & shared.classes.broken or found != claimed or not reductions <= reduced:
        yield "the loop of an online reduction is not what the members have along it"
