"""The filter of a window root, packed or as it lies: vectors of its taps."""

from __future__ import annotations

from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.families.window.tile import Tile, Window, channel
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


class FilterReader:
    """Reads the filter of a plan; pooling has none."""

    def __init__(self, plan: WindowPlan, frame: DispatchBuffers) -> None:
        self.plan, self.frame, self.kernel = plan, frame, frame.kernel
        self.memory = self._memory()

    def _memory(self) -> MemRef | None:
        plan, filter_ = self.plan, self.plan.problem.filter
        if filter_ is None:
            return None
        if plan.packed is not None:
            position = plan.view.tensors.index(filter_.value)  # pyright: ignore[reportArgumentType]
            return self.kernel.binding(position, plan.problem.dtype, plan.packed.elements)
        assert filter_.access is not None
        return self.frame.argument(filter_.access.source)

    def stride(self, axis: Axis) -> Operand:
        """How far apart two elements along a reduction or outer axis lie."""
        if self.plan.packed is not None:
            return self.plan.packed.strides.get(axis.inner, 0)
        filter_ = self.plan.problem.filter
        return (
            self.frame.operand(filter_.access.stride(axis.inner))
            if filter_ is not None and filter_.access is not None
            else 0
        )

    def base(self, tile: Tile) -> Operand:
        """Where the first tap for a tile lies."""
        kernel, plan, filter_ = self.kernel, self.plan, self.plan.problem.filter
        if filter_ is None:
            return 0
        if plan.packed is not None:
            before = tile.image.start
            assert isinstance(before, int)
            total: Operand = kernel.mul(kernel.add(tile.panel, before // plan.width), plan.packed.panel_stride)
        else:
            assert filter_.access is not None
            total = kernel.add(self.frame.operand(filter_.access.flat.constant), channel(self.frame, plan, tile, 0))
        for axis, value in tile.outer.items():
            total = kernel.add(total, kernel.mul(value, self.stride(axis)))
        return total

    def vector(self, tile: Tile, window: Window, tap: int, v: int, step: Operand = 0) -> Value | None:
        """The tap of a window row for vector `v` of the tile, at channel `step` of its groups; None without a
        filter."""
        if self.memory is None:
            return None
        problem, active = self.plan.problem, tile.actives[v]
        first = window.filter
        for axis, i in ((problem.groups.inner if problem.groups is not None else None, step), (problem.across, tap)):
            first = self.kernel.add(first, self.kernel.mul(i, self.stride(axis))) if axis is not None else first
        index = self.kernel.add(first, (tile.first + v) * self.plan.lanes)
        return self.kernel.load(
            self.memory, index, self.plan.lanes, active=None if self.plan.packed is not None else active
        )
