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

Unit: TypeAlias = "Operation | Group"
"""A group that becomes a region, or an op that stays by itself."""

_Units: TypeAlias = "dict[int, Unit]"  # the unit of each op, by identity: the hash of an op is that in Python


def ordered_units(block: Block, result: Partition, shapes: ShapeAnalysis) -> list[Unit]:
    """The units of `block`, its return aside, in the order described above. Raises FuselineError where the partition
    has a cycle."""
    unit_of: _Units = {}
    placed = concats_in_place(block, shapes)
    for node, group in result.group_of.items():
        alone = type(node.op) is DispatchRegionOp or (node.op in placed and len(group.members) == 1)
        unit_of[id(node.op)] = group if group.fusable and not alone else node.op
    units: _Units = {}
    for op in ops_of(block):
        if op.results or op.name != "func.return":
            unit = unit_of.setdefault(id(op), op)
            units.setdefault(id(unit), unit)
    ordered = list(units.values())
    return _topological(ordered, [_needs(unit, unit_of) for unit in ordered])


def _needs(unit: Unit, unit_of: _Units) -> set[int]:
    """The identities of the units that must come before `unit`."""
    found: set[int] = set()
    if isinstance(unit, Group):
        for node in unit.members:
            _add_origins(found, node.op, len(node.captured) > 0, unit, unit_of)
    else:
        _add_origins(found, unit, bool(unit.regions), unit, unit_of)
    found.discard(id(unit))
    return found


def _add_origins(found: set[int], op: Operation, captures: bool, unit: Unit, unit_of: _Units) -> None:
    for value in (*operands_of(op), *captured(op)) if captures else operands_of(op):
        if type(value) is OpResult:
            own = unit_of.get(id(value.op))
            # A view of the unit's own value moves inside and asks for nothing.
            if own is not None and not (is_view(value.op) and _base_unit(value.op, unit_of) is unit):
                found.add(id(own))


def _base_unit(op: Operation, unit_of: _Units) -> Unit | None:
    while is_view(op):
        source = operand_of(op, 0)
        if type(source) is not OpResult:
            return None
        op = source.op
    return unit_of.get(id(op))


def _topological(units: Sequence[Unit], needs: Sequence[set[int]]) -> list[Unit]:
    position: Mapping[int, int] = {id(unit): i for i, unit in enumerate(units)}
    users: list[list[int]] = [[] for _ in units]
    for i, required in enumerate(needs):
        for other in required:
            users[position[other]].append(i)
    missing = [len(required) for required in needs]
    ready = [i for i, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    order: list[Unit] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(units[i])
        for user in users[i]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, user)
    if len(order) != len(units):
        raise FuselineError("E0901", "the partition has a cycle")
    return order
