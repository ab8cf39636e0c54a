"""What may join a rank, whose rows are sorted by a kernel of its own.

    keys ──> rank ──> positions ──> elements there      =>      for each row: sort it, and write what is in order

Positions are ranks turned around (`analysis/ranks.py`): a sort has them at once, so that ranks need not exist where
nothing else reads them. Elementwise ops over the places of the positions follow, point by point: what stands there, and
what is computed from it. What makes the keys is evaluated as the row is walked along, once for each element; an op that
the elements are taken from, too, may be evaluated there once more.
"""

from __future__ import annotations

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.ranks import Rank, positions_of
from fuseline.analysis.structured import Kind
from fuseline.analysis.walks import Scatter
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product, upper_bound
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.rule import Merge

EVALUATED = frozenset({Kind.ELEMENTWISE, Kind.GATHER, Kind.SLICE, Kind.CONCAT})
"""What is evaluated where keys are read."""

FOLLOWING = frozenset({Kind.ELEMENTWISE, Kind.GATHER})
"""What is evaluated at each place in the order."""


def rank_in(group: Group) -> Node | None:
    """The member that is a rank, None where there is none."""
    return _of(group, Rank) if group.is_sequential else None


def positions_in(group: Group) -> Node | None:
    """The member that turns ranks around which nothing else reads, wherever these are made; None where there is
    none."""
    node = _of(group, Scatter) if group.is_sequential else None
    return node if node is not None and ranked_by(node) is not None else None


def _of(group: Group, form: type[Rank] | type[Scatter]) -> Node | None:
    return next((node for node in group.members if isinstance(node.idiom, form)), None)


def ranked_by(node: Node) -> Node | None:
    """The node whose ranks `node`, a scatter, turns around, where nothing else reads them."""
    assert isinstance(node.idiom, Scatter)
    for read in node.reads:
        maker = read.producer
        if maker is None or not isinstance(maker.idiom, Rank) or maker.escapes or len(maker.readers) != 1:
            continue
        found = positions_of(node.idiom, maker.idiom)
        if found is not None and found.all_ranked(node.loops):
            return maker
    return None


def is_order(merge: Merge) -> bool:
    """Whether the producer ranks rows, and the consumer turns these ranks around."""
    rank, positions = rank_in(merge.producer), positions_in(merge.consumer)
    if rank is None or positions is None or ranked_by(positions) is not rank:
        return False
    others = [node for node in merge.producer.members if node is not rank]
    inside = merge.consumer.member_set
    return (
        all(merge.producer.is_inlined(node) for node in others)
        and all(read.consumer is positions for read in merge.reads)
        and not any(read.producer in inside for read in positions.reads)
        and rank_in(merge.consumer) is None
        and positions_in(merge.producer) is None
    )


def follows_order(merge: Merge) -> bool:
    """Whether the consumer is elementwise work at the places of positions that the producer makes by sorting."""
    rank, positions = rank_in(merge.producer), positions_in(merge.producer)
    if rank is None or positions is None or merge.regrouped:
        return False
    before = {node for node in merge.producer.members if merge.producer.is_inlined(node)} | {rank}
    return _only_followers(merge) and all(
        read.producer not in before and not merge.consumer.is_inlined(read.consumer) and _in_step(read)
        for read in merge.reads
    )


def _only_followers(merge: Merge) -> bool:
    """Whether all members of the consumer are evaluated at places in the order, or only move what is taken there."""
    inside = merge.consumer.member_set
    waiting = [read.consumer for read in merge.reads]
    behind = set(waiting)
    while waiting:
        further = {read.consumer for read in waiting.pop().readers if read.consumer in inside} - behind
        behind |= further
        waiting += further
    moved = inside - behind
    return all(node.kind in FOLLOWING for node in behind) and all(
        node.moves and node.kind in EVALUATED and node not in merge.consumer.body.leaving for node in moved
    )


def _in_step(read: Read) -> bool:
    """Whether the reader goes over all of what it reads, each element once."""
    maker, reader = read.producer, read.consumer
    assert maker is not None
    if not all(isinstance(at, AffineDimExpr | AffineConstantExpr) for at in read.coordinates):
        return False
    used = [at.position for at in read.coordinates if isinstance(at, AffineDimExpr)]
    written = maker.written[maker.result_index(read.value)]
    alike = all(
        loop is None or maker.loops[loop] == (reader.loops[at.position] if isinstance(at, AffineDimExpr) else 1)
        for loop, at in zip(written, read.coordinates, strict=True)
    )
    moving = {loop for loop, extent in enumerate(reader.loops) if extent != 1}
    return alike and len(set(used)) == len(used) and moving <= set(used)


def precedes_order(merge: Merge) -> bool:
    """Whether the consumer ranks rows, and could evaluate all that the producer does."""
    return rank_in(merge.consumer) is not None and all(node.kind in EVALUATED for node in merge.producer.members)


def parallelism_refusal(merge: Merge) -> WhyNot | None:
    """A row is one thread's: what the other group is by itself is shared out. Refused where that takes longer than to
    store its values and to load them again."""
    walked, other = merge.producer, merge.consumer
    rank = rank_in(walked)
    if rank is None:
        walked, other = other, walked
        rank = rank_in(walked)
    assert rank is not None and isinstance(rank.idiom, Rank)
    threads, costs = merge.target.threads, merge.target.costs
    rows = upper_bound(product(rank.loops[loop] for loop in rank.parallel if loop != rank.idiom.ranked))
    if rows is None or rows >= threads:
        return None
    work = sum(assumed_size(product(node.loops)) * max(node.operations, 1) for node in other.members)
    lost = work * costs.operation_ns * (1 - max(rows, 1) / threads)
    values = {id(read.value): assumed_size(product(read.producer.loops)) for read in merge.reads if read.producer}
    saved = costs.launch_ns + 2 * 4 * sum(values.values()) / costs.stored_bytes_per_ns
    if lost <= saved:
        return None
    numbers = {
        "parallel_iterations": float(rows),
        "threads": float(threads),
        "predicted_loss_ns": float(round(lost - saved)),
    }
    return WhyNot("parallelism", f"{rows} rows would be left for {threads} threads", rank.name, numbers)
