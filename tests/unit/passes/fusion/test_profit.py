"""What merges save and cost: bytes that stay inside, work that is done again, workgroups that are left."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from xdsl.dialects.builtin import f64
from xdsl.ir.affine import AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.driver import partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, merged
from fuseline.passes.fusion.profit import (
    EVALUATION_NS,
    costs_more,
    unprofitable,
    weigh,
    weigh_reads,
)
from fuseline.passes.fusion.rule import Merge, builtin_rules
from fuseline.passes.fusion.tile_cost import block_passes, compute_ns, direct_ns, reread_ns
from tests.draws import RNG

from .programs import TARGET, Program

COSTS = TARGET.costs


def _graph(p: Program) -> tuple[FusionGraph, list[Group]]:
    """The groups of one op each, in program order."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, [Group.of(node) for node in sorted(graph.nodes, key=lambda node: node.position)]


def _merged(producer: Group, consumer: Group) -> Group:
    return merged(producer, consumer, align(producer, consumer))


@pytest.mark.parametrize(
    ("also", "saved"),
    [("nothing", 2), ("the caller", 1), ("a reader outside", 1)],
    ids=["store and load", "result", "reader outside"],
)
def test_a_value_that_is_stored_all_the_same_saves_its_load_only(also: str, saved: int):
    p = Program((16, 32))
    value = p.unary(p.x[0])
    last = p.unary(value)
    others = {"nothing": (), "the caller": (value,), "a reader outside": (p.reduce(value),)}[also]
    graph, groups = _graph(p.done(last, *others))
    assert weigh(Merge(groups[0], groups[1], TARGET), graph).bytes_saved == saved * 16 * 32 * 4


def test_a_value_read_twice_is_saved_once():
    p = Program((16, 32))
    value = p.unary(p.x[0])
    graph, (first, second) = _graph(p.done(p.binary(value, value)))
    reads = list(second.reads_from(first))
    assert len(reads) == 2
    assert weigh_reads(reads, (first, second), graph).bytes_saved == 2 * 16 * 32 * 4


def _rows() -> tuple[FusionGraph, Group, Group, Group]:
    """A product whose rows are summed, in blocks of rows."""
    p = Program((1024, 64), (64, 256))
    graph, (product, total) = _graph(p.done(p.reduce(p.matmul(p.x[0], p.x[1]))))
    return graph, product, total, _merged(product, total)


def test_the_weight_is_read_again_for_each_block_of_rows():
    graph, product, _, both = _rows()
    assert both.blocked and not product.blocked
    assert reread_ns(product, graph, TARGET) == 0
    assert both.scratch_bytes is not None
    assert reread_ns(both, graph, replace(TARGET, threads=1)) == 0
    threads = int(RNG.integers(2, 64))
    assert reread_ns(both, graph, replace(TARGET, threads=threads)) == pytest.approx(
        (threads - 1) * 64 * 256 * 4 / COSTS.packed_bytes_per_ns
    )
    assert compute_ns(both, TARGET) == pytest.approx(2 * 1024 * 64 * 256 / COSTS.flops_per_ns)


def test_threads_share_a_constant_that_they_read_at_the_same_time(monkeypatch: pytest.MonkeyPatch):
    """A thread's blocks one after the other read it from memory again, those of several threads do not."""
    graph, _, _, both = _rows()
    size, points = 64 * 256 * 4, int(RNG.integers(8, 64))
    monkeypatch.setattr(graph, "is_constant", lambda _: True)
    assert both.scratch_bytes is not None
    costs = replace(COSTS, block_bytes=ceil(both.scratch_bytes * points / 8))
    alone = replace(TARGET, threads=1, scratch_bytes_limit=1, costs=costs)
    passes = 1024 / points
    in_turn = (passes - 1) * size / COSTS.streamed_bytes_per_ns
    assert reread_ns(both, graph, alone) == pytest.approx(in_turn, rel=1e-2)
    threads = int(RNG.integers(2, 9))
    some = (passes / threads - 1) * size / COSTS.streamed_bytes_per_ns
    shared = (passes - passes / threads) * size / COSTS.shared_bytes_per_ns
    assert reread_ns(both, graph, replace(alone, threads=threads)) == pytest.approx(some + shared, rel=1e-2)
    one_each = replace(TARGET, threads=threads)
    assert reread_ns(both, graph, one_each) == pytest.approx((threads - 1) * size / COSTS.shared_bytes_per_ns)


def test_windows_that_do_not_overlap_are_as_products():
    """Blocks of rows of a window with a stride alone hold as much as blocks of a product, those of a wider window
    what the target allows."""
    for taps, held in ((1, COSTS.block_bytes), (3, 1)):
        p = Program((2047 + taps, 16), (taps, 16, 64), (64, 256))
        image = AffineMap.from_callable(lambda w, f, k, c: (w * 2 + k, c))
        maps = [image, dims_map(4, [2, 3, 1]), dims_map(4, [0, 1])]
        window = p.multiply_add(p.x[0], p.x[1], p.zeros(1024, 64, emit=p.emit), maps, "pprr", p.emit)
        _, (first, second) = _graph(p.done(p.matmul(window, p.x[2])))
        both = _merged(first, second)
        assert both.scratch_bytes is not None
        fits = max(8.0, held * 8 / both.scratch_bytes)
        assert block_passes(both, (), replace(TARGET, threads=1, scratch_bytes_limit=1)) == pytest.approx(
            max(1.0, 1024 / fits)
        )


