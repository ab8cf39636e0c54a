"""Image columns whose channels mix in groups: for each channel of a group, the lanes of its outputs all need that one.

groups of 4 outputs, 8 lanes, step 0:      channels a . . . b . . .      =>      a a a a b b b b
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.targets.cpu.combinators.unroll import unroll
from fuseline.targets.cpu.families.window.loops import Groups
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, Operand, Value

STEPS_PER_ITERATION = 4
"""Steps written out per iteration where one channel is broadcast."""


class GroupColumns:
    """How a vector `v` of a panel sees columns that lie in a copy; `address` is where the panel's channels begin in
    one."""

    def __init__(self, kernel: KernelBuilder, groups: Groups, lanes: int) -> None:
        self.kernel, self.groups, self.lanes = kernel, groups, lanes

    def each_step(
        self, v: int, active: Operand | None, body: Callable[..., Sequence[Value]], totals: Sequence[Value]
    ) -> list[Value]:
        """The channels of a group one by one: written out where they are dealt out in registers, which takes numbers
        known now."""
        steps = self.groups.inputs
        dealt = len(set(self._sources(v, active))) > 1
        count = steps if dealt else max(n for n in range(1, STEPS_PER_ITERATION + 1) if steps % n == 0)
        return list(unroll(self.kernel, 0, steps, count, body, totals))

    def spread(self, address: Address, v: int, active: Operand | None, step: Operand) -> Value:
        """Each lane's channel of a column."""
        kernel, lanes, sources = self.kernel, self.lanes, self._sources(v, active)
        first, last = sources[0], sources[-1]
        if first == last:
            return self._broadcast(address, kernel.add(step, first))
        assert isinstance(step, int)
        reach = last - first + self.groups.inputs
        if reach > lanes and len(set(sources)) == 2:
            low, high = (self._broadcast(address, step + source) for source in (first, last))
            return kernel.shuffle(
                low, high, [lane + (lanes if source == last else 0) for lane, source in enumerate(sources)]
            )
        low = kernel.load_at(address, first, lanes)
        high = kernel.load_at(address, first + lanes, lanes) if reach > lanes else None
        return kernel.shuffle(low, high, [source - first + step for source in sources])

    def _sources(self, v: int, active: Operand | None) -> tuple[int, ...]:
        """The channel behind each lane at step 0; lanes that do not count repeat the last one that does."""
        found = self.groups.sources(v, self.lanes)
        live = active if isinstance(active, int) else self.lanes
        return tuple(found[min(lane, live - 1)] for lane in range(self.lanes))

    def _broadcast(self, address: Address, channel: Operand) -> Value:
        return self.kernel.splat(self.kernel.load_at(address, channel), self.lanes)
