"""What lies in scratch between members, and at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from xdsl.ir import SSAValue

from fuseline.ir.build import dims_map
from fuseline.ir.costs import LINE_BYTES
from fuseline.passes.fusion.group import BLOCK_POINTS, Group
from fuseline.passes.fusion.kept_values import kept_values, lives, most_at_a_time
from fuseline.passes.fusion.merging import align, merged
from fuseline.passes.fusion.node import Node
from tests.draws import RNG

from .programs import TARGET, Program, nodes_of


def _sizes(count: int) -> list[int]:
    return [int(size) for size in RNG.integers(2, 200, count)]


def _products(rows: int, widths: list[int]) -> Program:
    """Products one after the other, of `rows` rows and as many columns as `widths` say."""
    p = Program((rows, widths[0]), *pairwise(widths))
    value = p.x[0]
    for weights in p.x[1:]:
        value = p.matmul(value, weights)
    return p.done(value)


def _by_rows(p: Program) -> Group:
    """All ops as one group that shares the first loop."""
    nodes = nodes_of(p)
    rows = nodes[0].loops[0]
    return Group(nodes, (rows,), {node: (0, *[None] * (len(node.loops) - 1)) for node in nodes})


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_of_products_in_a_row_two_lie_there_at_a_time(count: int):
    widths = _sizes(count + 1)
    group = _by_rows(_products(64, widths))
    each = [BLOCK_POINTS * 4 * width + LINE_BYTES for width in widths[1:-1]]
    assert group.scratch_bytes == max(one + other for one, other in pairwise([*each, 0]))


def test_what_is_read_at_the_end_lies_there_all_the_time():
    wide, narrow = _sizes(2)
    p = Program((64, wide), (wide, wide), (wide, narrow), (narrow, wide))
    first = p.matmul(p.x[0], p.x[1])
    p.done(p.add(p.matmul(p.matmul(first, p.x[2]), p.x[3]), first))
    each = [BLOCK_POINTS * 4 * width + LINE_BYTES for width in (wide, narrow)]
    assert _by_rows(p).scratch_bytes == sum(each)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_what_an_epilogue_hands_out_at_once_lies_nowhere(steps: int, turned: bool):
    narrow, wide = _sizes(2)
    p = Program((64, wide), (wide, narrow), (narrow, wide))
    value = p.matmul(p.matmul(p.x[0], p.x[1]), p.x[2])
    for step in range(steps):
        value = p.unary(value, permutation=(1, 0) if turned and step == 0 else None)
    p.done(value)
    assert _by_rows(p).scratch_bytes == BLOCK_POINTS * 4 * narrow + LINE_BYTES


def test_what_a_sum_reads_behind_an_epilogue_lies_there():
    narrow, wide = _sizes(2)
    p = Program((64, narrow), (narrow, wide))
    p.done(p.reduce(p.unary(p.matmul(p.x[0], p.x[1]))))
    assert _by_rows(p).scratch_bytes == BLOCK_POINTS * 4 * wide + LINE_BYTES


@pytest.mark.parametrize("steps", [1, 3])
def test_what_is_evaluated_where_it_is_read_keeps_what_it_reads(steps: int):
    """Elementwise ops with one reader each lie nowhere."""
    wide, narrow = _sizes(2)
    p = Program((64, wide), (wide, narrow), (narrow, wide))
    value = p.matmul(p.x[0], p.x[1])
    for _ in range(steps):
        value = p.unary(value)
    p.done(p.matmul(value, p.x[2]))
    members = nodes_of(p)
    roots = [node for node in members if node.reduces]
    every, last = (1 << steps + 2) - 1, 1 << steps + 1
    assert lives(members, roots) == {**dict.fromkeys(members, every), members[-1]: last} | {
        node: every >> number << number for number, node in enumerate(members)
    }
    inner = {node: list(range(1, len(node.loops))) for node in members}
    assert [(one.value, one.elements) for one in kept_values(members, inner.__getitem__)] == [
        (members[0].op.results[0], narrow)
    ]


def test_rows_of_nests_lie_there_all_together():
    """A group without blocks keeps no order of its members."""
    p = Program((16, 32))
    value: SSAValue = p.x[0]
    for _ in range(3):
        value = p.unary(value)
        value = p.binary(value, p.reduce(value), dims_map(2, [0]))
    first, *rest = [Group.of(node) for node in nodes_of(p.done(value))]
    for other in rest:
        first = merged(first, other, align(first, other))
    assert not first.blocked and first.scratch_bytes == 3 * (32 * 4 + LINE_BYTES)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 20])
def test_the_peak_is_that_of_the_worst_member(count: int):
    lives = [{int(at) for at in RNG.integers(0, 30, RNG.integers(1, 12))} for _ in range(count)]
    sizes = [(int(RNG.integers(1, 99)), life) for life in lives]
    worst = max((sum(size for size, life in sizes if at in life) for at in range(30)), default=0)
    assert most_at_a_time([(size, sum(1 << at for at in life)) for size, life in sizes]) == worst


def _random_members() -> list[Node]:
    p = Program((8, 8), (8, 8))
    values: list[SSAValue] = list(p.x)
    for _ in range(20):
        one, other = (values[-1 - int(RNG.integers(min(5, len(values))))] for _ in range(2))
        values.append(p.matmul(one, other) if RNG.integers(2) else p.add(one, other))
    return nodes_of(p.done(values[-1]))


def _shuffled(members: list[Node]) -> list[Node]:
    """Another order in which values are made before they are read."""
    order, left = list[Node](), list(members)
    while left:
        ready = [node for node in left if not any(read.producer in left for read in node.reads)]
        order.append(ready[int(RNG.integers(len(ready)))])
        left.remove(order[-1])
    return order


def test_a_value_may_lie_there_where_it_does_in_some_order():
    """Random programs: from where it is made to the last member that reads it, or evaluates such a reader."""
    members = _random_members()
    kept = {node for node in members if node.reduces or len(node.readers) > 1}
    found = lives(members, kept)
    for _ in range(20):
        order = _shuffled(members)
        number = {node: i for i, node in enumerate(order)}

        def last(node: Node, number: dict[Node, int] = number) -> int:
            ends = [number[r.consumer] if r.consumer in kept else last(r.consumer) for r in node.readers]
            return max(ends, default=number[node])

        for node in members:
            lies = [one for one in order if number[node] <= number[one] <= last(node)]
            assert all(found[node] >> members.index(one) & 1 for one in lies)


def test_the_most_at_a_time_does_not_depend_on_the_order():
    members = _random_members()
    kept = {node for node in members if node.reduces or len(node.readers) > 1}
    sizes = {node: int(RNG.integers(1, 99)) for node in members}
    peaks = {
        most_at_a_time([(sizes[node], life) for node, life in lives(order, kept).items() if node in kept])
        for order in (members, _shuffled(members), _shuffled(members))
    }
    assert len(peaks) == 1


@pytest.mark.parametrize("count", [4, 6, 8])
def test_a_long_chain_is_one_dispatch_where_each_step_fits(count: int):
    """All intermediates together would not."""
    each = BLOCK_POINTS * 4 * 16 + LINE_BYTES
    p = _products(64, [16] * (count + 1))
    dear = replace(TARGET, costs=replace(TARGET.costs, launch_ns=1e6))
    for room, fits in ((2 * each, True), (2 * each - 1, False)):
        groups = p.partition(replace(dear, scratch_bytes_limit=room)).groups
        assert (len(groups) == 1) == fits
