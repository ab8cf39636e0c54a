"""Counted loops of a model as loops of the program: a function for one iteration, and a function that calls it again
and again.

    func @step.<Op>.<n>(rows, wholes, states, sizes) -> (results)
            what one iteration computes; passes see it like @main
    func @loop.<Op>.<n>(tensors with all rows, wholes, initial states, sizes)  scf.for: cuts rows, calls it, stacks all
    %stacks, %states = func.call @loop.<Op>.<n>(..)                            in @main

`fuseline.passes.schedule.read_loops` reads that form back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, DictionaryAttr, StringAttr, i64
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Emitter, tensor_type
from fuseline.ir.dim import Dim, Symbol, lower_bound, symbol, symbols
from fuseline.ir.dim_json import to_name
from fuseline.ir.fast import attributes

DType = np.dtype[Any]


@dataclass(frozen=True)
class Rows:
    """A tensor `[trips, ..]` of which iteration `t` reads row `t`, or row `trips - 1 - t`."""

    tensor: Tensor
    backwards: bool = False


@dataclass(frozen=True)
class Stack:
    """What collects a row per iteration: `[trips, *inner]`, each of whose rows may be made of several results."""

    inner: tuple[Dim, ...]
    dtype: DType


@dataclass(frozen=True)
class StackRow:
    """Where a result goes: into the row of its iteration (counted from the end with `backwards`) of stack `stack`, at
    `at` of the first axes."""

    stack: int
    at: tuple[int, ...] = ()
    backwards: bool = False


@dataclass(frozen=True)
class StepResult:
    """One result of an iteration: the state number `state` of the next one, a row of a stack, or both."""

    tensor: Tensor
    state: int | None = None
    row: StackRow | None = None


@dataclass(frozen=True)
class StepInputs:
    """What an iteration works on: a row of each of the loop's `Rows`, tensors it reads as a whole, and the states so
    far."""

    rows: Sequence[Tensor]
    wholes: Sequence[Tensor]
    states: Sequence[Tensor]


StepBody = Callable[[OnnxNode, StepInputs], Sequence[StepResult]]


@dataclass(frozen=True)
class CountedLoop:
    """A loop of `trips` iterations over `rows` and `wholes`, from `states` on. Constants among `wholes` are constants
    in the step, too."""

    trips: Dim
    rows: Sequence[Rows]
    wholes: Sequence[Tensor]
    states: Sequence[Tensor]
    stacks: Sequence[Stack]

    def emit(self, node: OnnxNode, body: StepBody) -> tuple[list[Tensor], list[Tensor]]:
        """The stacks, and the states after the last iteration.

        Sizes too small for an iteration are refused when they are fed. Raises NoNativeLowering where the caller asked
        for sizes that make no iteration, a state changes its shape, or something inside runs on the host.
        """
        assumed = node.program.assumed
        if (lower_bound(self.trips) or 0) < 1 and all(
            item.lo < 1 and item.name not in assumed for item in symbols(self.trips)
        ):
            raise NoNativeLowering("empty-loop", f"{self.trips} iterations may be none")
        return _Writer(self, node).write(body)


class _Writer:
    def __init__(self, loop: CountedLoop, node: OnnxNode) -> None:
        self.loop, self.node = loop, node
        self.passed = [t for t in loop.wholes if not t.is_constant]
        self.outer = [*(rows.tensor for rows in loop.rows), *self.passed, *loop.states]
        self.sizes = self._sizes()
        self.name = f"{node.op_type}.{len(node.importer.functions)}"

    def _sizes(self) -> list[Symbol]:
        """Every symbol that sizes in the loop depend on."""
        dims = (
            [dim for t in self.outer for dim in t.dims]
            + [dim for stack in self.loop.stacks for dim in stack.inner]
            + [self.loop.trips]
        )
        return sorted({item for dim in dims for item in symbols(dim)}, key=lambda item: item.name)

    def write(self, body: StepBody) -> tuple[list[Tensor], list[Tensor]]:
        step, results = self._step(body)
        function = self._function(step, results)
        importer = self.node.importer
        for made in (step, function):
            importer.functions.append(made)
            self.node.program.on_rollback(lambda made=made: importer.functions.remove(made))
        return self._call(function)

    def _call(self, function: FuncOp) -> tuple[list[Tensor], list[Tensor]]:
        loop, node = self.loop, self.node
        answers = [((loop.trips, *stack.inner), stack.dtype) for stack in loop.stacks] + [
            (state.dims, state.dtype) for state in loop.states
        ]
        operands = [*(node.ssa(t) for t in self.outer), *(node.index(_size(item)) for item in self.sizes)]
        call = node.emit.add(CallOp(function.sym_name.data, operands, list(function.function_type.outputs)))
        call.attributes["fuseline.dims"] = ArrayAttr(
            [ArrayAttr([StringAttr(to_name(dim)) for dim in dims]) for dims, _ in answers]
        )
        tensors = [result(value, dims, dtype) for value, (dims, dtype) in zip(call.res, answers, strict=True)]
        return tensors[: len(loop.stacks)], tensors[len(loop.stacks) :]

    def _step(self, body: StepBody) -> tuple[FuncOp, Sequence[StepResult]]:
        """The function of one iteration and what it answers."""
        loop, calls = self.loop, len(self.node.importer.host.declarations)
        rows = [replace(rows.tensor, dims=rows.tensor.dims[1:]) for rows in loop.rows]
        frame = _Frame(self.node, [*rows, *self.passed, *loop.states], self.sizes)
        cut = iter(frame.tensors)
        inner = [next(cut) for _ in rows], [_inside(t, cut) for t in loop.wholes], list(cut)
        results = body(replace(self.node, program=frame.program, inputs=[]), StepInputs(*inner))
        self._check(results, calls)
        return frame.finish(
            f"step.{self.name}", [frame.program.ssa(made.tensor, frame.emit) for made in results]
        ), results

    def _check(self, results: Sequence[StepResult], calls: int) -> None:
        if len(self.node.importer.host.declarations) > calls:
            raise NoNativeLowering("host-loop", "something inside runs on the host")
        for made in results:
            wanted = self.loop.states[made.state] if made.state is not None else None
            if wanted is not None and (wanted.dims != made.tensor.dims or wanted.dtype != made.tensor.dtype):
                raise NoNativeLowering("changing-state", f"a state of shape {wanted.dims} becomes {made.tensor.dims}")

    def _function(self, step: FuncOp, results: Sequence[StepResult]) -> FuncOp:
        """The function that calls `step` again and again."""
        frame = _Frame(self.node, self.outer, self.sizes)
        emit, loop = frame.emit, self.loop
        bounds = emit.index(0), frame.program.index(loop.trips, emit), emit.index(1)
        empties = [frame.program.empty((loop.trips, *stack.inner), stack.dtype, emit) for stack in loop.stacks]
        carried = [*empties, *(frame.value(t) for t in frame.tensors[len(frame.tensors) - len(loop.states) :])]
        last = emit.add(arith.SubiOp(bounds[1], bounds[2])).result
        block = Block(arg_types=[attributes.INDEX, *(value.type for value in carried)])
        self._iteration(
            _Iteration(Emitter.at_end(block, self.node.provenance), frame, block.args[0], last),
            step,
            results,
            list(block.args[1:]),
        )
        made = emit.add(scf.ForOp(*bounds, carried, Region(block)))
        return frame.finish(f"loop.{self.name}", list(made.results))

    def _iteration(
        self, turn: _Iteration, step: FuncOp, results: Sequence[StepResult], carried: list[SSAValue]
    ) -> None:
        """The body of the loop: rows, the call, stacks, the states of the next iteration."""
        loop, frame, stacks = self.loop, turn.frame, len(self.loop.stacks)
        rows = [turn.row(t, rows.backwards) for t, rows in zip(frame.tensors, loop.rows, strict=False)]
        wholes = [frame.value(t) for t in frame.tensors[len(rows) : len(rows) + len(self.passed)]]
        call = turn.emit.add(
            CallOp(
                step.sym_name.data, [*rows, *wholes, *carried[stacks:], *frame.sizes], list(step.function_type.outputs)
            )
        )
        for made, value in zip(results, call.res, strict=True):
            if made.row is not None:
                carried[made.row.stack] = turn.stacked(value, made, carried[made.row.stack])
            if made.state is not None:
                carried[stacks + made.state] = value
        turn.emit.add(scf.YieldOp(*carried))


class _Frame:
    """A function under construction: an argument for each of some tensors, then one for each size."""

    def __init__(self, node: OnnxNode, tensors: Sequence[Tensor], sizes: Sequence[Symbol]) -> None:
        self.program = Program(node.program.ctx)
        self.emit = Emitter.at_end(self.program.block, node.provenance)
        block, self._attributes = self.program.block, list[DictionaryAttr]()
        self.tensors: list[Tensor] = []
        for t in tensors:
            argument = block.insert_arg(tensor_type(mlir_element(t.dtype), t.dims), len(block.args))
            self.tensors.append(Tensor(t.dtype, t.dims, value=argument))
            names = ArrayAttr([StringAttr(to_name(dim)) for dim in t.dims])
            self._attributes.append(
                DictionaryAttr({"fuseline.dims": names} if any(not isinstance(dim, int) for dim in t.dims) else {})
            )
        self.sizes: list[SSAValue] = []
        for item in sizes:
            self.sizes.append(block.insert_arg(attributes.INDEX, len(block.args)))
            self.program.bind_size(item, self.sizes[-1])
            self._attributes.append(DictionaryAttr({"fuseline.name": StringAttr(item.name)}))

    def value(self, t: Tensor) -> SSAValue:
        """`t` as an SSA value."""
        return self.program.ssa(t, self.emit)

    def finish(self, name: str, results: Sequence[SSAValue]) -> FuncOp:
        """The function, which returns `results`."""
        self.emit.add(ReturnOp(*results))
        block = self.program.block
        types = [argument.type for argument in block.args], [value.type for value in results]
        function = FuncOp(name, types, Region(block), "private", arg_attrs=ArrayAttr(self._attributes))
        function.location = self.emit.location
        return function


@dataclass(frozen=True)
class _Iteration:
    """The inside of a loop of `frame` under construction; `last` is the number of the last iteration."""

    emit: Emitter
    frame: _Frame
    counter: SSAValue
    last: SSAValue

    def _number(self, backwards: bool) -> SSAValue:
        return self.emit.add(arith.SubiOp(self.last, self.counter)).result if backwards else self.counter

    def row(self, t: Tensor, backwards: bool) -> SSAValue:
        """The row of `t` that this iteration reads."""
        operands, properties = self._box(backwards, (), t.dims[1:])
        kind = tensor_type(mlir_element(t.dtype), t.dims[1:])
        op = tensor.ExtractSliceOp.build(
            operands=[self.frame.value(t), *operands], result_types=[kind], properties=properties
        )
        return self.emit.add(op).result

    def stacked(self, value: SSAValue, made: StepResult, into: SSAValue) -> SSAValue:
        """`into` with a result of the step in its place."""
        assert made.row is not None
        operands, properties = self._box(made.row.backwards, made.row.at, made.tensor.dims)
        return self.emit.add(
            tensor.InsertSliceOp.build(
                operands=[value, into, *operands], result_types=[into.type], properties=properties
            )
        ).result

    def _box(
        self, backwards: bool, at: Sequence[int], dims: Sequence[Dim]
    ) -> tuple[list[list[SSAValue]], dict[str, Attribute]]:
        """Operands and properties of the slice at this iteration's row, then `at`, then all of `dims`."""
        sizes: list[Dim] = [1, *(1 for _ in at), *dims]
        known = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
        offsets = [DYNAMIC_INDEX, *at, *(0 for _ in dims)]
        dynamic = [self.frame.program.index(size, self.frame.emit) for size in sizes if not isinstance(size, int)]
        numbers = {"static_offsets": offsets, "static_sizes": known, "static_strides": [1] * len(sizes)}
        properties: dict[str, Attribute] = {
            name: DenseArrayBase.from_list(i64, values) for name, values in numbers.items()
        }
        return [[self._number(backwards)], dynamic, []], properties


def _inside(t: Tensor, passed: Iterator[Tensor]) -> Tensor:
    """A tensor that the step reads as a whole: an argument, or the constant itself."""
    return Tensor(t.dtype, t.dims, array=t.array, name=t.name) if t.is_constant else next(passed)


def _size(item: Symbol) -> Dim:
    return symbol(item.name, item.lo, item.hi)
