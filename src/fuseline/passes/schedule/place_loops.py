"""Where the operands of a loop's body lie: buffers of the program around it, and the loop's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import func

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.provenance import provenance
from fuseline.passes.schedule.main_graph import Buffer, LoopBody, MainGraph, Node, Route, TensorUse, element_bytes
from fuseline.passes.schedule.read_loops import LoopShape, Position, Source
from fuseline.program.schedule import ARENA_ALIGNMENT, Segment


class LoopPlacer:
    """Makes the node of one loop.

    Args:
        body: the graph of the function that one iteration calls.
        reads, writes: the loop's tensor arguments and results in the program around it.
        used: which results anything reads.
    """

    def __init__(
        self,
        shape: LoopShape,
        body: MainGraph,
        reads: Sequence[TensorUse],
        writes: Sequence[TensorUse],
        used: Sequence[bool],
    ) -> None:
        self.shape, self.body, self.reads, self.writes = shape, body, reads, writes
        self.pairs: dict[int, Buffer] = {}
        self.ends: dict[int, int] = {}
        for result, state in shape.last.items():
            if used[result] and state.result not in shape.stacks:
                self.ends.setdefault(state.result, result)
        self.copied = [
            result for result, state in shape.last.items() if used[result] and self.ends.get(state.result) != result
        ]

    def nodes(self, op: func.CallOp) -> list[Node]:
        """The loop, and copies of states whose place at the end is not the one the program wants. Raises FuselineError
        (E0305)."""
        self._check(op)
        routes: dict[tuple[Segment, int], Route] = {
            ("input", number): self._input(number) for number in range(len(self.shape.operands))
        }
        routes |= {("output", number): self._output(number) for number in range(len(self.body.outputs))}
        touched = [
            *(self.writes[stack.result] for stack in self.shape.stacks.values()),
            *(self.writes[result] for result in self.ends.values()),
        ]
        writes = (*touched, *(TensorUse(buffer, (buffer.bytes,), "uint8") for buffer in self._own()))
        loop = LoopBody(self.shape.trips, self.body.nodes, routes)
        nodes = provenance(op)
        label = ", ".join(nodes) or op.callee.string_value()
        made = Node(op, tuple(self.reads), writes, (("trips", self.shape.trips),), label, nodes, loop=loop)
        return [
            made,
            *(Node(None, (self._end(result),), (self.writes[result],), label="copy") for result in self.copied),
        ]

    def _check(self, op: func.CallOp) -> None:
        what = None
        most = d.upper_bound(self.shape.trips)
        if most is not None and most < 1:
            what = "has no iteration at all"
        elif any(node.alone for node in self.body.nodes):
            what = "holds a host operator or another loop"
        if what is not None:
            raise FuselineError(
                "E0305", f"the loop @{op.callee.string_value()} {what}", node=", ".join(provenance(op)) or None
            )

    def _own(self) -> Iterator[Buffer]:
        """The buffers that only the loop uses."""
        yield from self.pairs.values()
        inner = [
            use.buffer
            for node in self.body.nodes
            for use in (*node.reads, *node.writes)
            if use.buffer.segment == "arena"
        ]
        yield from dict.fromkeys(inner)

    def _input(self, number: int) -> Route:
        operand = self.shape.operands[number]
        if isinstance(operand, Source):
            return _route(self.reads[operand.argument], operand.position)
        initial = self.reads[operand.initial]
        special = initial.buffer, initial.offset
        stack = self.shape.stacks.get(operand.result)
        if stack is not None:
            return _route(self.writes[stack.result], stack.position, lag=1, special=special)
        return Route(self._pair(operand.result), 0, self._bytes(operand.result), 1, True, special)

    def _output(self, number: int) -> Route:
        stack = self.shape.stacks.get(number)
        if stack is not None:
            return _route(self.writes[stack.result], stack.position)
        if number not in self.ends:
            return Route(self._pair(number), 0, self._bytes(number), 0, True)
        end = self.writes[self.ends[number]]
        return Route(
            self._pair(number), 0, self._bytes(number), 0, True, (end.buffer, end.offset), d.sub(self.shape.trips, 1)
        )

    def _end(self, result: int) -> TensorUse:
        """The state that result `result` of the loop is, where the last iteration left it."""
        state, target = self.shape.last[result], self.writes[result]
        stack = self.shape.stacks.get(state.result)
        if stack is None:
            return self.writes[self.ends[state.result]]
        whole, position = self.writes[stack.result], stack.position
        elements = d.add(position.first, d.mul(d.sub(self.shape.trips, 1), position.stride))
        return TensorUse(
            whole.buffer, target.dims, target.dtype, d.add(whole.offset, d.mul(elements, whole.element_bytes))
        )

    def _pair(self, number: int) -> Buffer:
        """Two places for result `number` of the body, written in turn."""
        if number not in self.pairs:
            self.pairs[number] = Buffer("arena", 0, d.mul(self._bytes(number), 2))
        return self.pairs[number]

    def _bytes(self, number: int) -> Dim:
        """Bytes of result `number` of the body, rounded up to where the next tensor may begin."""
        boundary = self.body.outputs[number]
        size = d.mul(d.product(boundary.dims), element_bytes(boundary.dtype))
        return d.mul(d.ceil_div(size, ARENA_ALIGNMENT), ARENA_ALIGNMENT)


def _route(whole: TensorUse, position: Position, *, lag: int = 0, special: tuple[Buffer, Dim] | None = None) -> Route:
    first, stride = (d.mul(elements, whole.element_bytes) for elements in (position.first, position.stride))
    return Route(whole.buffer, d.add(whole.offset, first), stride, lag, special=special)
