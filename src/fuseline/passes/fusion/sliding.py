"""Roots that slide over a loop of the grid, and what that costs.

    depthwise(y, x, c) ──> pointwise(y, x, k)        blocks of (y, x): each block reads the rows of the image around it

A block of points of such a root needs more of the image than a block of it, so nothing of the image may be made inside:
`merging.align` drops loops that a value made inside is read along out of step.
"""

from __future__ import annotations

from xdsl.ir.affine import AffineExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import CHANNEL_WINDOWS, HEAVY
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node, plain_coordinate
from fuseline.passes.fusion.tile_cost import compute_ns

MOST_SHARED = 0.25
"""Windows that have no more in common with their neighbours are met once, as tiles are: of 8 in steps of 6 two products
in one dispatch take .85 to .92 of the time of two (AVX-512, one thread; .4 to .8 on two)."""


def slid_root(group: Group) -> Node | None:
    """A root that reads through a window over a grid loop: a block of its points needs more than a block of the
    operand."""
    return next((node for node in _placed(group) if _bent(node, group)), None)


def sliding_ns(group: Group, target: TargetDescription) -> float:
    """Time that the roots of a group take longer since one of them slides over the blocks, nanoseconds of one thread;
    0 where all are windows over one image channel by channel, and where windows hardly overlap (`MOST_SHARED`)."""
    if not group.blocked or all(node.kind in CHANNEL_WINDOWS for node in group.members if node.reduces):
        return 0.0
    slid = any(
        _overlaps(coordinate, shared, node) for node in _placed(group) for coordinate, shared in _bent(node, group)
    )
    return target.costs.sliding_share * compute_ns(group, target) if slid else 0.0


def _placed(group: Group) -> list[Node]:
    return [node for node in group.members if node.kind in HEAVY and node not in group.inlined]


def _bent(node: Node, group: Group) -> list[tuple[AffineExpr, set[int]]]:
    """Where a root reads through a window, and the grid loops that it does so along."""
    grid_loops = group.grid_loops(node)
    shared = {loop for loop, grid in enumerate(grid_loops) if grid is not None and node.loops[loop] != 1}
    bent = [c for read in node.reads for c in read.coordinates if c is not None and not plain_coordinate(c)]
    return [(c, shared & set(dims_of(c))) for c in bent if shared & set(dims_of(c))]


def _overlaps(coordinate: AffineExpr, shared: set[int], node: Node) -> bool:
    """Whether neighbouring windows have more than `MOST_SHARED` of what they read in common."""
    found = linear_terms(coordinate)
    if found is None:
        return True
    steps, _ = found
    inner = [(abs(step), node.loops[loop]) for loop, step in steps.items() if loop not in shared]
    if not all(isinstance(size, int) for _, size in inner):
        return True
    extent = 1 + sum(step * (size - 1) for step, size in inner if isinstance(size, int))
    return min(abs(steps[loop]) for loop in shared) < (1 - MOST_SHARED) * extent
