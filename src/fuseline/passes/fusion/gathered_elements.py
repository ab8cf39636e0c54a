"""What it takes to evaluate a producer where a body picks its elements, rather than to store it and to pick those.

    %t[i, c] = %a[i, c] + %b[c, i]                     by itself: one table, in whose rows vectors lie
    %y[k, c] = extract %t[%place[k], c]      =>        %a in rows, %b element by element; each as often as picked

Beyond the arithmetic, each operand that vectors find spread out in memory is gathered, in place of the one table.
Measured with AVX-512, a sum of two tables of `[2, 32, 32, 64]`, each element picked 4 times, time of the one dispatch
to that of two, 1 and 2 threads (quiet): places of its own for each element of f32 1.14 and 1.29, of f16 1.91 and 1.96;
rows of f32 taken whole .88 to 1.04, of f16 that is stored as f32 .72 to 1.1, of f16 .88 to 1.13. A quarter of the
elements picked, each by itself: f32 .28 and .37, f16 .71 and .67.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from fuseline.analysis.structured import body_ops, is_generic
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product
from fuseline.passes.fusion.collected_rows import arithmetic, collected_row, gathered_ns, moving_ns, row_ns
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.lane_places import Place, is_spread, moved, place_of
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.rule import Merge


def is_gathered(read: Read) -> bool:
    """Whether a body extracts what it reads at indices of its own."""
    return read.value in read.consumer.captured


def picked(read: Read) -> float:
    """How many elements a body extracts for each that there is, at the sizes that are assumed: a few rows of a table
    are less than all of it. 0 where there is none."""
    made = assumed_size(product(read.producer.loops)) if read.producer is not None else 1
    return read.consumer.picks * _points(read.consumer) / max(1, made)


def evaluated_by_element_ns(merge: Merge, graph: FusionGraph) -> float:
    """How much longer the producer takes where its elements are picked, all reads gathered, than by itself,
    nanoseconds of one thread: evaluated one by one, or in rows that are made whole (`collected_rows.py`)."""
    read_by = {read.consumer: read for read in merge.reads}
    alone = _work(merge) * merge.target.costs.operation_ns
    return sum(min(_by_element_ns(read, merge), _in_rows_ns(read, merge, graph)) for read in read_by.values()) - alone


def _work(merge: Merge) -> int:
    """Operations of the producer by itself. What is widened is part of the loads; what is rounded is an operation."""
    return sum(_points(node) * arithmetic(node.op) for node in merge.producer.members)


def _by_element_ns(read: Read, merge: Merge) -> float:
    """What it takes to evaluate each element by itself, rather than to gather it from a table."""
    return picked(read) * _work(merge) * merge.target.costs.operation_ns + _gathering_ns(read, merge)


def _in_rows_ns(read: Read, merge: Merge, graph: FusionGraph) -> float:
    """What it takes to make rows, beyond what moves where the table is made, and gather from them rather than from
    that; infinity where there are none."""
    node, makers, target = read.consumer, {one.op for one in merge.producer.members}, merge.target
    if merge.consumer.heavy or merge.consumer.reduces or not is_generic(node.op):
        return inf
    row = collected_row(node.op, read.value, makers, graph.shapes, target.threads)
    if row is None or read.producer is None:
        return inf
    once = _points(read.producer) * moving_ns(row, makers, graph.shapes, target.costs)
    return _points(node) * row_ns(row, makers, graph.shapes, target.costs) - once


def _points(node: Node) -> int:
    return assumed_size(product(node.loops))


def _gathering_ns(read: Read, merge: Merge) -> float:
    """To gather what the table is made of rather than the table."""
    total, costs = 0.0, merge.target.costs
    for place in _places(read):
        spread = {(value, at): times for value, at, times in _behind(read.value, place, merge) if is_spread(at)}
        total += sum(times * gathered_ns(value, costs) for (value, _), times in spread.items())
        total -= gathered_ns(read.value, costs) if is_spread(place) else 0.0
    return total * _points(read.consumer)


def _places(read: Read) -> Iterator[Place]:
    """Where a body extracts elements of what it reads, from lane to lane along the innermost loop of its result."""
    node = read.consumer
    view, lanes = node.structured, node.innermost
    if view is None or lanes is None:
        return
    for op in body_ops(view.op):
        if isinstance(op, tensor.ExtractOp) and op.tensor is read.value:
            yield place_of(view, list(op.indices), lanes)


def _behind(value: SSAValue, place: Place, merge: Merge) -> Iterator[tuple[SSAValue, Place, int]]:
    """What the producer loads to make `value` at `place`, each with where it lies and how often its body picks it."""
    maker = next((node for node in merge.producer.members if value in node.op.results), None)
    if maker is None:
        yield value, place, 1
        return
    loops = dict(zip(maker.written[maker.result_index(value)], place, strict=True))
    for read in maker.reads:
        if not read.filled:
            at = tuple(moved(at, loops) for at in read.coordinates)
            again = maker.picks if None in read.coordinates else 1
            yield from ((one, where, times * again) for one, where, times in _behind(read.value, at, merge))
