"""The loop of a softmax that a target may meet block by block, with a running maximum and sum
(`analysis/online_softmax.py`).

What lies between the members of a group along such a loop takes scratch for a block of it, however long it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.passes.fusion.loop_classes import Loop, loop_classes
from fuseline.passes.fusion.node import Node


@dataclass(frozen=True, eq=False)
class OnlineReductionNodes:
    """A softmax and the product behind it that share a group. `points` of the loop are met at a time at the least.

    `loops` are those of the nodes that reduce along it, and of the first node that reads the scores beside them.
    """

    nodes: tuple[Node, ...]
    roles: SoftmaxRoles[Node]
    loops: tuple[Loop, ...]
    points: int

    @property
    def reductions(self) -> frozenset[Node]:
        """The nodes that reduce along the loop."""
        return frozenset(self.roles.reductions)

    @property
    def product(self) -> Node:
        """The last of them."""
        return self.roles.product


def streamed_loops(
    members: Sequence[Node],
    placed: Collection[Node],
    results: Collection[SSAValue],
    streams: Sequence[OnlineReductionNodes],
) -> frozenset[Loop]:
    """The loops of `members` that are met block by block: none where some member, or someone outside, needs more than a
    block at a time.

    Args:
        placed: the members that are not read in place.
        results: the values that leave the group.
    """
    if len(streams) != 1:
        return frozenset()
    (stream,) = streams
    classes = loop_classes(members, stream.loops)
    class_ = classes.of(stream.loops[0])
    loops = frozenset((node, loop) for node in members for loop in classes.along(node, class_))
    reduced = frozenset(node for node, loop in loops if node.iterators[loop] != "parallel")
    if class_ in classes.broken or reduced != stream.reductions or not placed:
        return frozenset()
    leaving = any(
        (node, loop) in loops
        for node in members
        for i, value in enumerate(node.op.results)
        if value in results
        for loop in node.written[i]
    )
    return frozenset() if leaving else loops
