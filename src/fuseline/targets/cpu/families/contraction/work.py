"""What the kernel of a multiply-add root does beside what its dispatch counts, by the kinds of `ir.work_costs`.

Steps that fall into the padding are left out. A tile begins and ends, and reads all of its panel of columns, whatever
its height. The rows of a workgroup are traversed once for each panel: from beyond a core's caches, where rows and
panels do not stay there.
"""

from __future__ import annotations

from math import prod
from typing import Protocol

from fuseline.ir import dim as d
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.block_choice import lhs_elements
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode
from fuseline.targets.cpu.families.contraction.padding_share import share_of_steps
from fuseline.targets.cpu.isa.core_rates import FMA_PER_CYCLE
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import Blocks, RowSplit

TILE_CYCLES = 20
"""To begin and end a register tile: as long as so many cycles of multiply-adds (0 ranks dispatches of narrow integers
worse, 80 those of few steps)."""

ROWS_NEAR = 1 / 2
"""The share of a core's caches that rows and panels may take and stay there, beside results and prefetched columns."""


class PlannedContraction(Protocol):
    """What is asked of a plan."""

    @property
    def loops(self) -> ContractionLoops:
        """The roles of loops and operands."""
        ...

    @property
    def lanes(self) -> int:
        """Columns of a vector."""
        ...

    @property
    def width(self) -> int:
        """Columns of a panel."""
        ...

    @property
    def blocks(self) -> Blocks:
        """What a workgroup covers."""
        ...

    @property
    def lhs_mode(self) -> LhsMode:
        """How rows are read."""
        ...

    @property
    def outer(self) -> tuple[Axis, ...]:
        """Axes of the grid beside lines, tiles and panels."""
        ...

    @property
    def tiled(self) -> Axis | None:
        """The axis that tiles are cut along."""
        ...

    @property
    def split(self) -> RowSplit | None:
        """The tiles along it; None where only the run knows its extent."""
        ...

    @property
    def tile_count(self) -> Dim:
        """How many those are."""
        ...

    @property
    def panel_count(self) -> Dim:
        """Panels of columns."""
        ...

    @property
    def grid(self) -> tuple[Dim, ...]:
        """Extents of the grid, slowest first."""
        ...


def contraction_work(plan: PlannedContraction, machine: Machine) -> dict[str, float]:
    """The amount of each kind; `product` or `product_int` is negative where more is left out than tiles take."""
    loops, taken = plan.loops, _share_taken(plan)
    columns, steps = assumed_size(loops.column.extent), assumed_size(loops.steps)
    whole = -(-columns // plan.lanes) * plan.lanes if columns > 1 else 1
    lines = assumed_size(d.product(axis.extent for axis in (*loops.outer, *loops.rows[:-1])))
    rows = lines * (assumed_size(plan.tiled.extent) if plan.tiled is not None else 1)
    tiles = lines * assumed_size(plan.tile_count)
    product = "product_int" if loops.narrow else "product"
    begun = tiles * assumed_size(plan.panel_count) * TILE_CYCLES * FMA_PER_CYCLE * 2.0 * plan.lanes
    return {
        product: (taken - 1) * 2.0 * rows * steps * whole + begun * (2 if loops.narrow else 1),
        "panels": taken * tiles * steps * columns * BYTES[loops.elements[1]],
        "again": taken * _again(plan, rows, machine),
    }


def _share_taken(plan: PlannedContraction) -> float:
    split = plan.split
    if plan.lhs_mode != "linear" or split is None:
        return 1.0
    heights = [split.height] * split.tall + [split.height - 1] * split.short
    return share_of_steps(plan.loops, heights)


def _again(plan: PlannedContraction, rows: int, machine: Machine) -> float:
    """Bytes of rows that are read again, for every panel but the first, and come from beyond a core's caches."""
    loops, panels = plan.loops, assumed_size(plan.panel_count)
    size = BYTES[loops.elements[0]]
    read = lhs_elements(loops, rows, assumed_size(loops.steps), plan.lhs_mode) * size
    apart = plan.grid[: len(plan.outer)] if plan.blocks.columns_outer else plan.grid[:-1]
    groups = prod(assumed_size(extent) for extent in apart)
    panel = assumed_size(loops.steps) * plan.width * BYTES[loops.elements[1]]
    kept = machine.costs.cached_bytes * ROWS_NEAR
    missing = max(0.0, 1 - kept / (read / groups + 2 * panel))
    return (panels - 1) * read * missing
