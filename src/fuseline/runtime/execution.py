"""A program for one assignment of sizes: the native command table, its bindings and sizes, all addresses known.

What moves from run to run (the caller's inputs and outputs) is patched by the scheduler from the table's segment words.
"""

from __future__ import annotations

import ctypes
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.runtime import abi, host
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.memory import Bytes, CodePages, address_of, aligned_empty, reserve
from fuseline.runtime.program import Command, HostCall, HostTensor, Place, Program
from fuseline.runtime.sizes import SizeEvaluator

Array = NDArray[Any]
Shapes = tuple[tuple[int, ...], ...]
NativeRun = Callable[[int, int], None]


@dataclass(frozen=True)
class LoadedCode:
    """An image ready to run, its constants (64-byte aligned byte arrays), and the scheduler's run entry."""

    pages: CodePages
    constants: tuple[Bytes, ...]
    run: NativeRun


def native_run(pages: CodePages, offset: int) -> NativeRun:
    """The scheduler's run entry as a Python callable; it releases the interpreter lock."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(pages.base + offset)


@dataclass(frozen=True, slots=True)
class Share:
    """How the grid of one command is cut: see `fuseline.runtime.abi`."""

    participants: int
    first: int
    barrier: bool


def share_grids(costs: Sequence[tuple[int, int, int, bool]], threads: int, split_above_ns: int) -> list[Share]:
    """Decide for each command `(workgroups, cost_ns, max_threads, barrier)` which threads take part.

    A wave (the commands from one barrier to the next) that costs less than `split_above_ns` runs on thread 0, and between two such waves
    the barrier is dropped: program order on that thread does the same. In other waves each grid starts on the thread after the last one
    that got an odd share, so that small grids spread.
    """
    shares: list[Share] = []
    was_alone = True
    for wave in _waves(costs):
        alone = sum(cost for _, cost, _, _ in wave) < split_above_ns
        barrier = wave[0][3] and not (alone and was_alone)
        shares += _share_wave(wave, 1 if alone else threads, threads, barrier)
        was_alone = alone
    return shares


def _waves(costs: Sequence[tuple[int, int, int, bool]]) -> Iterator[Sequence[tuple[int, int, int, bool]]]:
    starts = [i for i, (_, _, _, barrier) in enumerate(costs) if barrier and i] if costs else []
    for start, end in pairwise([0, *starts, len(costs)]):
        if start < end:
            yield costs[start:end]


def _share_wave(wave: Sequence[tuple[int, int, int, bool]], most: int, threads: int, barrier: bool) -> Iterator[Share]:
    first = 0
    for row, (workgroups, _, limit, _) in enumerate(wave):
        participants = max(1, min(most, workgroups, limit or most))
        yield Share(participants, first, barrier and row == 0)
        if most > 1:
            first = (first + (workgroups if participants == threads else participants)) % threads


class Workspace:
    """Memory that one run at a time may use: the arena, the scratch of every thread, and the tables bound to them."""

    def __init__(self) -> None:
        self.arena: Bytes = reserve(0)
        self.scratch: Bytes = reserve(0)
        self.tables: OrderedDict[Shapes, Table] = OrderedDict()

    def grow(self, arena_bytes: int, scratch_bytes: int) -> None:
        """Have at least this much; bound tables are forgotten when memory moves."""
        if arena_bytes > len(self.arena):
            self.arena = reserve(arena_bytes)
            self.tables.clear()
        if scratch_bytes > len(self.scratch):
            self.scratch = reserve(scratch_bytes)
            self.tables.clear()


class Table:
    """The command table of `program` under `values`, bound to a workspace."""

    def __init__(self, program: Program, code: LoadedCode, workspace: Workspace, values: Mapping[str, int], threads: int) -> None:
        evaluate = SizeEvaluator(values)
        commands = [step for step in program.steps if isinstance(step, Command)]
        costs = [(evaluate(c.workgroups), evaluate(c.cost_ns), c.max_threads, c.barrier) for c in commands]
        self.threads = 1 if sum(cost for _, cost, _, _ in costs) < program.serial_below_ns else threads
        self._evaluate, self._workspace, self._code = evaluate, workspace, code
        stride = _aligned(program.scratch_bytes)
        workspace.grow(evaluate(program.arena_bytes), stride * self.threads)
        self._inputs = len(program.inputs)
        self.output_specs = [(tuple(evaluate(d) for d in spec.dims), dtype_named(spec.dtype)) for spec in program.outputs]
        self._lay_out(commands, costs, share_grids(costs, self.threads, program.split_above_ns), len(program.inputs) + len(program.outputs), stride)
        self.ranges = _ranges(program)
        self._native_only = len(self.ranges) == 1 and not isinstance(self.ranges[0], HostCall)

    def _lay_out(self, commands: list[Command], costs: list[tuple[int, int, int, bool]], shares: list[Share], segments: int, stride: int) -> None:
        """One block: context, commands, bindings, sizes, patches, segments."""
        bindings = [place for c in commands for place in c.bindings]
        sizes = [self._evaluate(size) for c in commands for size in c.sizes]
        moving = [i for i, place in enumerate(bindings) if place.segment in ("input", "output")]
        starts = np.cumsum([0, abi.CONTEXT_BYTES, abi.COMMAND_BYTES * len(commands), 8 * len(bindings), 8 * len(sizes), abi.PATCH_BYTES * len(moving)])
        at_commands, at_bindings, at_sizes, at_patches, at_segments = (int(start) for start in starts[1:])
        self._block = aligned_empty((at_segments + 8 * segments,), np.dtype(np.uint8))
        self._block[:] = 0
        self.address = base = address_of(self._block)
        buffer = self._block.data
        struct.pack_into(f"<{len(bindings)}q", buffer, at_bindings, *(self._fixed(place) for place in bindings))
        struct.pack_into(f"<{len(sizes)}q", buffer, at_sizes, *sizes)
        for row, i in enumerate(moving):
            patch = base + at_bindings + 8 * i, self._segment(bindings[i]), self._evaluate(bindings[i].offset)
            struct.pack_into("<3q", buffer, at_patches + row * abi.PATCH_BYTES, *patch)
        binding, size = base + at_bindings, base + at_sizes
        for row, (command, cost, share) in enumerate(zip(commands, costs, shares, strict=True)):
            quotient, remainder = divmod(max(cost[0], 0), share.participants)
            grid = cost[0], quotient, remainder, int(share.barrier), share.participants, share.first, 0
            struct.pack_into(
                "<6q4i", buffer, at_commands + row * abi.COMMAND_BYTES, self._code.pages.base + command.kernel, binding, size, *grid
            )
            binding, size = binding + 8 * len(command.bindings), size + 8 * len(command.sizes)
        scratch = address_of(self._workspace.scratch), stride, 0
        struct.pack_into("<10q", buffer, 0, base + at_commands, 0, len(commands), self.threads, *scratch, base + at_patches, len(moving), base + at_segments)
        self._context, self._pack_segments = buffer, struct.Struct(f"<{segments}q").pack_into
        self._copies: dict[int, Array] = {}
        self._at_segments = at_segments

    def _segment(self, place: Place) -> int:
        return place.index if place.segment == "input" else self._inputs + place.index

    def _fixed(self, place: Place) -> int:
        if place.segment == "arena":
            return address_of(self._workspace.arena) + self._evaluate(place.offset)
        if place.segment == "constant":
            return address_of(self._code.constants[place.index]) + self._evaluate(place.offset)
        return 0

    def run(self, launch: Callable[[int], None], inputs: Sequence[Array]) -> list[Array]:
        """Run the program on arrays that fit it and answer fresh outputs; `launch` hands the native context to the scheduler."""
        ready = [self._in_place(i, array) for i, array in enumerate(inputs)]
        outputs = [aligned_empty(shape, dtype) for shape, dtype in self.output_specs]
        self._pack_segments(self._context, self._at_segments, *map(address_of, ready), *map(address_of, outputs))
        if self._native_only:
            launch(self.address)
            return outputs
        for item in self.ranges:
            if isinstance(item, HostCall):
                self._call_host(item, ready, outputs)
            else:
                struct.pack_into("<2q", self._context, abi.CONTEXT_FIRST, *item)
                launch(self.address)
        return outputs

    def _in_place(self, index: int, array: Array) -> Array:
        """The caller's array itself where a kernel can read it, else a copy in memory that this table keeps for that."""
        if not address_of(array) % abi.ALIGNMENT and array.flags.c_contiguous:
            return array
        copy = self._copies.get(index)
        if copy is None:
            copy = self._copies[index] = aligned_empty(array.shape, array.dtype)
        np.copyto(copy, array)
        return copy

    def _call_host(self, call: HostCall, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        results = host.executor(call.executor)(call.node, [t and self._view(t, inputs, outputs) for t in call.inputs])
        for tensor, result in zip(call.outputs, results, strict=False):
            if tensor is not None:
                self._store(call, self._view(tensor, inputs, outputs), result)

    def _store(self, call: HostCall, target: Array, result: Array) -> None:
        if np.shape(result) != target.shape:
            raise FuselineError("E0107", f"host operator answered shape {np.shape(result)}, planned was {target.shape}", node=call.label)
        try:
            np.copyto(target, result, casting="same_kind")
        except TypeError as error:
            raise FuselineError("E0107", f"host operator answered dtype {np.asarray(result).dtype}, planned was {target.dtype}", node=call.label) from error

    def _view(self, tensor: HostTensor, inputs: Sequence[Array], outputs: Sequence[Array]) -> Array:
        place = tensor.place
        memory: Array = {"arena": lambda: self._workspace.arena, "constant": lambda: self._code.constants[place.index]}.get(
            place.segment, lambda: (inputs if place.segment == "input" else outputs)[place.index]
        )()
        shape = tuple(self._evaluate(d) for d in tensor.dims)
        return np.ndarray(shape, dtype_named(tensor.dtype), memory.data, self._evaluate(place.offset))


def _aligned(count: int) -> int:
    return -(-count // abi.LINE_BYTES) * abi.LINE_BYTES


def _ranges(program: Program) -> list[tuple[int, int] | HostCall]:
    """The steps as ranges of consecutive native commands with the host calls between them."""
    out: list[tuple[int, int] | HostCall] = []
    command = first = 0
    for step in program.steps:
        if isinstance(step, Command):
            command += 1
            continue
        out += [(first, command), step] if command > first else [step]
        first = command
    return [*out, (first, command)] if command > first or not out else out
