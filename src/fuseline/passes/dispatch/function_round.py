"""One function in one round of fusion: its regions opened, and put back as they were where the round changed
nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.passes.dispatch.open_regions import OpenedRegion, open_regions
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.starting_groups import StartingGroup, in_step, starting_group
from fuseline.passes.fusion.streamed_loops import OnlineReductionNodes
from fuseline.program.concat_in_place import concats_in_place


@dataclass
class FunctionRound:
    """`before` is the body that the function had, None where it had no regions to open: then it has that still, else a
    copy. `placed` are the concats that needed no dispatch, `known` the ops of each region, by identity as the body has
    them now."""

    function: FuncOp
    before: Region | None = None
    opened: Sequence[OpenedRegion] = ()
    placed: frozenset[int] = frozenset()
    known: set[frozenset[int]] = field(default_factory=set[frozenset[int]])

    @classmethod
    def of(cls, function: FuncOp, symbols: Mapping[str, Dim]) -> FunctionRound:
        """Open the regions of `function`, with the sizes `symbols`. Raises E0302 for a malformed one."""
        if not any(type(op) is DispatchRegionOp for op in ops_of(function.body.block)):
            return cls(function)
        before = function.body
        placed = _copied_ops(before, copy := before.clone(), concats_in_place(before.block, ShapeAnalysis(symbols)))
        function.detach_region(before)
        function.add_region(copy)
        return cls(function, before, open_regions(copy.block, ShapeAnalysis(symbols)), placed)

    def starting_groups(self, graph: FusionGraph, streams: Iterable[OnlineReductionNodes]) -> list[StartingGroup]:
        """What the regions are in `graph`."""
        softmaxes = list(streams)
        found = [_starting_group(region, graph, softmaxes) for region in self.opened]
        self.known = {frozenset(id(node.op) for node in one.nodes) for one in found}
        return found

    def had(self, group: Group) -> bool:
        """Whether a group is one of the regions, or a concat that needed none."""
        ops = frozenset(id(node.op) for node in group.members)
        return ops in self.known or (len(ops) == 1 and ops <= self.placed)

    def changes_nothing(self, groups: Iterable[Group]) -> bool:
        """Whether a round came to the regions that were there."""
        return self.before is not None and all(self.had(group) for group in groups)

    def restore(self) -> None:
        """Give the function back the body that it had."""
        assert self.before is not None
        self.function.detach_region(self.function.body)
        self.function.add_region(self.before)


def _starting_group(region: OpenedRegion, graph: FusionGraph, streams: Sequence[OnlineReductionNodes]) -> StartingGroup:
    found = starting_group(region.members, region.loops, graph, streams)
    return in_step(found) if region.derived else found


def _copied_ops(body: Region, copy: Region, wanted: set[Operation]) -> frozenset[int]:
    """The identities of the copies of some ops of a body."""
    pairs = zip(ops_of(body.block), ops_of(copy.block), strict=True)
    return frozenset(id(other) for op, other in pairs if op in wanted)
