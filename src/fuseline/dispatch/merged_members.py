"""The members of a body some of which become one op: who is in which, and what `fuseline.loops` says of them then.

members  0  1  2  3        1 became part of 2        members  0  (1, 2)  3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Block, Operation

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import FusedLoops, OnlineReduction, members_of
from fuseline.dispatch.member_classes import with_classes


class MergedMembers:
    """The members of `body` by the numbers that they have at first."""

    def __init__(self, body: Block) -> None:
        self.body, self.before = body, members_of(body)
        self._operands = [tuple(op.operands) for op in self.before]
        self._numbers: dict[Operation, list[int]] = {op: [number] for number, op in enumerate(self.before)}
        self._loops: dict[int, list[int]] = {}

    def merged(self, producer: Operation, consumer: Operation, new: Operation, loops: Sequence[int]) -> None:
        """`new` stands for both, with the loops of `consumer`; `loops[i]` is the one that loop `i` of `producer` is."""
        behind = self._numbers.pop(producer)
        for number in behind:
            self._loops[number] = [loops[loop] for loop in self._loops.get(number, range(len(loops)))]
        self._numbers[new] = behind + self._numbers.pop(consumer)

    @property
    def groups(self) -> list[list[int]]:
        """Per member of the body now, in order, the numbers of those that it stands for."""
        return [self._numbers[op] for op in members_of(self.body)]

    def loops(self, said: FusedLoops, shapes: ShapeAnalysis, node: str) -> FusedLoops:
        """What `said` says of the members that were, said of those that stand for them now. `node`: the dispatch.

        The last of those that became one read the others: its loops are those of the op.
        """
        groups = self.groups
        numbers = {number: i for i, group in enumerate(groups) for number in group}
        found = replace(
            said,
            members=tuple(said.members[group[-1]] for group in groups),
            online=tuple(self._online(one, numbers) for one in said.online),
            along=tuple(dict.fromkeys(self._along(member, operand, numbers[member]) for member, operand in said.along)),
            classes=(),
        )
        return with_classes(found, self.body, shapes, node) if said.classes else found

    def _online(self, one: OnlineReduction, numbers: dict[int, int]) -> OnlineReduction:
        loops = ((numbers[member], self._loop(member, loop)) for member, loop in one.loops)
        return replace(one, loops=tuple(dict.fromkeys(loops)), roles=one.roles.mapped(numbers.__getitem__))

    def _loop(self, member: int, loop: int) -> int:
        return self._loops[member][loop] if member in self._loops else loop

    def _along(self, member: int, operand: int, now: int) -> tuple[int, int]:
        argument = self._operands[member][operand]
        return now, list(members_of(self.body)[now].operands).index(argument)
