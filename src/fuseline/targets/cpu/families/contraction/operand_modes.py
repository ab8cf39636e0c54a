"""How a contraction reads its operands: rows as stored, packed or value by value; columns as the constant lies, as
stored or packed."""

from __future__ import annotations

from dataclasses import replace

from fuseline.analysis.indexing_maps import loops_of
from fuseline.ir import dim as d
from fuseline.targets.cpu.emit.packing import PackedColumns, packed_columns
from fuseline.targets.cpu.families.contraction.axes import Operand, as_one
from fuseline.targets.cpu.families.contraction.constant_slice import constant_slice
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode, RhsMode
from fuseline.targets.cpu.families.contraction.pairs import reads_across_memory, reads_as_stored
from fuseline.targets.cpu.families.contraction.prefetch import row_tiles
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import Tile

PANEL_LIMIT = 128 * 1024
"""Bytes of scratch that a panel of columns may take: together with `ROWS_LIMIT` within 256 KiB, half a second-level
cache."""


ROWS_LIMIT = 112 * 1024
"""Bytes of scratch that a packed block of rows may take."""


PACKING_REUSE = 4
"""A runtime operand that could be read in place is packed when this many row tiles of a workgroup read each panel."""


def lhs_mode_of(loops: ContractionLoops, tile: Tile, padding_row: int | None) -> LhsMode:
    """How rows are read; `padding_row`: elements of the padding row, None where addresses cannot be chosen per tile."""
    linear = padding_row is not None and reads_as_stored(loops)
    if linear and not reads_across_memory(loops):
        return "linear"
    if loops.box is not None:
        return "boxed"
    steps = loops.steps
    fits = isinstance(steps, int) and tile.rows * (steps + 64) * BYTES[loops.elements[0]] <= ROWS_LIMIT
    return "packed" if fits else "linear" if linear else "pulled"


def column_choice(loops: ContractionLoops, tile: Tile, lanes: int) -> tuple[Tile, RhsMode]:
    """How columns are read, and the tile, narrowed where a panel of it would not fit the scratch."""
    narrowed = _constant_tile(loops, tile, lanes)
    if narrowed is not None:
        return narrowed, "constant"
    access = loops.rhs.access
    in_place = access is not None and not access.bounds and loops.rhs.stride(loops.column) == 1
    if in_place and row_tiles(loops, tile) < PACKING_REUSE:
        return tile, "direct"
    panel = _panel_bytes(loops, lanes)
    vectors = tile.vectors
    while panel is not None and vectors > 1 and vectors * panel > PANEL_LIMIT:
        vectors //= 2
    if panel is not None and vectors * panel <= PANEL_LIMIT:
        return Tile(tile.rows, vectors), "packed"
    return tile, "direct" if in_place else "pulled"


def _constant_tile(loops: ContractionLoops, tile: Tile, lanes: int) -> Tile | None:
    """The tile for columns packed at compile time, narrowed where a part of them must begin with a panel; None where
    they cannot be packed."""
    constant = constant_slice(loops.view, loops.rhs)
    if constant is None or any(axis.inner in constant.starts for axis in loops.reduction):
        return None
    start = constant.starts.get(loops.column.inner, 0)
    for vectors in range(tile.vectors, 0, -1):
        if d.mul(d.floor_div(start, vectors * lanes), vectors * lanes) == start:
            return Tile(tile.rows, vectors)
    return None


def _panel_bytes(loops: ContractionLoops, lanes: int) -> int | None:
    """Bytes of a panel of one vector; None where its size is only known at run time."""
    rest = d.product(axis.extent for axis in loops.reduction[:-1])
    last = loops.reduction[-1].extent if loops.reduction else 1
    if not isinstance(rest, int) or not isinstance(last, int):
        return None
    run = 2 * lanes if loops.narrow else lanes
    return rest * -(-last // run) * run * lanes * BYTES[loops.elements[0]]


def packed_constant(loops: ContractionLoops, width: int, together: int) -> PackedColumns:
    """The panels of `width` columns of a constant, so many steps of the innermost reduction axis side by side."""
    operand: Operand = loops.rhs
    constant = constant_slice(loops.view, operand)
    assert constant is not None
    shape = [size for size in loops.view.shapes.dims(constant.argument) if isinstance(size, int)]
    filter_loops, seen = as_one(loops.column, loops_of(operand.map.results), shape)
    outer = [loop for axis in loops.outer for loop in axis.loops]
    outer += [loop for loop in constant.starts if loop not in (*outer, loops.column.inner)]
    reduction = [loop for axis in loops.reduction for loop in axis.loops]
    found = packed_columns(seen, filter_loops, loops.column.inner, outer, reduction, width, together=together)
    return found if len(seen) == len(shape) else replace(found, layout=replace(found.layout, shape=seen))
