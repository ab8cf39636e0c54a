"""What may join an op that a kernel of its own makes in one walk (`Node.is_sequential`).

A scatter keeps its running totals where a result lies, and works on them once more when its walk is over:

    fill ──> scatter ──> relu      =>      scatter, then relu of each total

So elementwise ops over its parallel loops may follow, if one result has the type of the totals. What it reads may be
evaluated inside the walk (`walk_prologue.py`). Neither another walk nor anything that moves or reduces fits beside it.
What may join a rank is in `order_walk.py`.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from fuseline.analysis.structured import Kind
from fuseline.analysis.walks import Scatter
from fuseline.ir.dim import product, upper_bound
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.order_walk import follows_order, is_order, parallelism_refusal, precedes_order, rank_in
from fuseline.passes.fusion.rule import Merge, Shape
from fuseline.passes.fusion.walk_prologue import loaded_on_the_way, made_before, may_precede

LINES_PER_WORKGROUP = 64
"""Elements across the walk that one workgroup takes: a few vectors."""


def walk_refusal(merge: Merge) -> WhyNot | None:
    """Why two groups cannot be one because one of them is made in a walk; None where neither is, or the other may
    follow the walk, or be read in it."""
    walked = [group for group in (merge.producer, merge.consumer) if group.is_sequential]
    if not walked:
        return None
    node = next(node for node in walked[0].members if node.is_sequential)
    if is_order(merge):
        return None
    if len(walked) == 1 and rank_in(walked[0]) is not None:
        return parallelism_refusal(merge) if follows_order(merge) or precedes_order(merge) else _by_itself(node)
    if len(walked) == 1 and _follows(merge, node):
        return _results_refusal(merge.shared, node) or _parallelism_refusal(merge, node)
    if len(walked) == 1 and walked[0] is merge.consumer and may_precede(merge.producer, node):
        return None if loaded_on_the_way(merge.producer) else _parallelism_refusal(merge, node)
    return _by_itself(node)


def _by_itself(node: Node) -> WhyNot:
    return WhyNot("walk", f"{node.name} is made in one walk over what it combines, by a kernel of its own", node.name)


def walk_takes(merge: Merge, shape: Shape) -> bool:
    """Whether two groups could be joined so as far as a walk goes: what it reads is evaluated there, in an order that
    only the run tells, and never over loops of its own."""
    if shape is Shape.INLINE_PRODUCER or not merge.consumer.is_sequential or merge.producer.is_sequential:
        return True
    if rank_in(merge.consumer) is not None:
        return False
    return _follows(merge, next(node for node in merge.consumer.members if node.is_sequential))


def _follows(merge: Merge, node: Node) -> bool:
    """Whether the other group is elementwise work behind the walk of `node`, point by point."""
    other, walked = merge.consumer, merge.producer
    if not walked.is_sequential:
        other, walked = walked, other
    before = made_before(walked, node)
    return (
        isinstance(node.idiom, Scatter)
        and all(member.kind is Kind.ELEMENTWISE for member in other.members)
        and all(read.consumer not in before for read in merge.reads)
        and not merge.regrouped
        and merge.alignment.exact
    )


def _results_refusal(group: Group, node: Node) -> WhyNot | None:
    """The totals lie in a result until the walk is over, and nothing is written but what follows from them."""
    leaving = group.body.leaving
    if not leaving <= _behind(group, node):
        return WhyNot("walk", f"a result does not follow from the totals of {node.name}", node.name)
    types = {_element_type(value) for one in leaving for value in one.op.results}
    if _element_type(node.op.results[0]) in types:
        return None
    return WhyNot("walk", f"no result has the type of the totals of {node.name}, which lie there meanwhile", node.name)


def _behind(group: Group, node: Node) -> set[Node]:
    """`node` and the members that follow from it."""
    found = {node}
    for member in group.members:
        if any(read.producer in found for read in member.reads):
            found.add(member)
    return found


def _element_type(value: SSAValue) -> object:
    return getattr(value.type, "element_type", None)


def _parallelism_refusal(merge: Merge, node: Node) -> WhyNot | None:
    """By itself the other group is shared out along the loop that the walk takes in order, too."""
    target, other = merge.target, merge.consumer if merge.producer.is_sequential else merge.producer
    workgroups = _workgroups(node)
    if workgroups is None or workgroups >= max(target.threads, 2) or other.most_points <= target.costs.serial_elements:
        return None
    numbers = {"parallel_iterations": float(workgroups), "threads": float(target.threads)}
    return WhyNot(
        "parallelism",
        f"{workgroups} parallel iterations would be left for {target.threads} threads",
        node.name,
        numbers,
    )


def _workgroups(node: Node) -> int | None:
    """How many blocks of lines the walk of `node` has at the most; None without a bound."""
    assert isinstance(node.idiom, Scatter)
    lines = upper_bound(product(node.loops[loop] for loop in node.parallel if loop != node.idiom.scattered))
    return None if lines is None else -(-lines // LINES_PER_WORKGROUP)
