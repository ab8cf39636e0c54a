"""What a block-by-block dispatch costs: an operand that the grid does not address is read once per block, instead of once.

    matmul(m, n) ──> mean(m)        blocks of m: each block reads all of the right operand

A constant streams through the caches while the register tiles compute; an operand that is computed at run time is packed anew for every block.
The figures are the same for every program; a merge that is predicted to take longer than its parts is `unprofitable`, with the numbers.
"""

from __future__ import annotations

from functools import lru_cache

from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.structured import Kind, StructuredOp, is_generic
from fuseline.ir.dim import Dim, evaluate, product, symbols, upper_bound
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.graph import HEAVY, FusionGraph, Node, Read
from fuseline.passes.fusion.group import BLOCK_POINTS, Group

STREAMED_BYTES_PER_NS = 64.0
"""How fast a packed constant, or rows in place, stream beside the arithmetic: most of the time it takes is hidden."""

PACKED_BYTES_PER_NS = 8.0
"""How fast the operand that runs along the lanes is packed into scratch when it is computed at run time, one thread."""

FLOPS_PER_NS = 50.0
"""What one thread computes."""

FILTERING_GAIN = 2.5
"""How much faster than directly a 3x3 convolution is by minimal filtering (Winograd), as measured over many shapes: 1.6 to 3.5."""

FILTERING_CHANNELS = 16
"""Below so many input channels the transforms cost more than they save."""

UNBOUNDED_SIZE = 512
"""Stands for a symbolic size without a bound when sizes are only weighed against each other."""


@lru_cache(maxsize=4096)
def likely(size: Dim) -> int:
    """The most that `size` can be, every symbol without a bound taken as `UNBOUNDED_SIZE`."""
    bound = upper_bound(size)
    if bound is not None:
        return bound
    return max(evaluate(size, {symbol.name: UNBOUNDED_SIZE if symbol.hi is None else symbol.hi for symbol in symbols(size)}), 1)


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


def direct_ns(group: Group, target: TargetDescription) -> float:
    """Time that convolutions take longer because a block of their filter is all that a workgroup sees: minimal filtering wants it whole."""
    if not group.blocked or target.numerics == "strict":
        return 0.0
    slower = 1.0 - 1.0 / FILTERING_GAIN
    return sum(slower * 2.0 * _size(node) / FLOPS_PER_NS for node in group.members if _cuts_filter(node, group))


def _cuts_filter(node: Node, group: Group) -> bool:
    """Whether a convolution that minimal filtering is for has its output channels in the grid and its image inside: unit stride, a window of 3 or
    more, and enough input channels."""
    if node.kind is not Kind.CONVOLUTION or node in group.pulled or not is_generic(node.op):
        return False
    roles = convolution_dims(StructuredOp(node.op))
    if roles is None or not all(expr.stride == expr.dilation == 1 for expr in roles.spatial):
        return False
    channels = upper_bound(product(node.loops[loop] for loop in roles.input_channel))
    if channels is None or channels < FILTERING_CHANNELS:
        return False
    place = group.place[node]
    windows = [node.loops[loop] for loop in roles.window_loops if node.loops[loop] != 1]
    wide = bool(windows) and all(isinstance(size, int) and size >= 3 for size in windows)
    return wide and any(place[loop] is not None for loop in roles.output_channel) and all(place[loop] is None for loop in roles.image_loops)


def _size(node: Node) -> int:
    return likely(product(node.loops))


def _block_points(group: Group, target: TargetDescription) -> float:
    """How many grid points a workgroup has: what fits the scratch, with a few workgroups for every thread."""
    needed = group.scratch_bytes
    fits = target.scratch_bytes_limit * BLOCK_POINTS / needed if needed else float("inf")
    points = likely(product(group.grid))
    return max(float(BLOCK_POINTS), min(fits, points / (2 * target.threads)))


def _operand_ns(group: Group, graph: FusionGraph, read: Read, points: float) -> float:
    place = group.place.get(read.consumer)
    if place is None:
        return 0.0
    used = {place[loop] for loop in read.loops}
    passes = max(1.0, likely(product(extent for grid, extent in enumerate(group.grid) if grid not in used)) / points)
    speed = PACKED_BYTES_PER_NS if _along_lanes(read) and not graph.is_constant(read.value) else STREAMED_BYTES_PER_NS
    return (passes - 1.0) * likely(graph.num_bytes(read.value)) / speed


def _along_lanes(read: Read) -> bool:
    """Whether the operand has the loop that the root writes innermost: vectors run along it, so it wants packing."""
    written = [loop for loop in read.consumer.written[0] if loop is not None and read.consumer.loops[loop] != 1]
    return not written or written[-1] in read.loops
