"""When the ops of a streamed dispatch run: before the blocks of the streamed axis, in each of them, or after the last.

What has the streamed axis runs in each block, and so does what is made of such values there; what is made of the states
alone has to wait for the last block; the rest does not change from block to block and is computed once, before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.ir import Operation, SSAValue

from fuseline.dispatch.axes import Node
from fuseline.targets.cpu.families.blocked.streaming import Carried, Streamed
from fuseline.targets.cpu.families.blocked.structure import Structure, structure_of
from fuseline.targets.cpu.families.blocked.units import Kept, Unit, kept_values, readers, sources, units_of


@dataclass(frozen=True)
class Stream:
    """A structure whose units `first` to `end` run once per block of `axis`, with what goes from block to block."""

    structure: Structure
    axis: Node
    units: tuple[Unit, ...]
    first: int
    end: int
    carried: tuple[Carried, ...]

    def kept(self) -> list[Kept]:
        """The values between units: what is read in the blocks lives until the last of them has run."""
        last = self.end - 1
        found = [
            Kept(one.value, one.first, max(one.last, last) if one.last >= self.first else one.last, one.stored)
            for one in self._between()
        ]
        for one in self.carried:
            found.append(Kept(one.state, self.first, self.last_reader(one), False))
            if not one.in_place and all(kept.value is not one.following for kept in found):
                found.append(Kept(one.following, self.first, last, False))
        return found

    def _between(self) -> list[Kept]:
        in_place = {one.following for one in self.carried if one.in_place}
        return [one for one in kept_values(self.structure, self.units) if one.value not in in_place]

    def last_reader(self, one: Carried) -> int:
        """The number of the last unit that needs a state."""
        return max([self.end - 1, *(self.units.index(unit) for unit in readers(self.structure, self.units, one.state))])


def stream_of(found: Streamed) -> Stream | None:
    """The units of a rewritten dispatch, None where some op needs more of the streamed axis than a block."""
    structure = structure_of(found.view, frozenset(one.state for one in found.carried), found.grid)
    op, loop = found.loops[0]
    structure.axes.join(((op, loop), other) for other in found.loops[1:])
    axes = {structure.axes.of_op(op)[loop] for op, loop in found.loops}
    axis = next(iter(axes))
    if len(axes) > 1 or axis is None or not _runs_in_blocks(structure, axis, found.reductions):
        return None
    before, inside, after = (units_of(structure, ops) for ops in _phases(structure, axis))
    first, end = len(before), len(before) + len(inside)
    return Stream(structure, axis, (*before, *inside, *after), first, end, found.carried)


def _runs_in_blocks(structure: Structure, axis: Node, reductions: frozenset[Operation]) -> bool:
    """Whether every op can do with a block of the axis, and no value that has it is needed as a whole."""
    if axis in structure.bent or any(axis in structure.axes.of_value(value) for value in structure.returned):
        return False
    meeting = [op for op in structure.placed if structure.meets(op, axis)]
    return all(axis in structure.parallel(op) or op in reductions for op in meeting)


def _phases(structure: Structure, axis: Node) -> tuple[list[linalg.ops.GenericOp], ...]:
    """The placed ops before, in and after the blocks."""
    before, inside, after = list[linalg.ops.GenericOp](), list[linalg.ops.GenericOp](), list[linalg.ops.GenericOp]()
    for op in structure.placed:
        read = set(sources(structure, op))
        if structure.meets(op, axis) or _made_by(inside, read):
            inside.append(op)
        else:
            (after if _made_by(after, read) or read & structure.carried else before).append(op)
    return before, inside, after


def _made_by(ops: Iterable[Operation], values: Iterable[SSAValue]) -> bool:
    made = {result for op in ops for result in op.results}
    return any(value in made for value in values)
