"""The sums of all tiles of a workgroup, in scratch while the reduction is traversed block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.tile import Block, RowTile
from fuseline.targets.cpu.families.root.results import Actives, RootResults
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Loops = Callable[[RowTile, Operand, Operand, Operand], list[AnyIndex]]
"""`(tile, panel, row, vector) -> loops of the root`."""


class TileSums:
    """Whole vectors, `[line][tile][panel][row][vector]` of a workgroup's block. What a block of the reduction adds up
    to is a partial sum of its own, so that rounding errors grow with the number of blocks and not of steps."""

    def __init__(self, kernel: KernelBuilder, plan: ContractionPlan, results: RootResults) -> None:
        self.kernel, self.plan, self.results = kernel, plan, results
        blocks, self.tile = plan.blocks, plan.tile.rows * plan.width
        self.memory = kernel.scratch(plan.loops.dtype, blocks.lines * blocks.tiles * blocks.panels * self.tile)

    def start(self, block: Block, loops: Loops, tile: RowTile, panel: Operand, actives: Actives) -> None:
        """What the sums of a tile start from."""
        values = self.results.starts(tile.height, actives, partial(loops, tile, panel))
        self._put(self._place(block, tile, panel), values)

    def add(self, block: Block, tile: RowTile, panel: Operand, addends: Sequence[Value]) -> None:
        """Add what a block of the reduction adds up to."""
        place = self._place(block, tile, panel)
        sums = self._values(place, len(addends))
        self._put(place, [self.kernel.add(total, addend) for total, addend in zip(sums, addends, strict=True)])

    def of(self, block: Block, tile: RowTile, panel: Operand, actives: Actives) -> list[Value]:
        """The sums of a tile."""
        return self._values(self._place(block, tile, panel), tile.height * len(actives))

    def _place(self, block: Block, tile: RowTile, panel: Operand) -> Operand:
        kernel, blocks = self.kernel, self.plan.blocks
        number = kernel.sub(tile.line, block.lines[0])
        number = kernel.add(kernel.mul(number, blocks.tiles), kernel.sub(tile.tile, block.tiles[0]))
        number = kernel.add(kernel.mul(number, blocks.panels), kernel.sub(panel, block.panels[0]))
        return kernel.add(kernel.mul(number, self.tile), kernel.mul(tile.behind, self.plan.width))

    def _values(self, place: Operand, count: int) -> list[Value]:
        kernel, lanes = self.kernel, self.plan.lanes
        align = kernel.machine.vector_bytes
        places = [kernel.add(place, number * lanes) for number in range(count)]
        return [kernel.load(self.memory, at, lanes, align=align) for at in places]

    def _put(self, place: Operand, values: Sequence[Value]) -> None:
        kernel, lanes = self.kernel, self.plan.lanes
        for number, value in enumerate(values):
            kernel.store(self.memory, kernel.add(place, number * lanes), value, align=kernel.machine.vector_bytes)
