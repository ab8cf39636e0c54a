"""What threads are left without work by a merge: a dispatch of fewer workgroups than there are threads.

    exp(i, j) ──> sum(i, j)        by themselves: all threads, then one;  together: one

That takes longer where the values are much work and are hardly stored: then the driver records `parallelism` with the
numbers. Where a sum is one workgroup anyway, it may take less time to evaluate its operands there than to store them in
parallel and to load them again: points and rows are weighed by the target's figures. Roots are not: one that is cut
for no workgroup is cut for its caches no more. Nor is what reads at other points than its own, and may evaluate an
element more than once.

Where only the run tells how many rows or images there are, roots are judged by the fewest as well: a batch is mostly
of one image, a decoder's steps have one row, and what is shared out by such a loop alone is one thread's then. Not so
where the sizes of an image are unknown: that of one pixel is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from fuseline.analysis.structured import Kind
from fuseline.ir.costs import ASSUMED_SIZE, MachineCosts, assumed_size
from fuseline.ir.dim import Dim, lower_bound, product, upper_bound
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import BLOCK_POINTS, Group
from fuseline.passes.fusion.node import node_operations
from fuseline.passes.fusion.order_walk import rank_in
from fuseline.passes.fusion.tile_cost import compute_ns

Bound = Callable[[Iterable[Dim]], int | None]
"""How many points loops have that a merge is judged by: the most, None without a bound, or the fewest."""


def most_points(loops: Iterable[Dim]) -> int | None:
    """The most points that loops have together; None without a bound."""
    return upper_bound(product(loops))


def becomes_serial(
    group: Group, merged: Sequence[Group], target: TargetDescription, bound: Bound = most_points
) -> bool:
    """Whether a merge leaves fewer workgroups than threads where there were more.

    One thread counts as two: a root whose loops all lie inside a workgroup is cut for its caches no more.
    """
    left = _workgroups(group, target, bound)
    before = max(_iterations(former, bound) for former in merged)
    return left is not None and left < max(target.threads, 2) and left < before


def loses_parallelism(
    group: Group, merged: Sequence[Group], graph: FusionGraph, target: TargetDescription
) -> WhyNot | None:
    """The refusal of a merge that would leave a large dispatch with fewer workgroups than threads, None where it does
    not, or where what stays inside saves more than the other threads did."""
    if rank_in(group) is not None:
        return None  # `walk_epilogue.py` has asked
    if not becomes_serial(group, merged, target) or _work(group) <= target.costs.serial_elements:
        return None
    numbers: dict[str, float] = {}
    if not group.heavy and not group.reads_elsewhere:
        lost = elapsed_ns(group, graph, target) - sum(elapsed_ns(former, graph, target) for former in merged)
        if lost <= 0:
            return None
        numbers["predicted_loss_ns"] = float(round(lost))
    return _refusal(group, target, most_points, numbers)


def loses_it_for_few(group: Group, merged: Sequence[Group], target: TargetDescription) -> WhyNot | None:
    """The same at the fewest points that there can be, for roots that several threads would share out even so."""
    if target.threads == 1 or not group.heavy or group.unknown_pixels or rank_in(group) is not None:
        return None
    if not becomes_serial(group, merged, target, _fewest_points):
        return None
    work = sum(_fewest_points(node.loops) for node in group.members if node.heavy)
    return _refusal(group, target, _fewest_points, {}) if work > target.costs.serial_elements else None


def _fewest_points(loops: Iterable[Dim]) -> int:
    """At least 1 each: of nothing there is nothing to share."""
    return prod(max(lower_bound(extent) or 0, 1) for extent in loops)


def _refusal(group: Group, target: TargetDescription, bound: Bound, numbers: Mapping[str, float]) -> WhyNot:
    left = _workgroups(group, target, bound)
    assert left is not None
    detail = f"{left} parallel iterations would be left for {target.threads} threads"
    counts = {"parallel_iterations": float(left), "threads": float(target.threads)}
    return WhyNot("parallelism", detail, group.root.name, {**counts, **numbers})


def elapsed_ns(group: Group, graph: FusionGraph, target: TargetDescription) -> float:
    """What a dispatch of points and rows takes, nanoseconds: its operations (each value evaluated once) or what it
    loads and stores, whichever takes longer, shared among the threads that have a workgroup."""
    costs = target.costs
    operations = sum(assumed_size(product(node.loops)) * node_operations(node) for node in group.members)
    moved = sum(_transfer_ns(graph.num_bytes(value), costs) for value in group.buffers())
    busy = min(target.threads, max(_iterations(group), 1))
    return costs.launch_ns + max(operations * costs.operation_ns, moved) / busy


def _transfer_ns(size: Dim, costs: MachineCosts) -> float:
    """What a thread takes to load or to store so many bytes."""
    return assumed_size(size) / costs.intermediate_bytes_per_ns(upper_bound(size))


def _work(group: Group) -> int:
    """Points of the largest member, or of all roots together: they run one after the other."""
    return max(group.most_points, group.root_points)


def _workgroups(group: Group, target: TargetDescription, bound: Bound) -> int | None:
    """How many workgroups there are; None without a bound."""
    points = bound(group.grid)
    return points if points is None or not group.blocked else -(-points // _least_block(group, target))


def _least_block(group: Group, target: TargetDescription) -> int:
    """Points of a workgroup at the least: where the grid is the loop that vectors run along a register tile's two, or
    the one of a depthwise window's. What is so little work that a program of it would stay on the calling thread is
    taken for any other, and one thread has nobody to share with."""
    root, grid_loops = group.root, group.grid_loop_of.get(group.root, ())
    moving = [at for at, extent in enumerate(group.grid) if extent != 1]
    along = root.innermost is not None and bool(grid_loops) and [grid_loops[root.innermost]] == moving
    if not along or target.threads == 1 or compute_ns(group, target) <= target.costs.serial_below_ns:
        return BLOCK_POINTS
    vectors = 1 if any(node.kind is Kind.DEPTHWISE for node in group.members) else 2
    return max(BLOCK_POINTS, vectors * target.costs.lanes)


def _iterations(group: Group, bound: Bound = most_points) -> int:
    found = bound(group.grid)
    return found if found is not None else ASSUMED_SIZE
