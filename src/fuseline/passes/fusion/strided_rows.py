"""Whether a row that becomes serial lies well in memory.

    softmax over the last axis      r ──>  . . . .     one workgroup traverses one row, along memory
                                    r'──>  . . . .

    softmax over the first axis     c c' c" ..         one workgroup traverses a block of columns side by side, lane by
                                    |  |  |            lane, down all rows
                                    v  v  v

The second way reads every line of memory that it touches as a whole. It pays while the rows stay in the cache until
they are traversed again, and while there are enough columns for all threads.
"""

from __future__ import annotations

from math import prod

from fuseline.ir.costs import LINE_BYTES, assumed_size
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node

COLUMNS = 128
"""Columns that a workgroup traverses side by side."""


def strided_rows(group: Group, demoted: frozenset[int], graph: FusionGraph, target: TargetDescription) -> WhyNot | None:
    """Why the loops `demoted` of a group's grid should not become serial: in some member's result a loop that stays in
    the grid would run inside one of them. None where they may."""
    for node in group.members if demoted else ():
        if node in group.inlined:
            continue
        for number, axes in enumerate(node.written):
            moving = [loop for loop in axes if loop is not None and node.loops[loop] != 1]
            grids = [group.grid_loop_of[node][loop] for loop in moving]
            serial = [grid is None or grid in demoted for grid in grids]
            if not any(serial) or serial == sorted(serial):
                continue
            refusal = _refusal(node, number, moving, serial, graph, target)
            if refusal is not None:
                return refusal
    return None


def _refusal(
    node: Node, number: int, moving: list[int], serial: list[bool], graph: FusionGraph, target: TargetDescription
) -> WhyNot | None:
    extents = [assumed_size(node.loops[loop]) for loop in moving]
    if serial[-1]:
        return WhyNot("strided-inner", f"{node.name} would walk its rows across memory", node.name)
    elements = prod(extents)
    size = assumed_size(graph.num_bytes(node.op.results[number])) // max(elements, 1)
    first = serial.index(True)
    block, row = prod(extents[first:]) * size, extents[-1] * size
    # rows no longer than a cache line are traversed along memory whatever the order
    if row > LINE_BYTES and block > target.costs.cached_bytes:
        numbers = {"block_bytes": float(block), "cached_bytes": float(target.costs.cached_bytes)}
        return WhyNot("strided-inner", f"{node.name} would walk {block:,} bytes across rows, again", node.name, numbers)
    workgroups = prod(extent for extent, is_serial in zip(extents[:-1], serial, strict=False) if not is_serial)
    workgroups *= -(-extents[-1] // COLUMNS)
    if workgroups < target.threads and elements > target.costs.serial_elements:
        numbers = {"workgroups": float(workgroups), "threads": float(target.threads)}
        what = f"{workgroups} blocks of columns for {target.threads} threads"
        return WhyNot("parallelism", what, node.name, numbers)
    return None
