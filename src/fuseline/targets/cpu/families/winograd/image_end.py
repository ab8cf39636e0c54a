"""Where an image ends under tiles that go beyond it: the last tiles of a line do, unless they end with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from fuseline.ir import dim as d
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan, ends_with_tiles
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


def image_end(plan: WinogradPlan, buffers: DispatchBuffers, axis: int) -> Operand:
    """The pixels of the image, padding included, along a window axis."""
    window = plan.loops.windows[axis]
    return buffers.operand(d.add(window.outputs, window.taps - 1))


def before_end(plan: WinogradPlan, buffers: DispatchBuffers, pixel: Iterable[tuple[int, Operand]]) -> list[Value]:
    """What must hold for a pixel, of which these coordinates are given by window axis, to lie before the ends."""
    return [
        buffers.kernel.compare("lt", at, image_end(plan, buffers, axis))
        for axis, at in pixel
        if not ends_with_tiles(plan, axis)
    ]


def all_hold(buffers: DispatchBuffers, conditions: list[Value]) -> Value:
    """Whether all of `conditions` hold."""
    kernel = buffers.kernel
    return reduce(kernel.bitand, conditions) if conditions else kernel.const(1, "i1")
