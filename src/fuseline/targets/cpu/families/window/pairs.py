"""Windows in tiles of two vectors of channels."""

from __future__ import annotations

from fuseline.targets.cpu.families.window.loops import WindowLoops
from fuseline.targets.cpu.families.window.plan import MOST_PIXELS, columns_seen, shares_columns
from fuseline.targets.cpu.isa.description import Machine


def in_pairs(loops: WindowLoops, machine: Machine) -> tuple[int, int] | None:
    """The tile of a maximum of floats that combines columns first: two vectors wide, so that neighbouring cache lines
    are used together, and so few pixels that a maximum has registers to spare. None where there is one vector of
    channels, or what is stored is narrower.

    Measured against tiles of one vector and as many pixels as fit (3x3 poolings of squeezenet1_1 and resnet50): 0.81 to
    0.92 of their time with AVX-512, 0.76 to 0.79 with AVX2; of 8-bit integers 1.05.
    """
    lanes, channels = machine.lanes(loops.dtype), loops.channel.extent
    few = isinstance(channels, int) and channels < 2 * lanes
    if (
        few
        or loops.image_dtype != loops.dtype
        or loops.dtype not in ("f32", "f64")
        or not shares_columns(loops, machine)
    ):
        return None
    room = 3 * machine.vector_registers // 4
    return max([2, *(n for n in range(2, MOST_PIXELS + 1) if 2 * columns_seen(loops, n) <= room)]), 2
