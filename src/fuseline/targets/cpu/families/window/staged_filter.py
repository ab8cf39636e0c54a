"""A filter that only the run knows, evaluated into scratch: it may lie in any way, or be computed.

filter[channel][row][column]   =>   [panel][row][column][channels of the panel]      the panels of a workgroup, once
                                                    [row][column]      where all lanes have one tap, once per channel
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from xdsl.ir.affine import AffineDimExpr

from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.combinators.tail import live_lanes, over_panels
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.packing import over_axes, over_vectors
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.tile import place
from fuseline.targets.cpu.families.window.blocks import known_extent, panel_steps
from fuseline.targets.cpu.families.window.loops import WindowLoops
from fuseline.targets.cpu.families.window.plan import WindowPlan, is_uniform
from fuseline.targets.cpu.kernel_ir.types import Operand


class StagedFilter:
    """`fill` the panels of a workgroup, then read vectors of their taps in `memory`."""

    def __init__(self, plan: WindowPlan, emitter: BodyEmitter) -> None:
        assert plan.loops.filter is not None
        self.plan, self.emitter, self.filter = plan, emitter, plan.loops.filter
        self.kernel, self.buffers = emitter.kernel, emitter.buffers
        self.uniform = is_uniform(plan.loops)
        self.width, self.lanes = (1, 1) if self.uniform else (plan.width, plan.lanes)
        self.panel = panel_steps(plan.loops) * self.width
        panels = 1 if self.uniform else plan.staged_panels
        self.memory = self.kernel.scratch(plan.loops.dtype, panels * self.panel + (plan.lanes if self.uniform else 0))
        self.first: Operand = 0
        self.strides: dict[Axis, int] = {}
        self.axes = _as_it_lies(plan.loops) if self.uniform else plan.loops.filter_axes
        step = self.width
        for axis in reversed(self.axes):
            self.strides[axis] = step
            step *= known_extent(axis)

    def base(self, panel: Operand) -> Operand:
        """Where a panel begins."""
        return 0 if self.uniform else self.kernel.mul(self.kernel.sub(panel, self.first), self.panel)

    def fill(self, outer: Mapping[Axis, Operand], panels: Range) -> None:
        """Evaluate the filter for some panels of the channels."""
        if self.uniform:
            self._fill_taps(outer)
            return
        kernel, width, self.first = self.kernel, self.width, panels[0]
        channels = self.buffers.operand(self.plan.loops.channel.extent)
        whole = kernel.div(channels, width)
        cut = whole, kernel.sub(channels, kernel.mul(whole, width))
        over_panels(kernel, cut, width, panels, partial(self._fill_panel, outer))

    def _fill_panel(self, outer: Mapping[Axis, Operand], panel: Operand, channels: Operand) -> None:
        kernel, lanes, axes = self.kernel, self.lanes, self.axes
        base, actives = self.base(panel), live_lanes(self.kernel, channels, lanes, self.width)

        def tap(offset: Operand, at: tuple[Operand, ...]) -> None:
            for v, active in enumerate(actives):
                loops = self._loops(outer, dict(zip(axes, at, strict=True)), panel, v)
                index = self.emitter.through(self.filter.map, loops, lanes)
                value = self.emitter.value_at(self.filter.value, index, lanes, active)
                kernel.store(self.memory, kernel.add(kernel.add(base, offset), v * lanes), value)

        over_axes(kernel, [known_extent(axis) for axis in axes], [self.strides[axis] for axis in axes], tap)

    def _fill_taps(self, outer: Mapping[Axis, Operand]) -> None:
        """Evaluate the taps of one channel: vectors along the last dimension of the filter, the others one by one."""
        kernel, (*before, last) = self.kernel, self.axes

        def row(offset: Operand, at: tuple[Operand, ...]) -> None:
            def vector(first: Operand, lanes: int, active: Operand | None) -> None:
                loops = self._loops(outer, dict(zip(before, at, strict=True)), 0, 0)
                place(self.buffers, loops, last, Index(first, 1 if lanes > 1 else 0))
                index = self.emitter.through(self.filter.map, loops, lanes)
                value = self.emitter.value_at(self.filter.value, index, lanes, active)
                kernel.store(self.memory, kernel.add(offset, first), value)

            extent = known_extent(last)
            over_vectors(kernel, extent, (), min(self.plan.lanes, 1 << (extent - 1).bit_length()), vector)

        over_axes(kernel, [known_extent(axis) for axis in before], [self.strides[axis] for axis in before], row)

    def _loops(
        self, outer: Mapping[Axis, Operand], at: Mapping[Axis, Operand], panel: Operand, v: int
    ) -> list[AnyIndex]:
        """The root's loops at a vector of a tap; those of pixels at 0."""
        plan = self.plan
        loops: list[AnyIndex] = [Index(0)] * plan.loops.root.rank
        for axis, value in (*outer.items(), *at.items()):
            place(self.buffers, loops, axis, Index(value))
        if not self.uniform:
            for loop, index in zip(plan.loops.channel.loops, self._channels(panel, v), strict=True):
                loops[loop] = index
        return loops

    def _channels(self, panel: Operand, v: int) -> list[Index]:
        """The channels of vector `v` of a panel; where they mix, the groups and the outputs in them: a panel is of
        whole groups."""
        kernel, plan, groups = self.kernel, self.plan, self.plan.loops.groups
        first, along = v * plan.lanes, 1 if plan.lanes > 1 else 0
        if groups is None:
            return [Index(kernel.add(kernel.mul(panel, plan.width), first), along)]
        group = kernel.mul(panel, plan.width // groups.outputs)
        at = [divmod(first + lane, groups.outputs) for lane in range(plan.lanes)]
        if at[0][0] == at[-1][0]:
            return [Index(kernel.add(group, at[0][0])), Index(at[0][1], along)]
        numbers, outputs = (kernel.const(tuple(numbers), "i64", plan.lanes) for numbers in zip(*at, strict=True))
        return [Index(0, 0, kernel.add(numbers, kernel.as_value(group))), Index(0, 0, outputs)]


def _as_it_lies(loops: WindowLoops) -> list[Axis]:
    """The axes of a filter in the order of its dimensions, those of size 1 left out."""
    assert loops.filter is not None
    order = [expr.position for expr in loops.filter.map.results if isinstance(expr, AffineDimExpr)]
    return sorted(loops.filter_axes, key=lambda axis: order.index(axis.inner) if axis.inner in order else -1)
