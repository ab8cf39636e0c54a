"""The kernel of a blocked dispatch: a loop over blocks, one sub-kernel after the other inside, some of them in a loop
of their own."""

from __future__ import annotations

from xdsl.ir import BlockArgument, SSAValue

from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.blocked.band_image import BandImage
from fuseline.targets.cpu.families.blocked.band_rows import BandRows
from fuseline.targets.cpu.families.blocked.buffers import Buffers, States
from fuseline.targets.cpu.families.blocked.entry import ResultTarget
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.planned_sub_kernels import PlannedSubKernel
from fuseline.targets.cpu.families.blocked.tiles import Tile
from fuseline.targets.cpu.kernel_ir.builder import Inlined, KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand


class BlockedKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: BlockedPlan, kernel: KernelBuilder) -> None:
        self.plan, self.kernel = plan, kernel
        self.buffers = DispatchBuffers(kernel, plan.view)
        self.streamed, self.states = plan.streamed, States()
        self.bindings = self._bindings()

    def _bindings(self) -> list[dict[int, int | MemRef]]:
        """What the bindings of each sub-kernel are, every buffer made before the first block."""
        buffers, out = Buffers(self.kernel), list[dict[int, int | MemRef]]()
        for number, sub_kernel in enumerate(self.plan.sub_kernels):
            if self.streamed is not None and number == self.streamed.first:
                self.states = States.taken(self.streamed, buffers, self.buffers)
            found: dict[int, int | MemRef] = {
                i: self._argument(value, buffers) for i, value in enumerate(sub_kernel.arguments)
            }
            for i, target in enumerate(sub_kernel.targets):
                found[len(sub_kernel.arguments) + i] = self._target(target, buffers)
            first = len(sub_kernel.arguments) + len(sub_kernel.targets)
            found.update({first + i: sub_kernel.extra + i for i in range(len(sub_kernel.plan.extra_constants))})
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

    def _target(self, target: ResultTarget, buffers: Buffers) -> int | MemRef:
        if target.position is None and (state := self.states.place_of(target.value)) is not None:
            return state
        if target.position is None and (held := buffers.held.get(target.value)) is not None:
            return held
        if target.position is None:
            return buffers.take(target.value, self.plan.buffers[target.value])
        return len(self.plan.view.tensors) + target.position

    def _stored(self, value: SSAValue) -> int:
        """The result that holds a value."""
        target = next(
            target
            for sub_kernel in self.plan.sub_kernels
            for target in sub_kernel.targets
            if target.value is value and target.position is not None
        )
        assert target.position is not None
        return len(self.plan.view.tensors) + target.position

    def emit(self) -> None:
        """The loop over this thread's blocks."""
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._block)

    def _block(self, number: Operand) -> None:
        tiles = self.plan.tiles
        at = self.buffers.coordinates(number, [tile.count for tile in tiles]) if tiles else []
        sizes: list[Operand] = [
            self.buffers.operand(self.plan.view.shapes.symbol(name)) for name in self.plan.view.size_names
        ]
        rests = [self._extent(tile, here) for tile, here in zip(tiles, at, strict=True) if tile.rest is not None]
        streamed, count = self.streamed, len(self.plan.sub_kernels)
        if self.plan.image is not None:
            self._image(self.plan.image, number, [*sizes, *at, *rests])
            self._sub_kernels(range(len(self.plan.image.parts), count), [*sizes, *at, *rests])
            return
        if streamed is None:
            self._sub_kernels(range(count), [*sizes, *at, *rests])
            return
        outside = [*sizes, *at, 0, *rests, *([0] if streamed.tile.rest is not None else [])]
        self._sub_kernels(range(streamed.first), outside)
        self.states.begin()

        def step(here: Operand) -> None:
            rest = [self._extent(streamed.tile, here)] if streamed.tile.rest is not None else []
            self._sub_kernels(range(streamed.first, streamed.end), [*sizes, *at, here, *rests, *rest])
            self.states.hand_on()

        self.kernel.loop(0, self.buffers.operand(streamed.tile.count), 1, step)
        self._sub_kernels(range(streamed.end, count), outside)

    def _image(self, image: BandImage, number: Operand, sizes: list[Operand]) -> None:
        """The image of band `number`: the rows that it has in common with the one before are moved, or made where there
        is none, then the others are made."""
        memory = self.bindings[0][len(self.plan.sub_kernels[0].arguments)]
        assert isinstance(memory, MemRef)
        rows = BandRows(self.kernel, image, memory, number)

        def make(at: int) -> None:
            self._sub_kernels(range(at, at + 1), sizes)
            rows.put_edge(image.parts[at])

        if image.kept:
            self.kernel.when(self.kernel.compare("eq", number, self.kernel.begin), lambda: make(0), rows.move)
        make(len(image.parts) - 1)

    def _sub_kernels(self, numbers: range, sizes: list[Operand]) -> None:
        for number in numbers:
            self._sub_kernel(self.plan.sub_kernels[number], sizes, self.bindings[number])

    def _extent(self, tile: Tile, number: Operand) -> Operand:
        kernel = self.kernel
        return kernel.min(kernel.sub(self.buffers.operand(tile.full), kernel.mul(number, tile.size)), tile.size)

    def _sub_kernel(
        self, sub_kernel: PlannedSubKernel, sizes: list[Operand], bindings: dict[int, int | MemRef]
    ) -> None:
        kernel = self.kernel
        with kernel.inlined(Inlined(0, 0, sizes, bindings)):
            workgroups = DispatchBuffers(kernel, sub_kernel.plan.view).operand(sub_kernel.plan.workgroups)
        with kernel.inlined(Inlined(0, workgroups, sizes, bindings)):
            sub_kernel.family.emit(sub_kernel.plan, kernel)
