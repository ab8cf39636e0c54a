"""Sizes that a block may have along a loop."""

from __future__ import annotations

from fuseline.ir.dim import Dim, upper_bound
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.isa.description import Machine

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
"""Points per block along a loop that does not run along the lanes; along one that does, multiples of two vectors, of
one where a window has it (its tiles are one vector wide), and what divides the loop: a block whose length only the run
tells is slow."""


def block_sizes(extent: Dim, vectors: int, machine: Machine, *, whole: bool) -> list[int]:
    """Sizes of blocks along a loop; `vectors` are a step of it along the lanes, 0 for a loop across them; `whole`:
    whether blocks had better be of one length."""
    bound = upper_bound(extent)
    likely = min(estimated(extent), bound) if bound is not None else estimated(extent)
    if vectors:
        found = {2 * machine.f32_lanes * n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)}
        found.update(_divisors(extent, machine.f32_lanes) if vectors == 1 else ())
        if whole and not _divisors(extent, machine.f32_lanes):  # else blocks of whole vectors are of one length, too
            found.update(size for size in _divisors(extent, 1) if size > machine.f32_lanes)
    else:
        found = {*SIZES, *(-(-likely // n) for n in (2, 3, 4, 5, 6, 8))}
    inside = sorted(size for size in found if bound is None or size < bound)
    return [*inside, bound] if bound is not None and bound <= 4096 else inside or [1]


def _divisors(extent: Dim, step: int) -> list[int]:
    """The multiples of `step` that an extent consists of."""
    most = extent // step if isinstance(extent, int) else 0
    return [step * n for n in range(1, most + 1) if isinstance(extent, int) and extent % (step * n) == 0]
