"""The scratch of a blocked kernel: buffers for what lies between sub-kernels, and for what goes from one block of a
streamed loop to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.blocked.plan import StreamedSubKernels
from fuseline.targets.cpu.families.blocked.streaming import Carried
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


@dataclass(eq=False)
class Buffers:
    """Scratch buffers by value; one whose value is dead serves a later one."""

    kernel: KernelBuilder
    held: dict[SSAValue, MemRef] = field(default_factory=dict[SSAValue, MemRef])
    free: list[MemRef] = field(default_factory=list[MemRef])

    def take(self, value: SSAValue, elements: int) -> MemRef:
        """A buffer for `value`."""
        dtype = dtype_of(value.type)
        fitting = [
            memory
            for memory in self.free
            if memory.dtype == dtype and isinstance(memory.extent, int) and memory.extent >= elements
        ]
        memory = min(fitting, key=_extent, default=None)
        if memory is None:
            memory = self.kernel.scratch(dtype, elements)
        else:
            self.free.remove(memory)
        self.held[value] = memory
        return memory

    def release(self, value: SSAValue) -> None:
        """Nobody reads `value` any more."""
        memory = self.held.pop(value, None)
        if memory is not None:
            self.free.append(memory)


def _extent(memory: MemRef) -> int:
    assert isinstance(memory.extent, int)
    return memory.extent


@dataclass(frozen=True, slots=True)
class _State:
    """A carried value's buffer before a block, and after it."""

    carried: Carried
    memory: MemRef
    following: MemRef


@dataclass(eq=False)
class States:
    """What goes from one block of a streamed loop to the next."""

    streamed: StreamedSubKernels | None = None
    buffers: DispatchBuffers | None = None
    states: tuple[_State, ...] = ()

    @classmethod
    def taken(cls, streamed: StreamedSubKernels, scratch: Buffers, buffers: DispatchBuffers) -> States:
        """Buffers for all of them."""
        states: list[_State] = []
        for carried, elements in streamed.carried:
            memory = scratch.take(carried.state, elements)
            states.append(
                _State(carried, memory, memory if carried.in_place else scratch.take(carried.following, elements))
            )
        return cls(streamed, buffers, tuple(states))

    def place_of(self, value: SSAValue) -> MemRef | None:
        """Where a block puts a value that the next one wants, None for any other value."""
        return next((state.following for state in self.states if state.carried.following is value), None)

    def begin(self) -> None:
        """What the first block finds; or, where there is none, what comes after the last."""
        assert self.streamed is not None and self.buffers is not None
        kernel = self.buffers.kernel
        count = self.buffers.operand(self.streamed.tile.count)
        for state in self.states:
            carried, dtype = state.carried, state.memory.dtype
            start: Value = kernel.const(carried.start, dtype)
            if not isinstance(count, int):
                start = kernel.select(kernel.compare("eq", count, 0), kernel.const(carried.unmoved, dtype), start)
            self._fill(state.memory, start)

    def _fill(self, memory: MemRef, value: Value) -> None:
        self._for_each_vector(memory, lambda kernel, at, lanes: kernel.store(memory, at, kernel.splat(value, lanes)))

    def hand_on(self) -> None:
        """Put what a block made where the next one looks for it."""
        for state in self.states:
            if not state.carried.in_place:
                self._copy(state.following, state.memory)

    def _copy(self, source: MemRef, target: MemRef) -> None:
        self._for_each_vector(
            target, lambda kernel, at, lanes: kernel.store(target, at, kernel.load(source, at, lanes))
        )

    def _for_each_vector(self, memory: MemRef, visit: Callable[[KernelBuilder, Operand, int], None]) -> None:
        """`visit` all elements in vectors, then one by one."""
        assert self.buffers is not None and isinstance(memory.extent, int)
        kernel, lanes = self.buffers.kernel, self.buffers.kernel.lanes_of(memory.dtype)
        whole = memory.extent // lanes * lanes
        kernel.loop(0, whole, lanes, lambda at: visit(kernel, at, lanes))
        kernel.loop(whole, memory.extent, 1, lambda at: visit(kernel, at, 1))
