"""Roots that slide over a loop of the grid, and what that costs.

    depthwise(y, x, c) ──> pointwise(y, x, k)        blocks of (y, x): each block reads the rows of the image around it

A block of points of such a root needs more of the image than a block of it, so nothing of the image may be made inside:
`merging.align` drops loops that a value made inside is read along out of step.
"""

from __future__ import annotations

from xdsl.ir.affine import AffineExpr

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import CHANNEL_WINDOWS, HEAVY
from fuseline.analysis.window_overlap import overlaps
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node, plain_coordinate
from fuseline.passes.fusion.tile_cost import compute_ns


def slid_root(group: Group) -> Node | None:
    """A root that reads through a window over a grid loop: a block of its points needs more than a block of the
    operand."""
    return next((node for node in _placed(group) if _bent(node, group)), None)


def sliding_ns(group: Group, target: TargetDescription) -> float:
    """Time that the roots of a group take longer since one of them slides over the blocks, nanoseconds of one thread;
    0 where all are windows over one image channel by channel, and where they hardly overlap (`window_overlap.py`)."""
    if not group.blocked or all(node.kind in CHANNEL_WINDOWS for node in group.members if node.reduces):
        return 0.0
    slid = any(
        overlaps(coordinate, shared, node.loops) for node in _placed(group) for coordinate, shared in _bent(node, group)
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
