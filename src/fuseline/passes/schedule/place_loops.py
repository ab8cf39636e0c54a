"""Where the operands of a loop's body lie: buffers of the program around it, and the loop's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import func

from fuseline.buffers import BufferRef, LoopOffset, Operand, TensorSpec
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.provenance import node_names, provenance
from fuseline.passes.schedule.dependencies import earliest_waves, needs_of
from fuseline.passes.schedule.main_buffers import Storage
from fuseline.passes.schedule.read_loops import LoopShape, Position, Source
from fuseline.program.schedule import ARENA_ALIGNMENT, element_bytes, moved, moved_ref
from fuseline.program.steps import (
    CopyStep,
    DispatchStep,
    FillStep,
    InsertStep,
    LoopStep,
    MoveStep,
    SizesStep,
    Step,
    changed,
)

BodyStep = DispatchStep | CopyStep | FillStep | InsertStep | SizesStep


class LoopBody(NamedTuple):
    """What one iteration does, its own inputs and outputs as buffers of those segments."""

    steps: Sequence[Step]
    outputs: Sequence[TensorSpec]


class _Route(NamedTuple):
    """Where a tensor at the border of the body lies in the program, and how that moves."""

    ref: BufferRef
    loop_offset: LoopOffset


class LoopPlacer:
    """Makes the step of one loop.

    Args:
        reads, writes: the loop's tensor arguments and results in the program around it.
        used: which results anything reads.
    """

    def __init__(
        self,
        shape: LoopShape,
        body: LoopBody,
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        used: Sequence[bool],
        storage: Storage,
    ) -> None:
        self.shape, self.body, self.reads, self.writes, self.storage = shape, body, reads, writes, storage
        self.pairs: dict[int, BufferRef] = {}
        self.ends: dict[int, int] = {}
        for result, state in shape.last.items():
            if used[result] and state.result not in shape.stacks:
                self.ends.setdefault(state.result, result)
        self.copied = [
            result for result, state in shape.last.items() if used[result] and self.ends.get(state.result) != result
        ]

    def steps(self, op: func.CallOp) -> tuple[LoopStep, list[CopyStep]]:
        """The loop, and copies of states whose place at the end is not the one the program wants. Raises FuselineError
        (E0305)."""
        self._check(op)
        inputs = {("input", number): self._input(number) for number in range(len(self.shape.operands))}
        self.routes = inputs | {("output", number): self._output(number) for number in range(len(self.body.outputs))}
        body = tuple(self._placed(step) for step in self._in_order())
        written = [
            *(self.writes[stack.result] for stack in self.shape.stacks.values()),
            *(self.writes[result] for result in self.ends.values()),
        ]
        nodes = provenance(op)
        label = ", ".join(nodes) or op.callee.string_value()
        loop = LoopStep(self.shape.trips, body, tuple(self.reads), (*written, *self._own()), 0, label, nodes)
        return loop, [CopyStep(self._end(result), self.writes[result], 0) for result in self.copied]

    def _check(self, op: func.CallOp) -> None:
        what = None
        most = d.upper_bound(self.shape.trips)
        if most is not None and most < 1:
            what = "has no iteration at all"
        elif not all(isinstance(step, BodyStep) for step in self.body.steps):
            what = "holds a host operator or another loop"
        if what is not None:
            raise FuselineError("E0305", f"the loop @{op.callee.string_value()} {what}", node=node_names(op))

    # the body's steps -------------------------------------------------------------------------------------------------

    def _in_order(self) -> Iterator[BodyStep]:
        """What an iteration does, by wave."""
        waves = earliest_waves(needs_of(self.body.steps))
        for number in sorted(range(len(waves)), key=lambda i: (waves[i], i)):
            step = self.body.steps[number]
            assert isinstance(step, BodyStep)
            yield changed(step, wave=waves[number])

    def _placed(self, step: BodyStep) -> BodyStep:
        if isinstance(step, DispatchStep):
            return step._replace(
                operands=tuple(map(self._routed, step.operands)), results=tuple(map(self._routed, step.results))
            )
        if isinstance(step, MoveStep):
            return changed(step, source=self._routed(step.source), target=self._routed(step.target))
        return step._replace(target=self._routed(step.target))

    def _routed(self, operand: Operand) -> Operand:
        """An operand of the body as one of the program: what is at the body's border moves as its route does."""
        segment, number, offset = operand.buffer
        route = self.routes.get((segment, number))
        return (
            operand
            if route is None
            else moved(operand._replace(buffer=route.ref, loop_offset=route.loop_offset), offset)
        )

    def _own(self) -> Iterator[Operand]:
        """The buffers that only the loop uses."""
        inner = (operand.buffer for step in self.body.steps for operand in (*step.operands, *step.results))
        for ref in dict.fromkeys(
            (*self.pairs.values(), *(ref._replace(offset=0) for ref in inner if ref.segment == "transient"))
        ):
            yield Operand(ref, (self.storage.transients[ref.number],), "uint8")

    # the body's border ------------------------------------------------------------------------------------------------

    def _input(self, number: int) -> _Route:
        operand = self.shape.operands[number]
        if isinstance(operand, Source):
            return _along(self.reads[operand.argument], operand.position)
        initial = self.reads[operand.initial].buffer
        stack = self.shape.stacks.get(operand.result)
        if stack is not None:
            return _along(self.writes[stack.result], stack.position, lag=1, special=initial)
        return _Route(self._pair(operand.result), LoopOffset(self._bytes(operand.result), 1, True, initial))

    def _output(self, number: int) -> _Route:
        stack = self.shape.stacks.get(number)
        if stack is not None:
            return _along(self.writes[stack.result], stack.position)
        stride = self._bytes(number)
        if number not in self.ends:
            return _Route(self._pair(number), LoopOffset(stride, alternates=True))
        end = self.writes[self.ends[number]].buffer
        return _Route(self._pair(number), LoopOffset(stride, 0, True, end, d.sub(self.shape.trips, 1)))

    def _end(self, result: int) -> Operand:
        """The state that result `result` of the loop is, where the last iteration left it."""
        state, target = self.shape.last[result], self.writes[result]
        stack = self.shape.stacks.get(state.result)
        if stack is None:
            return self.writes[self.ends[state.result]]
        ref, offset = _along(self.writes[stack.result], stack.position)
        return Operand(moved_ref(ref, d.mul(d.sub(self.shape.trips, 1), offset.stride)), target.dims, target.dtype)

    def _pair(self, number: int) -> BufferRef:
        """Two places for result `number` of the body, written in turn."""
        if number not in self.pairs:
            self.pairs[number] = self.storage.transient(d.mul(self._bytes(number), 2))
        return self.pairs[number]

    def _bytes(self, number: int) -> Dim:
        """Bytes of result `number` of the body, rounded up to where the next tensor may begin."""
        spec = self.body.outputs[number]
        size = d.mul(d.product(spec.dims), element_bytes(spec.dtype))
        return d.mul(d.ceil_div(size, ARENA_ALIGNMENT), ARENA_ALIGNMENT)


def _along(whole: Operand, position: Position, *, lag: int = 0, special: BufferRef | None = None) -> _Route:
    """A slice of `whole` that begins at `position`."""
    first, stride = (d.mul(elements, element_bytes(whole.dtype)) for elements in (position.first, position.stride))
    return _Route(moved_ref(whole.buffer, first), LoopOffset(stride, lag, special=special))
