"""What a block-by-block dispatch costs: an operand that the grid does not address is read once per block, instead of
once.

    matmul(m, n) ──> mean(m)        blocks of m: each block reads all of the right operand

A constant streams through the caches while the register tiles compute, once for all threads that are at it at a time;
an operand that is computed at run time is packed anew for every block. The figures are the target's (`ir/costs.py`),
the same for every program; a merge that is predicted to take longer than its parts is `unprofitable`, with the numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from fuseline.analysis.filtered_convolutions import filtered_dims
from fuseline.analysis.structured import HEAVY, WINDOWS, StructuredOp, is_generic
from fuseline.analysis.window_overlap import has_overlapping_windows
from fuseline.ir.costs import assumed_size, small_sizes
from fuseline.ir.dim import product
from fuseline.ir.element_types import element_bytes
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import BLOCK_POINTS, Group
from fuseline.passes.fusion.node import Node, Read

NEAR_BYTES = 16 * 1024
"""Of an operand that stays in the first-level cache from block to block."""


def reread_ns(group: Group, graph: FusionGraph, target: TargetDescription) -> float:
    """Time to bring in the operands of the roots that have to be read more than once, nanoseconds of one thread beyond
    the first time."""
    if not group.blocked:
        return 0.0
    mine = set(group.members)
    reads = (read for node in group.members if node.kind in HEAVY for read in node.reads if read.producer not in mine)
    return sum(_operand_ns(group, graph, read, target) for read in reads)


def compute_ns(group: Group, target: TargetDescription) -> float:
    """Time of the roots' arithmetic on one thread, nanoseconds; half as many elements of 64 bits are a vector."""
    flops = (2.0 * _size(node) * _vectors(node) for node in group.members if node.kind in HEAVY)
    return sum(flops) / target.costs.flops_per_ns


def direct_ns(group: Group, target: TargetDescription) -> float:
    """Time that convolutions take longer because a block of their filter is all that a workgroup sees: minimal
    filtering wants it whole."""
    if not group.blocked or target.numerics == "strict":
        return 0.0
    slower = 1.0 - 1.0 / target.costs.filtering_gain
    cut = (node for node in group.members if _cuts_filter(node, group, target))
    return sum(slower * 2.0 * _size(node) / target.costs.flops_per_ns for node in cut)


def _cuts_filter(node: Node, group: Group, target: TargetDescription) -> bool:
    """Whether a convolution that minimal filtering is for has its output channels in the grid and its image inside."""
    if node in group.inlined or not is_generic(node.op):
        return False
    roles = filtered_dims(StructuredOp(node.op), node.loops, target.costs)
    if roles is None:
        return False
    grid_loops = group.grid_loop_of[node]
    return any(grid_loops[loop] is not None for loop in roles.output_channel) and all(
        grid_loops[loop] is None for loop in roles.image_loops
    )


def _vectors(node: Node) -> float:
    """In how many vectors as many results lie as one of f32 has."""
    return max(1.0, element_bytes(node.op.results[0]) / 4)


def _size(node: Node) -> int:
    return assumed_size(product(node.loops))


def _block_points(group: Group, target: TargetDescription) -> float:
    """How many grid points a workgroup has: what fits the scratch, with a workgroup for every thread, or a few where
    only the run tells how many points there are."""
    needed = group.scratch_bytes
    fits = _held_bytes(group, target) * BLOCK_POINTS / needed if needed else float("inf")
    if _is_cut_for_few(group, target):
        few = prod(small_sizes(group.grid, image=group.unknown_pixels))
        return max(1.0, min(fits, few / target.threads))
    points = product(group.grid)
    workgroups = target.threads if isinstance(points, int) else 2 * target.threads
    return max(float(BLOCK_POINTS), min(fits, assumed_size(points) / workgroups))


def _is_cut_for_few(group: Group, target: TargetDescription) -> bool:
    """Whether blocks are as small as leaves one for each thread where there are few points (measured, two threads, 512
    columns to 1,406 and back in one dispatch: 1 to 2,000 rows 1.0 to 2.0 of the time of two dispatches): unless known
    loops are shared out, or all that lies between would be stored otherwise, in any number of rows and columns."""
    known = prod(extent for extent in group.grid if isinstance(extent, int))
    if target.threads == 1 or isinstance(product(group.grid), int) or known >= target.threads:
        return False
    return not group.online and group.scratch_bytes is not None


def _held_bytes(group: Group, target: TargetDescription) -> int:
    """What a workgroup keeps between its roots before blocks are made smaller: more where no window meets it."""
    return (
        target.scratch_bytes_limit
        if _meets_windows(group)
        else max(target.scratch_bytes_limit, target.costs.block_bytes)
    )


def _meets_windows(group: Group) -> bool:
    return any(node.kind in WINDOWS and _overlaps(node) for node in group.members)


def _overlaps(node: Node) -> bool:
    return node.structured is None or has_overlapping_windows(node.structured, node.loops)


def block_passes(group: Group, used: Collection[int | None], target: TargetDescription) -> float:
    """How many workgroups of a group whose workgroups are blocks read an element that the grid loops `used` address."""
    blocks = assumed_size(product(extent for grid, extent in enumerate(group.grid) if grid not in used))
    return max(1.0, blocks / _block_points(group, target))


def _operand_ns(group: Group, graph: FusionGraph, read: Read, target: TargetDescription) -> float:
    grid_loops = group.grid_loop_of.get(read.consumer)
    if grid_loops is None:
        return 0.0
    passes, costs = block_passes(group, {grid_loops[loop] for loop in read.loops}, target), target.costs
    size = assumed_size(graph.num_bytes(read.value))
    if size <= NEAR_BYTES and graph.is_constant(read.value):
        return 0.0
    if _along_lanes(read) and not graph.is_constant(read.value):
        return (passes - 1.0) * size / costs.packed_bytes_per_ns
    in_turn = max(1.0, passes / target.threads)
    return size * ((in_turn - 1.0) / costs.streamed_bytes_per_ns + (passes - in_turn) / costs.shared_bytes_per_ns)


def _along_lanes(read: Read) -> bool:
    """Whether the operand has the loop that the root writes innermost: vectors run along it, so it wants packing."""
    innermost = read.consumer.innermost
    return innermost is None or innermost in read.loops
