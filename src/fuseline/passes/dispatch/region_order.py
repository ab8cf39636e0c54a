"""The order in which groups become dispatch regions: each after what it reads, as near to program order as that
allows."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Block, Operation, OpResult

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import captured
from fuseline.analysis.views import is_view
from fuseline.errors import FuselineError
from fuseline.ir.fast.direct import operand_of, operands_of, ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.passes.fusion.driver import Partition
from fuseline.passes.fusion.group import Group
from fuseline.program.concat_in_place import concats_in_place

RegionOrOp: TypeAlias = "Operation | Group"
"""A group that becomes a region, or an op that stays by itself."""

_Regions: TypeAlias = "dict[int, RegionOrOp]"  # the region of each op, by identity: the hash of an op is that in Python


def ordered_regions(block: Block, result: Partition, shapes: ShapeAnalysis) -> list[RegionOrOp]:
    """The regions of `block`, its return aside, in the order described above. Raises FuselineError where the partition
    has a cycle."""
    region_of: _Regions = {}
    placed = concats_in_place(block, shapes)
    for node, group in result.group_of.items():
        alone = type(node.op) is DispatchRegionOp or (node.op in placed and len(group.members) == 1)
        region_of[id(node.op)] = group if group.fusable and not alone else node.op
    regions: _Regions = {}
    for op in ops_of(block):
        if op.results or op.name != "func.return":
            region = region_of.setdefault(id(op), op)
            regions.setdefault(id(region), region)
    ordered = list(regions.values())
    return _topological(ordered, [_needs(region, region_of) for region in ordered])


def _needs(region: RegionOrOp, region_of: _Regions) -> set[int]:
    """The identities of the regions that must come before `region`."""
    found: set[int] = set()
    if isinstance(region, Group):
        for node in region.members:
            _add_origins(found, node.op, len(node.captured) > 0, region, region_of)
    else:
        _add_origins(found, region, bool(region.regions), region, region_of)
    found.discard(id(region))
    return found


def _add_origins(found: set[int], op: Operation, captures: bool, region: RegionOrOp, region_of: _Regions) -> None:
    for value in (*operands_of(op), *captured(op)) if captures else operands_of(op):
        if type(value) is OpResult:
            own = region_of.get(id(value.op))
            # A view of the region's own value moves inside and asks for nothing.
            if own is not None and not (is_view(value.op) and _base_region(value.op, region_of) is region):
                found.add(id(own))


def _base_region(op: Operation, region_of: _Regions) -> RegionOrOp | None:
    while is_view(op):
        source = operand_of(op, 0)
        if type(source) is not OpResult:
            return None
        op = source.op
    return region_of.get(id(op))


def _topological(regions: Sequence[RegionOrOp], needs: Sequence[set[int]]) -> list[RegionOrOp]:
    position: Mapping[int, int] = {id(region): i for i, region in enumerate(regions)}
    users: list[list[int]] = [[] for _ in regions]
    for i, required in enumerate(needs):
        for other in required:
            users[position[other]].append(i)
    missing = [len(required) for required in needs]
    ready = [i for i, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[RegionOrOp] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(regions[i])
        for user in users[i]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    if len(order) != len(regions):
        raise FuselineError("E0901", "the partition has a cycle")
    return order
