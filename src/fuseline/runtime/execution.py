"""A program bound to memory for one assignment of sizes, ready to run again and again."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import BufferRef, Operand, TensorSpec
from fuseline.runtime import abi
from fuseline.runtime.bounds import Bounds
from fuseline.runtime.command_table import Addresses, CommandTable, ThreadPlan
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.memory import Bytes, CodePages, address_of, aligned_empty, no_memory, reserve
from fuseline.runtime.poison import poison, poison_array
from fuseline.runtime.program import Command, HostCall, Loop, Poison, Program
from fuseline.runtime.sharing import Shares, commands_by_row, cost_ns, rows_of, share_grids
from fuseline.runtime.signatures import Signature
from fuseline.runtime.sizes import SizeEvaluator
from fuseline.runtime.values import Values, call_host, keep_answers

Array = NDArray[Any]
Shapes = tuple[tuple[int, ...], ...]
NativeRun = Callable[[int, int], None]
Launch = Callable[[int], None]
"""Hands the address of a run context to the scheduler and answers when the run has ended."""

_MISALIGNED = abi.ALIGNMENT - 1


class LoadedCode(NamedTuple):
    """An image ready to run, its constants (64-byte aligned byte arrays), the scheduler's run entry, and what its
    kernels take."""

    pages: CodePages
    constants: tuple[Bytes, ...]
    run: NativeRun
    kernels: Mapping[int, Sequence[Signature]] | None = None


def native_run(pages: CodePages, offset: int) -> NativeRun:
    """The scheduler's run entry as a Python callable; it releases the interpreter lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(pages.base + offset)


class Runnable(Protocol):
    """A program bound to memory."""

    threads: int

    def run(self, launch: Launch, inputs: Sequence[Array]) -> list[Any]:
        """Run on arrays of the right shapes and dtypes; answers fresh outputs: arrays, or values that were boxed."""
        ...


class Workspace:
    """Memory that one run at a time may use: the arena, scratch of every thread that lies elsewhere, and the executions
    bound to them, by shapes and threads. `used`: when a run with it last ended (`time.monotonic`, seconds)."""

    def __init__(self) -> None:
        self.arena: Bytes = reserve(0)
        self.scratch: Bytes = reserve(0)
        self.executions: OrderedDict[tuple[Shapes, int], Runnable] = OrderedDict()
        self.used = 0.0

    def sharing_memory(self) -> Workspace:
        """Another workspace on the same memory, without executions."""
        other = Workspace()
        other.arena, other.scratch = self.arena, self.scratch
        return other

    def grow(self, arena_bytes: int, scratch_bytes: int = 0, *, keep: bool = False) -> None:
        """Have at least this much; executions are forgotten when memory moves. `keep`: the arena's contents move with
        it."""
        if arena_bytes > len(self.arena):
            self.executions.clear()
            old, self.arena = self.arena, reserve(arena_bytes)
            if keep:
                self.arena[: len(old)] = old
        if scratch_bytes > len(self.scratch):
            self.executions.clear()
            self.scratch = reserve(scratch_bytes)


class TableContents(NamedTuple):
    """What a command table is written from, beside its steps."""

    shares: Shares
    addresses: Addresses
    plan: ThreadPlan


