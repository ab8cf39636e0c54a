"""Blocks of a contraction: how many tiles of rows and panels of columns a workgroup has, so that they share a cache."""

from __future__ import annotations

from math import prod

from fuseline.analysis.box_blocks import choose_box_block, least_blocks, root_ns
from fuseline.analysis.cost import operations
from fuseline.analysis.image_box import ImageBox
from fuseline.analysis.producers import producers_of
from fuseline.ir import dim as d
from fuseline.ir.costs import SMALL_SIZE
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode, RhsMode
from fuseline.targets.cpu.families.contraction.operand_modes import ROWS_LIMIT
from fuseline.targets.cpu.families.contraction.reduction_blocks import (
    ReductionBlocks,
    block_bytes,
    cut_box_of,
    with_sums_in_scratch,
)
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import BlockedWork, Blocks, Tile, choose_blocks, shared_out


def choose_contraction_blocks(
    loops: ContractionLoops,
    tile: Tile,
    width: int,
    modes: tuple[LhsMode, RhsMode],
    machine: Machine,
    cut: ReductionBlocks | None = None,
    asked: Blocks | None = None,
) -> Blocks:
    """The blocks for tiles of `tile.rows` rows by `width` columns, read as `modes` say (left, right); `cut`: a block of
    the reduction at a time. `asked`: what stands in for the choice, as far as scratch allows."""
    lhs_size, rhs_size = (BYTES[element] for element in loops.elements)
    lines = estimated(loops.rows[-2].extent) if len(loops.rows) > 1 else 1
    row_extent = _rows_of_one(loops.rows[-1]) if loops.rows else 1
    outer = 1
    for axis in (
        *loops.outer,
        *loops.rows[:-2],
    ):  # a batch known at run time may be 1, and must be shared out even then
        outer *= axis.extent if isinstance(axis.extent, int) else 1
    steps, columns = estimated(loops.steps), estimated(loops.column.extent)
    tiles, panels = -(-row_extent // tile.rows), -(-columns // width)
    blocks = asked or choose_blocks(
        BlockedWork(
            outer=outer, lines=lines, tiles=tiles, panels=panels, tile_flops=2 * tile.rows * width * steps,
            lhs_bytes=lhs_elements(loops, lines * row_extent, steps, modes[0]) * lhs_size,
            rhs_bytes=columns * steps * rhs_size,
            repacks_rhs=modes[1] == "packed", repacks_lhs=modes[0] != "linear", serial=loops.view.serial,
            threads=loops.threads,
        ),
        machine,
    )  # fmt: skip
    cut_box = cut_box_of(loops, modes[0])
    if cut_box is not None:
        blocks = _around_cut_box(blocks, loops, cut_box, (tiles, tile), panels) if asked is None else blocks
    elif loops.box is not None and modes[0] == "boxed":
        chooser = machine if asked is None else None
        blocks = _around_box(blocks, loops, loops.box, (tiles, tile), chooser, packs=modes[1] != "constant")
    if modes[0] == "packed":
        row_bytes = steps * lhs_size if cut is None else block_bytes(cut, loops, lhs_size)
        blocks = _within_scratch(blocks, tiles, tile, row_bytes)
    return blocks if cut is None else with_sums_in_scratch(blocks, tile, width * BYTES[loops.dtype])


def _rows_of_one(axis: Axis) -> int:
    """About how many rows there are of one batch, which must be shared out, too: of loops that only the run knows
    without the first, unless it is all there is."""
    known = prod(size for size in axis.sizes if isinstance(size, int))
    unknown = [size for size in axis.sizes if not isinstance(size, int)]
    rows = unknown if len(unknown) == 1 and known < SMALL_SIZE else unknown[1:]
    return known * prod(map(estimated, rows))


def lhs_elements(loops: ContractionLoops, rows: int, steps: int, mode: LhsMode) -> int:
    """Elements of the left operand behind `rows` rows: overlapping windows count once."""
    if mode == "boxed":
        return estimated(d.product(loops.view.shapes.dims(loops.lhs.value)))
    total = 0
    for source in {segment.access.source for segment in loops.segments}:
        total += estimated(d.product(loops.view.shapes.dims(source)))
    return min(rows * steps, total or rows * steps)


def _around_box(
    blocks: Blocks,
    loops: ContractionLoops,
    box: ImageBox,
    cut: tuple[int, Tile],
    machine: Machine | None,
    *,
    packs: bool,
) -> Blocks:
    """Lines enough that few rows of the image are evaluated twice, as far as the box fits its scratch; `cut`: the tiles
    of a line. Without a machine: no more lines. `packs`: columns are packed for each block."""
    tiles, tile = cut
    extents = [estimated(extent) for extent in loops.run_extents]
    of_line, lines = blocks.tiles, blocks.lines
    if machine is not None:
        of_line = (
            tiles if prod(extents[loop] for loop in box.rows[:-1]) >= least_blocks(loops.threads) else blocks.tiles
        )
        lines = max(blocks.lines, _lines_of_box(loops, box, extents, machine, packs=packs)) if of_line >= tiles else 1
    pixels = extents[box.rows[-1]] if box.rows else 1
    while lines > 1 and not box.fits(box.counts(lines, pixels)):
        lines -= 1
    while of_line > 1 and not box.fits(box.counts(lines, min(pixels, of_line * tile.rows))):
        of_line -= 1
    return Blocks(lines, shared_out(tiles, of_line), blocks.panels, blocks.columns_outer)


def _around_cut_box(
    blocks: Blocks, loops: ContractionLoops, box: ImageBox, cut: tuple[int, Tile], panels: int
) -> Blocks:
    """The block of a box that goes on in blocks of the reduction, for all `panels` where there are blocks enough of
    rows; `cut`: the tiles of a line."""
    (tiles, tile), extents = cut, [estimated(extent) for extent in loops.run_extents]
    block = choose_box_block(box, extents, 0.0, 0.0, threads=loops.threads)
    lines, whole = block.lines, extents[box.rows[-1]]
    of_line = tiles if block.pixels >= whole else shared_out(tiles, block.pixels // tile.rows)
    while lines > 1 and not box.fits(box.counts(lines, min(whole, of_line * tile.rows))):
        lines -= 1
    row_blocks = prod(extents[loop] for loop in box.rows) // (lines * min(whole, of_line * tile.rows))
    return Blocks(lines, of_line, panels if row_blocks >= least_blocks(loops.threads) else blocks.panels, False)


def _lines_of_box(loops: ContractionLoops, box: ImageBox, extents: list[int], machine: Machine, *, packs: bool) -> int:
    costs, image = machine.costs, loops.lhs.value
    made = producers_of(image, loops.view.members)
    element_ns = costs.packing_ns + costs.operation_ns * sum(operations(op) for op in made)
    return choose_box_block(
        box, extents, element_ns, root_ns(extents, costs), highest=packs, threads=loops.threads
    ).lines


def _within_scratch(blocks: Blocks, of_line: int, tile: Tile, row_bytes: int) -> Blocks:
    """Fewer rows per workgroup, so that a packed block of them fits its scratch; the tiles of a line in blocks as equal
    as can be."""
    rows = max(1, ROWS_LIMIT // row_bytes)
    tiles = shared_out(of_line, max(1, min(blocks.tiles, rows // tile.rows)))
    lines = shared_out(blocks.lines, rows // (tiles * tile.rows))
    return Blocks(lines, tiles, blocks.panels, blocks.columns_outer)
