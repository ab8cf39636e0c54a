"""What the kernel of a multiply-add root does beside what its dispatch counts, by the kinds of `ir.work_costs`.

Steps that fall into the padding are left out; of narrow integers, a step on its own takes as long as a pair. A tile
begins and ends, reads all of its panel of columns, whatever its height, and widens those of narrower elements: an
instruction a vector, where a multiply-add of floats is one and of narrow integers two (4x32 tiles take 1.15 of the time
of columns that are not widened, 7x32 1.10, 14x32 1.08). The rows of a workgroup are traversed once for each panel: from
beyond a core's caches, where rows and panels do not stay there.
"""

from __future__ import annotations

from math import prod
from typing import Protocol

from fuseline.ir import dim as d
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.block_choice import lhs_elements
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode, RhsMode
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
    def rhs_mode(self) -> RhsMode:
        """How columns are read."""
        ...

    @property
    def together(self) -> int:
        """How many steps of the innermost axis of the reduction are one of the kernel."""
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
    loops, taken, slower = plan.loops, _share_taken(plan), _over_pairs(plan)
    columns, steps = assumed_size(loops.column.extent), assumed_size(loops.steps)
    whole = -(-columns // plan.lanes) * plan.lanes if columns > 1 else 1
    lines = assumed_size(d.product(axis.extent for axis in (*loops.outer, *loops.rows[:-1])))
    rows = lines * (assumed_size(plan.tiled.extent) if plan.tiled is not None else 1)
    tiles = lines * assumed_size(plan.tile_count)
    product = "product_int" if loops.narrow else "product"
    begun = tiles * assumed_size(plan.panel_count) * TILE_CYCLES * FMA_PER_CYCLE * 2.0 * plan.lanes
    widened = tiles * _instructions_widening(plan) * (1 if loops.narrow else 2)
    made = taken * slower * (2.0 * rows + widened) * steps * whole
    return {
        product: made - 2.0 * rows * steps * whole + begun * (2 if loops.narrow else 1),
        "panels": taken * tiles * steps * columns * BYTES[loops.elements[1]],
        "again": taken * _again(plan, rows, machine),
    }


def _over_pairs(plan: PlannedContraction) -> float:
    """How much longer narrow integers take than in pairs of steps throughout."""
    if not plan.loops.narrow or not plan.loops.reduction:
        return 1.0
    steps = assumed_size(plan.loops.reduction[-1].extent)
    return 2.0 * -(-steps // plan.together) / max(steps, 1)


def _instructions_widening(plan: PlannedContraction) -> int:
    """How many the kernel needs to widen a vector of columns whenever it loads it; 0 where they lie as they are
    multiplied. A byte becomes a float by way of an integer."""
    stored, loops = plan.loops.elements[1], plan.loops
    if plan.rhs_mode in ("packed", "pulled"):
        return 0
    if loops.narrow:
        return 0 if loops.in_bytes else int(BYTES[stored] < (2 if plan.together > 1 else 4))
    return 0 if stored == loops.dtype else 2 if stored.startswith("i") else 1


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
