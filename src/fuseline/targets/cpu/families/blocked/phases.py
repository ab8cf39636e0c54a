"""When the ops of a streamed dispatch run: before the blocks of the streamed axis, in each of them, or after the last.

What has the streamed axis runs in each block, and so does what is made of such values there; what is made of the states
alone has to wait for the last block; the rest does not change from block to block and is computed once, before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.ir import Operation, SSAValue

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch, blocked_dispatch
from fuseline.targets.cpu.families.blocked.streaming import Carried, Streamed
from fuseline.targets.cpu.families.blocked.sub_kernels import (
    LiveRange,
    SubKernel,
    live_ranges,
    readers,
    sources,
    sub_kernels_of,
)


@dataclass(frozen=True)
class StreamedPhases:
    """A dispatch whose sub-kernels `first` to `end` run once per block of `axis`, with what goes from block to
    block."""

    dispatch: BlockedDispatch
    axis: LoopRef
    sub_kernels: tuple[SubKernel, ...]
    first: int
    end: int
    carried: tuple[Carried, ...]

    def live(self) -> list[LiveRange]:
        """The values between sub-kernels: what is read in the blocks lives until the last of them has run."""
        last = self.end - 1
        found = [
            LiveRange(one.value, one.first, max(one.last, last) if one.last >= self.first else one.last, one.stored)
            for one in self._between()
        ]
        for one in self.carried:
            found.append(LiveRange(one.state, self.first, self.last_reader(one), False))
            if not one.in_place and all(live.value is not one.following for live in found):
                found.append(LiveRange(one.following, self.first, last, False))
        return found

    def _between(self) -> list[LiveRange]:
        in_place = {one.following for one in self.carried if one.in_place}
        return [one for one in live_ranges(self.dispatch, self.sub_kernels) if one.value not in in_place]

    def last_reader(self, one: Carried) -> int:
        """The number of the last sub-kernel that needs a state."""
        return max(
            [
                self.end - 1,
                *(
                    self.sub_kernels.index(sub_kernel)
                    for sub_kernel in readers(self.dispatch, self.sub_kernels, one.state)
                ),
            ]
        )


def streamed_phases(found: Streamed) -> StreamedPhases | None:
    """The sub-kernels of a rewritten dispatch, None where some op needs more of the streamed axis than a block."""
    dispatch = blocked_dispatch(found.view, frozenset(one.state for one in found.carried), found.classes)
    axes = {dispatch.axes.of_op(op)[loop] for op, loop in found.loops}
    axis = next(iter(axes))
    if len(axes) > 1 or axis is None or not _runs_in_blocks(dispatch, axis, found.reductions):
        return None
    before, inside, after = (sub_kernels_of(dispatch, ops) for ops in _phases(dispatch, axis))
    first, end = len(before), len(before) + len(inside)
    return StreamedPhases(dispatch, axis, (*before, *inside, *after), first, end, found.carried)


def _runs_in_blocks(dispatch: BlockedDispatch, axis: LoopRef, reductions: frozenset[Operation]) -> bool:
    """Whether every op can do with a block of the axis, and no value that has it is needed as a whole."""
    if axis in dispatch.bent or any(axis in dispatch.axes.of_value(value) for value in dispatch.returned):
        return False
    meeting = [op for op in dispatch.placed if dispatch.meets(op, axis)]
    return all(axis in dispatch.parallel(op) or op in reductions for op in meeting)


def _phases(dispatch: BlockedDispatch, axis: LoopRef) -> tuple[list[linalg.ops.GenericOp], ...]:
    """The placed ops before, in and after the blocks."""
    before, inside, after = list[linalg.ops.GenericOp](), list[linalg.ops.GenericOp](), list[linalg.ops.GenericOp]()
    for op in dispatch.placed:
        read = set(sources(dispatch, op))
        if dispatch.meets(op, axis) or _made_by(inside, read):
            inside.append(op)
        else:
            (after if _made_by(after, read) or read & dispatch.carried else before).append(op)
    return before, inside, after


def _made_by(ops: Iterable[Operation], values: Iterable[SSAValue]) -> bool:
    made = {result for op in ops for result in op.results}
    return any(value in made for value in values)
