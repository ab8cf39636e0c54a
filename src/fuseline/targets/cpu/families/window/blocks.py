"""What each workgroup of a window has: lines of the result, and panels of its channels.

A filter that is staged is evaluated by each workgroup, for its own panels. So that hardly counts, lines are shared out
as far as panels have some tiles to be used by, and panels by so many channels that a workgroup reads whole cache lines
of a pixel.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from fuseline.analysis.packings import TILES_PER_PACKING
from fuseline.ir.costs import LINE_BYTES
from fuseline.targets.cpu.families.contraction.axes import Axis, estimated
from fuseline.targets.cpu.families.window.loops import WindowLoops
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import BlockedWork, Blocks, choose_blocks

MOST_STAGED_BYTES = 64 * 1024
"""Scratch for panels of a filter that only the run knows: beside the image, well within a second-level cache."""

LEAST_STAGED_LINES = 4
"""Cache lines of a pixel that a workgroup with a staged filter reads side by side, where there are so many."""


def known_extent(axis: Axis) -> int:
    """The extent of an axis that is not a matter of the run."""
    assert isinstance(axis.extent, int)
    return axis.extent


def panel_steps(loops: WindowLoops) -> int:
    """Elements of the filter behind a channel of the result."""
    return prod(known_extent(axis) for axis in loops.filter_axes)


def window_blocks(loops: WindowLoops, tile: tuple[int, int], machine: Machine, *, staged: bool) -> Blocks:
    """Lines and panels per workgroup; `tile`: pixels of a tile, channels of a panel."""
    outer, window = 1, 1
    for axis in loops.outer:  # a batch known at run time may be 1, and must be shared out even then
        outer *= axis.extent if isinstance(axis.extent, int) else 1
    for axis in loops.reduction:
        window *= estimated(axis.extent)
    (height, width), bytes_ = tile, BYTES[loops.dtype]
    pixels = estimated(loops.pixel.extent) if loops.pixel is not None else 1
    lines = estimated(loops.line.extent) if loops.line is not None else 1
    most = max(1, MOST_STAGED_BYTES // (panel_steps(loops) * width * bytes_)) if staged else 1
    together = min(most, -(-LEAST_STAGED_LINES * LINE_BYTES // (width * bytes_))) if staged else 1
    panels = -(-estimated(loops.channel.extent) // width)
    # a window step costs as much as four multiply-adds of a contraction: it is bound by loads
    work = 8 * window * pixels * width * together
    blocks = choose_blocks(
        BlockedWork(
            outer, lines, 1, -(-panels // together), work, 0, 0, repacks_rhs=staged, serial=loops.view.serial,
            tiles_per_packing=-(-TILES_PER_PACKING * height // max(1, pixels)),
        ),
        machine,
    )  # fmt: skip
    return replace(blocks, panels=min(blocks.panels * together, most, panels) if staged else blocks.panels)
