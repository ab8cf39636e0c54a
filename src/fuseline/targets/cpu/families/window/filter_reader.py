"""The filter of a window root, packed at compile time, staged in scratch, or as it lies: vectors of its taps."""

from __future__ import annotations

from collections.abc import Mapping

from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.window.plan import WindowPlan, is_uniform
from fuseline.targets.cpu.families.window.staged_filter import StagedFilter
from fuseline.targets.cpu.families.window.tile import Tile, Window, channel
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value


class FilterReader:
    """Reads the filter of a plan; pooling has none."""

    def __init__(self, plan: WindowPlan, emitter: BodyEmitter) -> None:
        self.plan, self.buffers, self.kernel = plan, emitter.buffers, emitter.kernel
        self.filter = plan.loops.filter
        self.staged = StagedFilter(plan, emitter) if plan.stages_filter else None
        self.uniform = is_uniform(plan.loops)
        self.memory = self._memory()

    def _memory(self) -> MemRef | None:
        plan = self.plan
        if self.filter is None or self.staged is not None:
            return self.staged.memory if self.staged is not None else None
        if plan.packed is not None:
            position = plan.view.tensors.index(self.filter.value)  # pyright: ignore[reportArgumentType]
            return self.kernel.binding(position, plan.loops.dtype, plan.packed.elements)
        assert self.filter.access is not None
        return self.buffers.argument(self.filter.access.source)

    def enter(self, outer: Mapping[Axis, Operand], panels: Range) -> None:
        """Stage the panels of a workgroup, where the filter is staged."""
        if self.staged is not None:
            self.staged.fill(outer, panels)

    def stride(self, axis: Axis) -> Operand:
        """How far apart two elements along a reduction or outer axis lie."""
        if self.staged is not None:
            return self.staged.strides.get(axis, 0)
        if self.plan.packed is not None:
            return self.plan.packed.strides.get(axis.inner, 0)
        access = self.filter.access if self.filter is not None else None
        return self.buffers.operand(access.stride(axis.inner)) if access is not None else 0

    def base(self, tile: Tile) -> Operand:
        """Where the first tap for a tile lies."""
        kernel, plan = self.kernel, self.plan
        if self.filter is None or self.staged is not None:
            return self.staged.base(tile.panel) if self.staged is not None else 0
        if plan.packed is not None:
            before = tile.image.start
            assert isinstance(before, int)
            total: Operand = kernel.mul(kernel.add(tile.panel, before // plan.width), plan.packed.panel_stride)
        else:
            assert self.filter.access is not None
            total = self.buffers.operand(self.filter.access.flat.constant)
            total = total if self.uniform else kernel.add(total, channel(self.buffers, plan, tile, 0))
        for axis, value in tile.outer.items():
            total = kernel.add(total, kernel.mul(value, self.stride(axis)))
        return total

    def vector(self, tile: Tile, window: Window, tap: int, v: int, step: Operand = 0) -> Value | None:
        """The tap of a window row for vector `v` of the tile, at channel `step` of its groups; None without a
        filter."""
        if self.memory is None:
            return None
        loops, in_place = self.plan.loops, self.staged is None and self.plan.packed is None
        first = window.filter
        for axis, i in ((loops.groups.inner if loops.groups is not None else None, step), (loops.across, tap)):
            first = self.kernel.add(first, self.kernel.mul(i, self.stride(axis))) if axis is not None else first
        if self.uniform:
            return self.kernel.splat(self.kernel.load(self.memory, first), self.plan.lanes)
        index = self.kernel.add(first, (tile.first + v) * self.plan.lanes)
        return self.kernel.load(self.memory, index, self.plan.lanes, active=tile.actives[v] if in_place else None)
