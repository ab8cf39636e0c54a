"""When the columns of a multiply-add root are asked for before they are read: a pure function of shape, tile, blocks
and machine.

Packed columns that do not stay in the second-level cache come from the last-level cache or from memory, panel by panel.
Columns that a single tile of a few rows uses are asked for just ahead. Where more row tiles use a panel, the next one
comes meanwhile: each tile asks for its share of it, a line every so many steps, so that the requests are spread over
the time that the panel takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.ir.costs import LINE_BYTES
from fuseline.targets.cpu.combinators.prefetch import NONE, Prefetch, schedule_prefetches
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, RhsMode
from fuseline.targets.cpu.families.contraction.padding_share import share_inside
from fuseline.targets.cpu.families.contraction.pairs import PAIR, QUAD
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import Blocks, Tile

PREFETCH_BYTES = 2048
"""How far ahead columns that are used once are asked for: 1 to 4 KiB are equal, below and above slower (5x1000x3072:
385 us without, 330 with)."""

FEW_TILES = 4
"""From so many row tiles on it pays to ask for the next panel where it comes from the last-level cache: where columns
are read again for every block of rows. From memory it pays from 2 on (12x4096x1024: 1450 us without, 1100 with)."""

LEAST_INSIDE = 0.7
"""The share of a window's steps that must meet the image. Steps in the padding are left out, with their requests, and
what the others ask for the next tiles leave out, too. 3x3 windows on 17x17: 36 apart (a ninth meets the image) requests
cost 7 %, 6 apart (0.58) 4 %."""


def choose_prefetch(
    loops: ContractionLoops, tile: Tile, blocks: Blocks, rhs_mode: RhsMode, machine: Machine
) -> Prefetch:
    """Nothing where columns are in cache anyway, or their number is only known at run time."""
    size = BYTES[loops.elements[1]]
    steps = estimated(loops.steps)
    if rhs_mode != "constant" or 2 * steps * estimated(loops.column.extent) * size <= machine.l2_bytes:
        return NONE
    all_tiles, tiles = row_tiles(loops, tile), tiles_per_panel(loops, tile, blocks)
    if all_tiles == 1:  # one row is bound by the bandwidth of memory, which hardware exhausts on its own
        return Prefetch(distance=PREFETCH_BYTES // size) if tile.rows > 1 else NONE
    if tiles < (2 if blocks.columns_outer else FEW_TILES) or share_inside(loops) < LEAST_INSIDE:
        return NONE
    line, whole = LINE_BYTES // size, QUAD if loops.in_bytes else PAIR if loops.narrow else 1
    lines = -(-steps * tile.vectors * machine.lanes(loops.dtype) // line)
    return schedule_prefetches(_innermost(loops), steps, lines, tiles, line, whole=whole)


def _innermost(loops: ContractionLoops) -> int:
    """Steps of the innermost reduction axis; 0 where it is cut, or only known at run time."""
    found = [segment.reduction[-1].extent for segment in loops.segments] if loops.reduction else []
    whole = loops.reduction[-1].extent if loops.reduction else 0
    return whole if isinstance(whole, int) and all(extent == whole for extent in found) else 0


def row_tiles(loops: ContractionLoops, tile: Tile) -> int:
    """Tiles over all rows, about."""
    return -(-_product([estimated(axis.extent) for axis in loops.rows]) // tile.rows)


def tiles_per_panel(loops: ContractionLoops, tile: Tile, blocks: Blocks) -> int:
    """Tiles from the first of a panel to the first of the next one: those of a workgroup, or all where every workgroup
    has one panel."""
    if blocks.panels > 1 or not blocks.columns_outer:
        return blocks.lines * blocks.tiles
    last = estimated(loops.rows[-1].extent) if loops.rows else 1
    return max(1, _product([estimated(axis.extent) for axis in loops.rows[-2:-1]]) * -(-last // tile.rows))


def _product(numbers: Sequence[int]) -> int:
    out = 1
    for number in numbers:
        out *= number
    return out