def test_blocks_of_rows_hold_what_kernels_keep_between_products():
    graph, _, _, both = _rows()
    assert both.scratch_bytes is not None
    points = float(RNG.integers(8, 1024))
    held = ceil(both.scratch_bytes * points / 8)
    alone = replace(TARGET, threads=1, scratch_bytes_limit=1)
    small = replace(alone, costs=replace(COSTS, block_bytes=held))
    assert reread_ns(both, graph, small) == pytest.approx(
        (1024 / points - 1) * 64 * 256 * 4 / COSTS.packed_bytes_per_ns, rel=1e-2
    )
    assert reread_ns(both, graph, replace(small, scratch_bytes_limit=both.scratch_bytes * 1024 // 8)) == 0


def test_sums_of_64_bits_take_twice_as_long():
    rows, steps, columns = (int(n) for n in RNG.integers(2, 99, 3))
    p = Program((rows, steps), (steps, columns), element=f64)
    product = p.matmul(p.x[0], p.x[1])
    _, (group,) = _graph(p.done(product))
    assert compute_ns(group, TARGET) == pytest.approx(4 * rows * steps * columns / COSTS.flops_per_ns)


def test_more_threads_make_smaller_blocks_that_read_more():
    graph, _, _, both = _rows()
    some, many = (reread_ns(both, graph, replace(TARGET, threads=threads)) for threads in (2, 16))
    assert many > some > 0


def test_what_is_streamed_is_weighed_against_what_is_saved():
    graph, product, total, both = _rows()
    many = replace(TARGET, threads=16)
    streamed = reread_ns(both, graph, many)
    slack = 0.02 * compute_ns(both, many)
    launch = COSTS.launch_ns
    pays = int((streamed - slack - launch) * COSTS.stored_bytes_per_ns)
    assert costs_more(both, (product, total), graph, many, pays + 64, "default") is None
    assert pays > 64
    assert costs_more(both, (product, total), graph, many, pays - 64, "default") is not None


def test_a_refusal_has_the_sum_and_names_the_largest_part():
    graph, product, total, both = _rows()
    refusal = costs_more(both, (product, total), graph, TARGET, 0, "default", {EVALUATION_NS: 1e9})
    assert refusal is not None
    assert (refusal.code, refusal.at) == ("unprofitable", both.root.name)
    numbers = refusal.numbers
    more = numbers["predicted_loss_ns"] + COSTS.launch_ns
    assert (
        refusal.detail
        == f"the producer would be evaluated again: {more / 1000:,.1f} us more for {COSTS.launch_ns / 1000:,.1f} us "
        f"saved"
    )
    assert numbers[EVALUATION_NS] == 1e9 and numbers["saved_ns"] == COSTS.launch_ns
    assert numbers["predicted_loss_ns"] == pytest.approx(
        numbers["streamed_ns"] + numbers["direct_ns"] + 1e9 - COSTS.launch_ns, abs=2
    )


def test_without_an_evaluation_the_costs_are_those_of_streaming():
    graph, product, total, both = _rows()
    slow = replace(TARGET, costs=replace(COSTS, packed_bytes_per_ns=1e-4))
    refusal = costs_more(both, (product, total), graph, slow, 0, "default")
    assert refusal is not None and refusal.detail.startswith("operands would be read again")
    assert refusal.numbers[EVALUATION_NS] == 0


def test_aggressive_fusion_takes_a_greater_loss():
    graph, product, total, both = _rows()
    work = compute_ns(both, TARGET)
    between = COSTS.launch_ns + 0.08 * work - reread_ns(both, graph, TARGET)
    assert costs_more(both, (product, total), graph, TARGET, 0, "default", {EVALUATION_NS: between}) is not None
    assert costs_more(both, (product, total), graph, TARGET, 0, "aggressive", {EVALUATION_NS: between}) is None


def test_nothing_is_weighed_where_nothing_is_streamed():
    p = Program((16, 32))
    graph, (first, second) = _graph(p.done(p.unary(p.unary(p.x[0]))))
    merge, both = Merge(first, second, TARGET), _merged(first, second)
    limit = 4096 / COSTS.stored_bytes_per_ns + COSTS.launch_ns
    assert unprofitable(both, merge, graph, 4096, "default", {EVALUATION_NS: limit}) is None
    refusal = unprofitable(both, merge, graph, 4096, "default", {EVALUATION_NS: limit + 1})
    assert refusal is not None and refusal.numbers[EVALUATION_NS] == round(limit + 1)


def test_a_window_of_three_wants_its_filter_whole():
    p = Program((34, 32), (3, 32, 64))
    _, (product, total) = _graph(p.done(p.reduce(p.convolution(p.x[0], p.x[1]), axis=0)))
    both = _merged(product, total)
    gain = 1 - 1 / COSTS.filtering_gain
    assert direct_ns(both, TARGET) == pytest.approx(gain * 2 * 32 * 64 * 3 * 32 / COSTS.flops_per_ns)
    assert direct_ns(product, TARGET) == 0
    assert direct_ns(both, replace(TARGET, numerics="strict")) == 0
    assert direct_ns(both, replace(TARGET, costs=replace(COSTS, filtering_channels=33))) == 0
    assert direct_ns(both, replace(TARGET, costs=replace(COSTS, filtering_channels=32))) > 0


def test_a_window_of_two_is_not_filtered():
    p = Program((33, 32), (2, 32, 64))
    _, (product, total) = _graph(p.done(p.reduce(p.convolution(p.x[0], p.x[1]), axis=0)))
    assert direct_ns(_merged(product, total), TARGET) == 0


def test_the_default_level_has_its_slack():
    """A partition that names no level weighs what is streamed as one at the level `default`."""
    p = Program((1024, 64), (64, 256))
    p.done(p.reduce(p.matmul(p.x[0], p.x[1])))
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    named = partition(graph, builtin_rules(), TARGET, "default")
    records = [partition(graph, builtin_rules(), TARGET).decisions, named.decisions]
    assert records[0] == records[1]
    assert len(records[0]) == 1
