"""A tile of the pixels of a window root, and where in the window its reduction is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.window.loops import Image
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.kernel_ir.types import Address, Operand, Value


@dataclass(frozen=True, slots=True)
class Tile:
    """The place of a tile: outer axes and line, first pixel, number of pixels, the part of the image, its panel, the
    live lanes of its vectors.

    `start_range` bounds the first pixel over all tiles that this code serves; None where it is not known. `inside`: no
    pixel meets padding along the line. `stored`: pixels at the beginning that other tiles store. `first`: the number of
    its first vector in the panel.
    """

    outer: dict[Axis, Operand]
    start: Operand
    pixels: int
    start_range: tuple[int, int] | None
    image: Image
    panel: Operand = 0
    actives: Sequence[Operand | None] = ()
    inside: bool = False
    stored: Operand = 0
    first: int = 0

    def of(self, **changes: Any) -> Tile:
        """The tile with other fields."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Window:
    """Where the reduction is, outside the columns: what it adds to image and filter indices, its indices, and the
    checks to be made. `place`: where that is in the image, if a border has moved it; None: at index `image`."""

    image: Operand
    filter: Operand
    at: dict[Axis, Operand]
    rows: tuple[Value, ...]
    place: Address | None = None


def channel(buffers: DispatchBuffers, plan: WindowPlan, tile: Tile, v: Operand) -> Operand:
    """The first channel of vector `v`, in the whole image."""
    return buffers.kernel.add(buffers.operand(tile.image.start), channel_of_part(buffers, plan, tile, v))


def channel_of_part(buffers: DispatchBuffers, plan: WindowPlan, tile: Tile, v: Operand) -> Operand:
    """The first channel of vector `v`, in the tile's part of the image."""
    kernel = buffers.kernel
    return kernel.add(kernel.mul(tile.panel, plan.width), kernel.mul(v, plan.lanes))
