"""A reduction traversed in blocks, where an operand is computed and too long to be packed whole: its rows and columns
are packed a block at a time, and the sums of a workgroup's tiles wait in scratch.

for each block of k:    pack its rows;  for each panel:  pack its columns;  for each tile:  sums += rows x columns
for each tile:          the epilogue on its sums
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fuseline.analysis.cut_boxes import SUMS_BYTES
from fuseline.analysis.image_box import ImageBox
from fuseline.analysis.reduction_block import BLOCK_STEPS, reduction_block
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops, LhsMode, RhsMode
from fuseline.targets.cpu.families.contraction.operand_modes import PACKING_REUSE, ROWS_LIMIT
from fuseline.targets.cpu.families.contraction.prefetch import row_tiles
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, Operand
from fuseline.targets.cpu.tiles import Blocks, Tile, shared_out


@dataclass(frozen=True, slots=True)
class ReductionBlocks:
    """So many steps of each of these axes at a time."""

    steps: Mapping[Axis, int]

    def extents(self, reduction: Sequence[Axis]) -> list[Dim]:
        """How far the axes of the reduction run in a block, at the most."""
        return [self.steps.get(axis, axis.extent) for axis in reduction]


@dataclass(frozen=True, slots=True)
class Piece:
    """The block that a kernel is at: where it begins along each axis that is cut, and how many steps it has of it.
    Without any: the whole reduction."""

    ranges: Mapping[Axis, tuple[Operand, Operand]] = field(default_factory=dict[Axis, "tuple[Operand, Operand]"])

    def extent(self, axis: Axis, whole: Operand) -> Operand:
        """How far an axis runs in the block."""
        return self.ranges[axis][1] if axis in self.ranges else whole

    def start(self, axis: Axis) -> Operand:
        """Where the block begins along an axis."""
        return self.ranges[axis][0] if axis in self.ranges else 0

    @property
    def starts(self) -> dict[Axis, Operand]:
        """Where the block begins along the axes that are cut."""
        return {axis: first for axis, (first, _) in self.ranges.items()}


WHOLE = Piece()


def cut_box_of(loops: ContractionLoops, lhs: LhsMode) -> ImageBox | None:
    """The box that the rows are evaluated in, some of the reduction's steps at a time; None where there is none."""
    return loops.box if lhs == "boxed" and loops.box is not None and loops.box.cut else None


def chosen_blocks(loops: ContractionLoops, tile: Tile, modes: tuple[LhsMode, RhsMode]) -> ReductionBlocks | None:
    """The blocks that the reduction is traversed in, None where that is whole: those that the box of an image is
    evaluated in, or what `wants_blocks`."""
    box = cut_box_of(loops, modes[0])
    if box is not None:
        return ReductionBlocks({axis: box.window[axis.inner] for axis in loops.reduction if axis.inner in box.cut})
    return reduction_blocks(loops) if wants_blocks(loops, tile, modes) else None


def wants_blocks(loops: ContractionLoops, tile: Tile, modes: tuple[LhsMode, RhsMode]) -> bool:
    """Whether an operand would be evaluated more often than in blocks: rows, for every panel; columns, for many tiles
    of rows, or once for each few rows that fit their scratch whole."""
    lhs, rhs = modes
    if lhs == "packed" and rhs == "packed":
        fitting = ROWS_LIMIT // (estimated(loops.steps) * BYTES[loops.elements[0]])
        return fitting < min(ROWS_LIMIT // (BLOCK_STEPS * BYTES[loops.elements[0]]), row_tiles(loops, tile) * tile.rows)
    return lhs == "pulled" or (rhs == "pulled" and row_tiles(loops, tile) >= PACKING_REUSE)


def reduction_blocks(loops: ContractionLoops) -> ReductionBlocks | None:
    """The blocks for these loops, None where there are none."""
    found = {} if loops.narrow else reduction_block([axis.extent for axis in loops.reduction])
    return ReductionBlocks({loops.reduction[number]: steps for number, steps in found.items()}) if found else None


def modes_in_blocks(loops: ContractionLoops, modes: tuple[LhsMode, RhsMode]) -> tuple[LhsMode, RhsMode]:
    """How the operands are read a block at a time: in place where the addresses are plain, packed where they are not,
    or computed."""
    lhs, rhs = modes
    if cut_box_of(loops, lhs) is not None:
        return lhs, "packed" if rhs == "pulled" else rhs
    accesses = [segment.access for segment in loops.segments]
    plain = len(accesses) == 1 and not accesses[0].bounds and not accesses[0].floordiv_terms
    return "linear" if lhs == "linear" and plain else "packed", "packed" if rhs == "pulled" else rhs


def with_sums_in_scratch(blocks: Blocks, tile: Tile, bytes_of_panel_row: int) -> Blocks:
    """Fewer panels, then fewer tiles, so that the sums of a workgroup fit; `bytes_of_panel_row`: of a row of one
    panel."""
    most = max(1, SUMS_BYTES // (tile.rows * bytes_of_panel_row))
    tiles = shared_out(blocks.tiles, most)
    lines = shared_out(blocks.lines, most // tiles)
    return Blocks(lines, tiles, shared_out(blocks.panels, most // (tiles * lines)), blocks.columns_outer)


def each_block(
    kernel: KernelBuilder, blocks: ReductionBlocks, extents: Mapping[Axis, Operand], body: Callable[[Piece], None]
) -> None:
    """`body` for every block, along the axes that are cut as outer loops before inner ones: blocks of whole length in
    a loop, then what is left. `extents`: of these axes."""
    _along(kernel, list(blocks.steps.items()), extents, body, WHOLE)


def _along(
    kernel: KernelBuilder,
    steps: Sequence[tuple[Axis, int]],
    extents: Mapping[Axis, Operand],
    body: Callable[[Piece], None],
    outside: Piece,
) -> None:
    """`body` for the blocks inside of a piece of the axes before these."""
    if not steps:
        body(outside)
        return
    (axis, most), inner = steps[0], steps[1:]
    extent = extents[axis]
    whole = kernel.mul(kernel.div(extent, most), most)

    def one(first: Operand, count: Operand = most) -> tuple[()]:
        _along(kernel, inner, extents, body, Piece({**outside.ranges, axis: (first, count)}))
        return ()

    kernel.loop(0, whole, most, one)
    rest = kernel.sub(extent, whole)
    if rest != 0:
        kernel.when(kernel.compare("gt", rest, 0), partial(one, whole, rest))


def block_bytes(blocks: ReductionBlocks, loops: ContractionLoops, size: int) -> int:
    """Bytes of a row or column of a block, `size` each element."""
    steps = d.product(blocks.extents(loops.reduction))
    assert isinstance(steps, int)
    return steps * size
