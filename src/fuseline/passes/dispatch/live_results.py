"""Which results of dispatch regions live where most memory is in use, before there is a schedule.

The waves are those that the schedule orders by (`passes/schedule/order_dispatches.py`), asked of the regions of a
function. A result as large as an operand that nothing else reads, and something pointwise does, counts as lying
in its place; whether it may is the code's to prove, and comes later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, kind, tensor_operands
from fuseline.analysis.views import base_of
from fuseline.ir.costs import assumed_size
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.passes.schedule.dependencies import StepNeeds, live_waves
from fuseline.passes.schedule.order_dispatches import live_bytes, order_dispatches


class LiveResults:
    """The results of the regions of a block, each a buffer with its bytes (0 where it is an output)."""

    def __init__(self, block: Block, shapes: ShapeAnalysis) -> None:
        regions = [op for op in ops_of(block) if type(op) is DispatchRegionOp]
        self.values: list[SSAValue] = [result for region in regions for result in region.results]
        self._numbers = {value: number for number, value in enumerate(self.values)}
        makers: dict[SSAValue, int] = {
            result: number for number, region in enumerate(regions) for result in region.results
        }
        returned = {base_of(value) for op in ops_of(block) if isinstance(op, ReturnOp) for value in op.operands}
        self.bytes = [0 if value in returned else _bytes(value, shapes) for value in self.values]
        self._steps = [self._needs(region, makers) for region in regions]
        self._readers = Counter(number for step in self._steps for number in step.reads)
        self._pointwise = [
            [self._numbers[value] for value in dict.fromkeys(_read_pointwise(region)) if value in self._numbers]
            for region in regions
        ]

    def _needs(self, region: DispatchRegionOp, makers: dict[SSAValue, int]) -> StepNeeds:
        read = dict.fromkeys(_results_behind(region))
        after = {makers[value] for value in read}
        writes = tuple(self._numbers[result] for result in region.results)
        return StepNeeds(tuple(sorted(after)), tuple(self._numbers[value] for value in read), writes)

    def peak(self) -> tuple[int, set[SSAValue]]:
        """The most bytes that live at once, and the results in the first wave in which they do."""
        owners = self._owners()
        steps = [_in_place(step, owners) for step in self._steps]
        waves = order_dispatches(steps, self.bytes)
        live = live_bytes(steps, waves, self.bytes)
        if not live:
            return 0, set()
        most = max(live)
        at, lives = live.index(most), live_waves(steps, waves)
        there = {number for number, (first, last) in lives.items() if first <= at <= last}
        return most, {value for value, owner in zip(self.values, owners, strict=True) if owner in there}

    def halve(self, value: SSAValue) -> None:
        """Count `value` as half as large as it is."""
        self.bytes[self._numbers[value]] //= 2

    def keep_inside(self, value: SSAValue) -> None:
        """Count `value` as stored nowhere: the one step that reads it makes it, of what its maker reads."""
        number = self._numbers[value]
        maker = next(step for step in self._steps if number in step.writes)
        self.bytes[number] = 0
        self._steps = [
            replace(step, reads=tuple(dict.fromkeys((*step.reads, *maker.reads)))) if number in step.reads else step
            for step in self._steps
        ]

    def _owners(self) -> list[int]:
        """For each result the first of those in whose place it lies."""
        owners = list(range(len(self.values)))
        for step, pointwise in zip(self._steps, self._pointwise, strict=True):
            free = [number for number in pointwise if self._readers[number] == 1]
            for result in step.writes:
                operand = next((one for one in free if self.bytes[one] == self.bytes[result]), None)
                if operand is not None:
                    owners[result] = owners[operand]
                    free.remove(operand)
        return owners


def _in_place(step: StepNeeds, owners: Sequence[int]) -> StepNeeds:
    """`step` with each buffer replaced by the one in whose place it lies."""
    reads, writes = (tuple(dict.fromkeys(owners[one] for one in side)) for side in (step.reads, step.writes))
    return replace(step, reads=reads, writes=writes)


def _read_pointwise(region: DispatchRegionOp) -> Iterator[SSAValue]:
    for op in ops_of(region.body.block):
        if kind(op) is Kind.ELEMENTWISE:
            yield from op.operands


def _bytes(value: SSAValue, shapes: ShapeAnalysis) -> int:
    return assumed_size(num_bytes(value, shapes))


def _results_behind(op: Operation) -> Iterator[SSAValue]:
    """The results of regions that `op` waits for, whatever lies between them."""
    seen, stack = set[SSAValue](), list(tensor_operands(op))
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if type(owner) is DispatchRegionOp:
            yield value
        elif isinstance(owner, Operation):
            stack += tensor_operands(owner)
