"""What a block-by-block dispatch costs: an operand that the grid does not address is read once per block, instead of once.

    matmul(m, n) ──> mean(m)        blocks of m: each block reads all of the right operand

A constant streams through the caches while the register tiles compute; an operand that is computed at run time is packed anew for every block.
The figures are the same for every program; a merge that is predicted to take longer than its parts is `unprofitable`, with the numbers.
"""

from __future__ import annotations

from fuseline.ir.dim import product, upper_bound
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.graph import HEAVY, FusionGraph, Node, Read
from fuseline.passes.fusion.group import BLOCK_POINTS, Group

STREAMED_BYTES_PER_NS = 64.0
"""How fast a packed constant, or rows in place, stream beside the arithmetic: most of the time it takes is hidden."""

PACKED_BYTES_PER_NS = 8.0
"""How fast the operand that runs along the lanes is packed into scratch when it is computed at run time, one thread."""

FLOPS_PER_NS = 50.0
"""What one thread computes."""

UNBOUNDED_SIZE = 512
"""Stands for a symbolic size without a bound when sizes are only weighed against each other."""


def stream_ns(group: Group, graph: FusionGraph, target: TargetDescription) -> float:
    """Time to bring in the operands of the roots that have to be read more than once, nanoseconds of one thread beyond the first time."""
    if not group.blocked:
        return 0.0
    points = _block_points(group, target)
    mine = set(group.members)
    reads = (read for node in group.members if node.kind in HEAVY for read in node.reads if read.producer not in mine)
    return sum(_operand_ns(group, graph, read, points) for read in reads)


def compute_ns(group: Group) -> float:
    """Time of the roots' arithmetic on one thread, nanoseconds."""
    return sum(2.0 * _size(node) for node in group.members if node.kind in HEAVY) / FLOPS_PER_NS


def _size(node: Node) -> int:
    bound = upper_bound(product(node.loops))
    return bound if bound is not None else UNBOUNDED_SIZE


def _block_points(group: Group, target: TargetDescription) -> float:
    """How many grid points a workgroup has: what fits the scratch, with a few workgroups for every thread."""
    needed = group.scratch_bytes
    fits = target.scratch_bytes_limit * BLOCK_POINTS / needed if needed else float("inf")
    points = group.parallel_iterations() or UNBOUNDED_SIZE
    return max(float(BLOCK_POINTS), min(fits, points / (2 * target.threads)))


def _operand_ns(group: Group, graph: FusionGraph, read: Read, points: float) -> float:
    place = group.place.get(read.consumer)
    if place is None:
        return 0.0
    used = {place[loop] for loop in read.loops}
    across = upper_bound(product(extent for grid, extent in enumerate(group.grid) if grid not in used))
    passes = max(1.0, (across if across is not None else UNBOUNDED_SIZE) / points)
    size = upper_bound(graph.num_bytes(read.value))
    speed = PACKED_BYTES_PER_NS if _along_lanes(read) and not graph.is_constant(read.value) else STREAMED_BYTES_PER_NS
    return (passes - 1.0) * (size if size is not None else UNBOUNDED_SIZE) / speed


def _along_lanes(read: Read) -> bool:
    """Whether the operand has the loop that the root writes innermost: vectors run along it, so it wants packing."""
    written = [loop for loop in read.consumer.written[0] if loop is not None and read.consumer.loops[loop] != 1]
    return not written or written[-1] in read.loops
