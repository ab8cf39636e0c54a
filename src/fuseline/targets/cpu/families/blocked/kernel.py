"""The kernel of a blocked dispatch: a loop over blocks, one unit after the other inside, some of them in a loop of
their own."""

from __future__ import annotations

from xdsl.ir import BlockArgument, SSAValue

from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.blocked.buffers import Buffers, States
from fuseline.targets.cpu.families.blocked.entry import Sink
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan, PlannedUnit
from fuseline.targets.cpu.families.blocked.tiles import Tile
from fuseline.targets.cpu.kernel_ir.builder import Inlined, KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand


class BlockedKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: BlockedPlan, kernel: KernelBuilder) -> None:
        self.plan, self.kernel = plan, kernel
        self.frame = DispatchBuffers(kernel, plan.view)
        self.streamed, self.states = plan.streamed, States()
        self.bindings = self._bindings()

    def _bindings(self) -> list[dict[int, int | MemRef]]:
        """What the bindings of each unit are, every buffer made before the first block."""
        buffers, out = Buffers(self.kernel), list[dict[int, int | MemRef]]()
        for number, unit in enumerate(self.plan.units):
            if self.streamed is not None and number == self.streamed.first:
                self.states = States.taken(self.streamed, buffers, self.frame)
            found: dict[int, int | MemRef] = {
                i: self._argument(value, buffers) for i, value in enumerate(unit.arguments)
            }
            for i, sink in enumerate(unit.sinks):
                found[len(unit.arguments) + i] = self._sink(sink, buffers)
            first = len(unit.arguments) + len(unit.sinks)
            found.update({first + i: unit.extra + i for i in range(len(unit.plan.extra_constants))})
            out.append(found)
            for value, last in self.plan.last_reader.items():
                if last == number:
                    buffers.release(value)
        return out

    def _argument(self, value: SSAValue, buffers: Buffers) -> int | MemRef:
        if isinstance(value, BlockArgument):
            return self.plan.view.tensors.index(value)
        held = buffers.held.get(value)
        return held if held is not None else self._stored(value)

    def _sink(self, sink: Sink, buffers: Buffers) -> int | MemRef:
        if sink.position is None and (state := self.states.place_of(sink.value)) is not None:
            return state
        if sink.position is None:
            return buffers.take(sink.value, self.plan.buffers[sink.value])
        return len(self.plan.view.tensors) + sink.position

    def _stored(self, value: SSAValue) -> int:
        """The result that holds a value."""
        sink = next(
            sink for unit in self.plan.units for sink in unit.sinks if sink.value is value and sink.position is not None
        )
        assert sink.position is not None
        return len(self.plan.view.tensors) + sink.position

    def emit(self) -> None:
        """The loop over this thread's blocks."""
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._block)

    def _block(self, number: Operand) -> None:
        tiles = self.plan.tiles
        at = self.frame.coordinates(number, [tile.count for tile in tiles]) if tiles else []
        sizes: list[Operand] = [
            self.frame.operand(self.plan.view.shapes.symbol(name)) for name in self.plan.view.size_names
        ]
        rests = [self._extent(tile, here) for tile, here in zip(tiles, at, strict=True) if tile.rest is not None]
        part, count = self.streamed, len(self.plan.units)
        if part is None:
            self._units(range(count), [*sizes, *at, *rests])
            return
        outside = [*sizes, *at, 0, *rests, *([0] if part.tile.rest is not None else [])]
        self._units(range(part.first), outside)
        self.states.begin()

        def step(here: Operand) -> None:
            rest = [self._extent(part.tile, here)] if part.tile.rest is not None else []
            self._units(range(part.first, part.end), [*sizes, *at, here, *rests, *rest])
            self.states.hand_on()

        self.kernel.loop(0, self.frame.operand(part.tile.count), 1, step)
        self._units(range(part.end, count), outside)

    def _units(self, numbers: range, sizes: list[Operand]) -> None:
        for number in numbers:
            self._unit(self.plan.units[number], sizes, self.bindings[number])

    def _extent(self, tile: Tile, number: Operand) -> Operand:
        kernel = self.kernel
        return kernel.min(kernel.sub(self.frame.operand(tile.full), kernel.mul(number, tile.size)), tile.size)

    def _unit(self, unit: PlannedUnit, sizes: list[Operand], bindings: dict[int, int | MemRef]) -> None:
        kernel = self.kernel
        with kernel.inlined(Inlined(0, 0, sizes, bindings)):
            workgroups = DispatchBuffers(kernel, unit.plan.view).operand(unit.plan.workgroups)
        with kernel.inlined(Inlined(0, workgroups, sizes, bindings)):
            unit.family.emit(unit.plan, kernel)
