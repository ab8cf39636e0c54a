"""A counted loop of `@main` as one step: what its body does in an iteration, and how each operand of the body moves
from iteration to iteration.

%y, %h = func.call @loop(%x, %h0)           func @loop(%x, %h0) {
                                              %y, %h = scf.for %t = 0 to T iter_args(%ys = empty, %state = %h0) {
                                                %slice = tensor.extract_slice %x[%t, 0, ..]
                                                %new = func.call @step(%slice, %state)
                                                %all = tensor.insert_slice %new into %ys[%t, 0, ..]
                                                scf.yield %all, %new
an operand of @step that is               lies in iteration i
  made outside                              where it lies
  a slice of such a value                   there, i strides on
  a state                                   where it begins (i = 0), then where iteration i - 1 left it
a result of @step that is
  put into a stack                          there, i strides on: a state that is stacked has no place of its own
  a state                                   in one of two places in turn; in the last iteration, where the loop's result
                                            lies
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.provenance import node_names

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class Position:
    """Elements from the start of a tensor: `first` in iteration 0, `stride` more in each one that follows."""

    first: Dim = 0
    stride: Dim = 0


@dataclass(frozen=True)
class Source:
    """An operand of the body made outside the loop: argument `argument` of the loop, from `position` on."""

    argument: int
    position: Position


@dataclass(frozen=True)
class State:
    """An operand of the body that is what the body's result `result` was one iteration before, and argument `initial`
    of the loop at first."""

    result: int
    initial: int


@dataclass(frozen=True)
class Stack:
    """A result of the body that is put into result `result` of the loop at `position`."""

    result: int
    position: Position


@dataclass(frozen=True)
class LoopShape:
    """A loop function read. Numbers count tensors alone.

    Attributes:
        step: the function that one iteration calls. trips: how many iterations there are. operands: for each tensor
        argument of `step`, what it is. stacks: the stacks that each result of `step` goes to. last: for each result of
        the loop that is a state at the end, which result of `step` that is; and the argument it begins with.
    """

    step: func.FuncOp
    trips: Dim
    operands: tuple[Source | State, ...]
    stacks: Mapping[int, Stack]
    last: Mapping[int, State]


def read_loop(function: func.FuncOp, functions: Mapping[str, Operation], shapes: ShapeAnalysis) -> LoopShape | None:
    """What `function` does, None where it holds no loop. Raises FuselineError (E0305) for a loop that is not of the
    form above."""
    loops = [op for op in function.body.block.ops if isinstance(op, scf.ForOp)] if function.body.blocks else []
    return _Reader(function, loops[0], functions, shapes).read() if loops else None


class _Reader:
    def __init__(
        self, function: func.FuncOp, loop: scf.ForOp, functions: Mapping[str, Operation], shapes: ShapeAnalysis
    ) -> None:
        self.function, self.loop, self.functions, self.shapes = function, loop, functions, shapes
        self.body = loop.body.block
        self.counter: SSAValue = self.body.args[0]
        self.carried: list[SSAValue] = list(self.body.args[1:])
        tensors = [argument for argument in function.body.block.args if isinstance(argument.type, TensorType)]
        self.arguments: dict[SSAValue, int] = {argument: number for number, argument in enumerate(tensors)}
        self.call = self._only(func.CallOp)
        self.yielded = list(self._only(scf.YieldOp).operands)

    def read(self) -> LoopShape:
        if self.shapes.index(self.loop.lb) != 0 or self.shapes.index(self.loop.step) != 1:
            raise self._error("does not count from 0 in steps of 1")
        step = self.functions.get(self.call.callee.root_reference.data)
        if not isinstance(step, func.FuncOp) or not step.body.blocks:
            raise self._error("calls no function of the module")
        results = self._results()
        states = {
            number: state
            for number, value in enumerate(self.yielded)
            if (state := self._state(number, value)) is not None
        }
        stacks: dict[int, Stack] = {}
        for number, value in enumerate(self.yielded):
            if number not in states:
                self._stack(number, value, results, stacks)
        operands = [self._operand(value, states) for value in self.call.arguments if isinstance(value.type, TensorType)]
        last = {results[number]: state for number, state in states.items() if number in results}
        return LoopShape(step, self.shapes.index(self.loop.ub), tuple(operands), stacks, last)

    def _results(self) -> dict[int, int]:
        """For each carried value, which result of the loop function it is."""
        returned = self.function.body.block.last_op
        assert returned is not None
        places: dict[int, int] = {}
        for place, value in enumerate(returned.operands):
            if not isinstance(value, OpResult) or value.op is not self.loop or value.index in places:
                raise self._error("returns something else than each of its results at most once")
            places[value.index] = place
        return places

    def _state(self, number: int, value: SSAValue) -> State | None:
        """The state that carried value `number` is; None where it is a stack."""
        if not isinstance(value, OpResult) or value.op is not self.call:
            return None
        initial = self.arguments.get(self.loop.iter_args[number])
        if initial is None:
            raise self._error("a state does not begin with an argument")
        return State(value.index, initial)

    def _stack(self, number: int, value: SSAValue, results: Mapping[int, int], stacks: dict[int, Stack]) -> None:
        """The insertions that make `value` out of carried value `number`."""
        while value is not self.carried[number]:
            if not isinstance(value, OpResult) or not isinstance(value.op, tensor.InsertSliceOp):
                raise self._error("a carried value is neither a result of its body nor a stack of such")
            op = value.op
            if (
                not isinstance(op.source, OpResult)
                or op.source.op is not self.call
                or op.source.index in stacks
                or number not in results
            ):
                raise self._error("a stack takes something else than each result of the body at most once")
            stacks[op.source.index] = Stack(
                results[number], self._position(op, self.shapes.dims(self.loop.iter_args[number]))
            )
            value = op.dest

    def _operand(self, value: SSAValue, states: Mapping[int, State]) -> Source | State:
        if value in self.arguments:
            return Source(self.arguments[value], Position())
        if value in self.carried and (state := states.get(self.carried.index(value))) is not None:
            return state
        if (
            isinstance(value, OpResult)
            and isinstance(value.op, tensor.ExtractSliceOp)
            and value.op.source in self.arguments
        ):
            return Source(self.arguments[value.op.source], self._position(value.op, self.shapes.dims(value.op.source)))
        raise self._error("its body reads something else than arguments, slices of them and states")

    def _position(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, dims: Sequence[Dim]) -> Position:
        """Where a slice of a tensor of `dims` begins; it must be contiguous."""
        sizes = self.shapes.mixed(op.static_sizes.get_values(), op.sizes)
        moving = [axis for axis, size in enumerate(sizes) if size != 1]
        if any(stride != 1 for stride in op.static_strides.get_values()) or any(
            sizes[axis] != dims[axis] for axis in range(*_tail(moving, dims))
        ):
            raise self._error("a slice does not lie in one piece")
        rest = iter(op.offsets)
        first: Dim = 0
        stride: Dim = 0
        for axis, offset in enumerate(op.static_offsets.get_values()):
            start, rate = self._linear(next(rest)) if offset == DYNAMIC_INDEX else (offset, 0)
            row = d.product(dims[axis + 1 :])
            first, stride = d.add(first, d.mul(start, row)), d.add(stride, d.mul(row, rate))
        return Position(first, stride)

    def _linear(self, value: SSAValue) -> tuple[Dim, int]:
        """An index value as `start + rate * iteration`."""
        if value is self.counter:
            return 0, 1
        if isinstance(value, OpResult) and isinstance(value.op, arith.AddiOp | arith.SubiOp):
            (left, left_rate), (right, right_rate) = (self._linear(operand) for operand in value.op.operands)
            if isinstance(value.op, arith.AddiOp):
                return d.add(left, right), left_rate + right_rate
            return d.sub(left, right), left_rate - right_rate
        return self.shapes.index(value), 0

    def _only(self, kind: type[OpT]) -> OpT:
        found = [op for op in self.body.ops if isinstance(op, kind)]
        if len(found) != 1:
            raise self._error(f"its body has {len(found)} {kind.name}")
        return found[0]

    def _error(self, what: str) -> FuselineError:
        return FuselineError("E0305", f"@{self.function.sym_name.data}: {what}", node=node_names(self.loop))


def _tail(moving: Sequence[int], dims: Sequence[Dim]) -> tuple[int, int]:
    """The axes behind the first along which a slice has several elements: a slice in one piece has all of them."""
    return (moving[0] + 1, len(dims)) if moving else (0, 0)