class Execution:
    """`program` under `values`, in a workspace. `threads` is how many a run uses: one where the program is too small to
    share.

    Args:
        stage: the program is a part of a larger one: its outputs are given to `perform`, and the arena holds what
        earlier parts left. whole: the program writes its outputs up to their ends; without that it is wrong.
    """

    def __init__(
        self,
        program: Program,
        code: LoadedCode,
        workspace: Workspace,
        values: Mapping[str, int],
        threads: int,
        *,
        stage: bool = False,
        whole: bool = True,
    ) -> None:
        self._evaluate = evaluate = SizeEvaluator(values)
        self._code, self._inputs, self._input_alignment = code, len(program.inputs), program.input_alignment
        self._bounds = Bounds(program, code.kernels, [len(constant) for constant in code.constants], values)
        self._bounds.check(program, whole=whole and not stage)
        native = [step for step in program.steps if isinstance(step, Command | Loop)]
        self.threads = 1 if sum(cost_ns(step, evaluate) for step in native) < program.serial_below_ns else threads
        stride = -(-program.scratch_bytes // abi.LINE_BYTES) * abi.LINE_BYTES
        in_arena = self.threads <= program.threads
        inside = in_arena and all(command.scratch is not None for command in commands_by_row(native) if command)
        workspace.grow(evaluate(program.arena_bytes), 0 if inside else stride * self.threads, keep=stage)
        self._arena, self._scratch = workspace.arena, workspace.scratch
        self._arena_at, self._constants_at = (
            address_of(workspace.arena),
            [address_of(constant) for constant in code.constants],
        )
        contents = TableContents(
            share_grids(native, self.threads, evaluate, program.split_above_ns),
            Addresses(self._address, self._segment, len(program.inputs) + len(program.outputs), in_arena),
            ThreadPlan(self.threads, address_of(workspace.scratch), stride),
        )
        self._bind(native, contents)
        self._outputs = [] if stage else [output_room(spec, evaluate) for spec in program.outputs]
        self._ranges = None if len(native) == len(program.steps) else ranges_of(program)
        self._rows = sum(1 for _ in rows_of(native))
        self._copies: dict[int, Array] = {}

    def _bind(self, steps: Sequence[Command | Loop], contents: TableContents) -> None:
        """Write the command table."""
        shares, addresses, plan = contents
        self._table = CommandTable(steps, shares, self._evaluate, addresses, self._code.pages.base, plan)

    def _set_range(self, first: int, last: int) -> None:
        """The next launch does rows `first` up to, not including, `last` of the program's."""
        self._table.set_range(first, last)

    def lies_in(self, workspace: Workspace) -> bool:
        """Whether the memory that this is bound to is still the workspace's."""
        return self._arena is workspace.arena and self._scratch is workspace.scratch

    def run(self, launch: Launch, inputs: Sequence[Array]) -> list[Array]:
        """Run on arrays of the right shapes and dtypes; answers fresh outputs."""
        addresses = self.input_addresses(inputs)
        outputs: list[Array] = []
        for shape, dtype, room in self._outputs:
            raw = np.empty(room, np.uint8)
            start = address_of(raw)
            shift = -start & _MISALIGNED
            outputs.append(np.ndarray(shape, dtype, raw, shift))
            addresses.append(start + shift)
        self._table.set_segments(*addresses)
        if self._ranges is None:
            launch(self._table.address)
        else:
            self._run_ranges(self._ranges, launch, Values(inputs, [*outputs], []))
        return outputs

    def perform(self, launch: Launch, addresses: Sequence[int], values: Values) -> None:
        """Run a part of a program on inputs at `addresses`; outputs that no step of the part touches may be missing."""
        if not self._rows and self._ranges is None:
            return  # nothing before a host call: a launch of no rows would wake the threads for it
        self._table.set_segments(*addresses, *(0 if array is None else address_of(array) for array in values.outputs))
        self._run_ranges(self._ranges if self._ranges is not None else [(0, self._rows)], launch, values)

    def input_addresses(self, inputs: Sequence[Array]) -> list[int]:
        """Where kernels read the inputs: in place, or in copies where they cannot."""
        addresses: list[int] = []
        misaligned = self._input_alignment - 1
        for array in inputs:
            address = address_of(array)
            if address & misaligned or not array.flags.c_contiguous:
                address = self._copied(len(addresses), array)
            addresses.append(address)
        return addresses

    def _copied(self, index: int, array: Array) -> int:
        """Address of a copy of an input that a kernel cannot read where it is, in memory kept for that."""
        copy = self._copies.get(index)
        if copy is None:
            copy = self._copies[index] = aligned_empty(array.shape, array.dtype)
        np.copyto(copy, array)
        return address_of(copy)

    # buffers ----------------------------------------------------------------------------------------------------------

    def _address(self, ref: BufferRef) -> int:
        segment, number, offset = ref
        return (self._arena_at if segment == "arena" else self._constants_at[number]) + self._evaluate(offset)

    def _segment(self, ref: BufferRef) -> int:
        return ref.number if ref.segment == "input" else self._inputs + ref.number

    # host calls -------------------------------------------------------------------------------------------------------

    def _run_ranges(
        self, ranges: Sequence[tuple[int, int] | HostCall | Poison], launch: Launch, values: Values
    ) -> None:
        for item in ranges:
            if isinstance(item, HostCall):
                keep_answers(item, self.call(item, values), values, partial(self.view, values))
                continue
            if isinstance(item, Poison):
                self._poison(item, values)
                continue
            self._set_range(*item)
            launch(self._table.address)

    def _poison(self, step: Poison, values: Values) -> None:
        poison(self._arena, [(self._evaluate(offset), self._evaluate(length)) for offset, length in step.live])
        poison(self._scratch)
        for output in values.outputs if step.begins else ():
            if output is not None:
                poison_array(output)

    def call(self, step: HostCall, values: Values) -> list[Any]:
        """What the host operator answers for the operands as they are now."""
        return call_host(step, values, partial(self.view, values), self._evaluate)

    def view(self, values: Values, tensor: Operand) -> Array:
        """The memory of a host call's operand or result as an array."""
        shape = tuple(self._evaluate(size) for size in tensor.dims)
        self._bounds.check_tensor(tensor, shape)
        return np.ndarray(
            shape, dtype_named(tensor.dtype), self._memory(tensor.buffer, values), self._evaluate(tensor.buffer.offset)
        )

    def _memory(self, ref: BufferRef, values: Values) -> Any:
        """The bytes of the segment that `ref` lies in."""
        if ref.segment == "arena":
            return self._arena.data
        if ref.segment == "constant":
            return self._code.constants[ref.number].data
        array = values.inputs[ref.number] if ref.segment == "input" else values.outputs[ref.number]
        assert array is not None
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def output_room(spec: TensorSpec, evaluate: SizeEvaluator) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and dtype of an output, and the bytes it takes with room for its alignment; raises FuselineError (E0405)
    beyond all memory, ValueError for negative sizes."""
    shape, element = tuple(evaluate(size) for size in spec.dims), dtype_named(spec.dtype)
    if min(shape, default=0) < 0:
        raise ValueError(f"output {spec.name} has the shape {shape}")
    room = prod(shape) * element.itemsize + abi.ALIGNMENT
    if room >= 1 << 62:
        raise no_memory(room)
    return shape, element, room


def ranges_of(program: Program) -> list[tuple[int, int] | HostCall | Poison]:
    """The steps as ranges of consecutive rows with what Python does between them."""
    out: list[tuple[int, int] | HostCall | Poison] = []
    row = first = 0
    for step in program.steps:
        if isinstance(step, Command | Loop):
            row += sum(1 for _ in rows_of([step]))
            continue
        out += [(first, row), step] if row > first else [step]
        first = row
    return [*out, (first, row)] if row > first else out
