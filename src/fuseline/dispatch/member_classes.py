"""The classes of the loops of a body's members: loops of one class have the same coordinate, in the grid or inside a
workgroup.

They follow from what is read in step (`shared_loops.py`). Where reads would give an op two loops of one class
(`x + transpose(x)`), they join nothing. What is evaluated where it is read, and what steps along an argument that parts
go along, joins last, where it can: it may be read in any way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import FusedLoops, members_of
from fuseline.dispatch.shared_loops import Loop, SharedLoops, shared_of_arm
from fuseline.errors import FuselineError

Pairs: TypeAlias = list[tuple[Loop, Loop]]


def with_classes(
    loops: FusedLoops, body: Block, shapes: ShapeAnalysis, node: str | None = None, carried: Collection[SSAValue] = ()
) -> FusedLoops:
    """The loops of `body`, that of the dispatch `node`, with the classes of all loops of its members. `carried`:
    uninitialised values that another run of the body has filled.

    Raises FuselineError (E0901) where a loop of a grid cannot be one class.
    """
    members = members_of(body)
    arms = [shared_of_arm(loops, members, arm, shapes, carried) for arm in range(len(loops.grids))]
    return replace(loops, classes=member_classes(loops, members, arms, node))


def member_classes(
    loops: FusedLoops, members: Sequence[Operation], arms: Sequence[SharedLoops], node: str | None
) -> tuple[tuple[int | None, ...], ...]:
    """`FusedLoops.classes` of `members`, from what each arm has: numbered in the order in which members have them.

    Raises FuselineError (E0901) where a loop of a grid cannot be one class.
    """
    found = dict[Loop, Loop | None]()
    for arm, shared in enumerate(arms):
        classes = _classes(shared, _grid_loops(loops, members, arm), _streamed_loops(loops, members, shared))
        if classes is None:
            raise FuselineError("E0901", f"a grid loop of arm {arm} is no class of loops of the body", node=node)
        for op, nest in shared.nests.items():
            for loop, extent in enumerate(nest.loops):
                found[op, loop] = classes.of((op, loop)) if extent != 1 else None
    ranks = {op: len(nest.loops) for shared in arms for op, nest in shared.nests.items()}
    numbers = dict[Loop, int]()
    return tuple(
        tuple(
            numbers.setdefault(class_, len(numbers)) if class_ is not None else None
            for class_ in (found[op, loop] for loop in range(ranks.get(op, 0)))
        )
        for op in members
    )


def _grid_loops(loops: FusedLoops, members: Sequence[Operation], arm: int) -> Iterator[list[Loop]]:
    """For each loop of a grid the loops of members that it is."""
    placed = [(op, one.grid_loops) for op, one in zip(members, loops.members, strict=True) if one.arm == arm]
    for position, extent in enumerate(loops.grids[arm]):
        if extent != 1:
            yield [(op, at.index(position)) for op, at in placed if position in at]


def _streamed_loops(loops: FusedLoops, members: Sequence[Operation], shared: SharedLoops) -> Iterator[list[Loop]]:
    """For each online reduction of an arm the loops that may be met block by block."""
    for one in loops.online:
        yield [(members[member], loop) for member, loop in one.loops if members[member] in shared.nests]


def _classes(
    shared: SharedLoops, grid: Iterable[Sequence[Loop]], streamed: Iterable[Sequence[Loop]]
) -> DisjointSets[Loop] | None:
    """The classes of an arm; None where loops of a grid are not one."""
    made, grid_pairs = shared.in_step(shared.kept_steps), _pairs(grid)
    rest = [
        shared.in_step(shared.free_steps),
        *(_pairs([one]) for one in streamed),
        *map(_pairs, shared.along.values()),
    ]
    everything = DisjointSets[Loop]([*made, *grid_pairs, *chain.from_iterable(rest)])
    return everything if not _twice(shared, everything) else _joined_apart(shared, made, grid_pairs, rest)


def _joined_apart(shared: SharedLoops, made: Pairs, grid: Pairs, rest: Iterable[Pairs]) -> DisjointSets[Loop] | None:
    """The classes where not all can be joined: each of `rest` at once, or else what it has of one op after the other,
    where that gives no op two loops of one class."""
    found = DisjointSets[Loop](made)
    twice = _twice(shared, found)
    if twice:
        found = DisjointSets[Loop]([pair for pair in made if found.of(pair[0]) not in twice])
    found = _joined(shared, found, grid)
    if found is None:
        return None
    for pairs in rest:
        whole = _joined(shared, found, pairs)
        pairs_by_member = [
            [pair for pair in pairs if pair[0][0] is op] for op in shared.nests
        ]  # whatever order ops read them in
        for own_pairs in pairs_by_member if whole is None else ():
            found = _joined(shared, found, own_pairs) or found
        found = whole or found
    return found


def _joined(shared: SharedLoops, classes: DisjointSets[Loop], pairs: Pairs) -> DisjointSets[Loop] | None:
    found = classes.copy()
    for one, other in pairs:
        found.join(one, other)
    return found if not _twice(shared, found) else None


def _pairs(chains: Iterable[Sequence[Loop]]) -> Pairs:
    return [pair for loops in chains for pair in pairwise(loops)]


def _twice(shared: SharedLoops, classes: DisjointSets[Loop]) -> set[Loop]:
    """Classes that some op has twice."""
    found = set[Loop]()
    for op, nest in shared.nests.items():
        mine = [classes.of((op, loop)) for loop, extent in enumerate(nest.loops) if extent != 1]
        if len(set(mine)) < len(mine):
            found |= {class_ for class_ in mine if mine.count(class_) > 1}
    return found
