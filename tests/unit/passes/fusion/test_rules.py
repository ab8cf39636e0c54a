"""Every rule: a case that fuses, and one case per refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.ir.affine import AffineMap

from fuseline.ir.build import dims_map
from fuseline.passes.fusion.rule import builtin_rules
from fuseline.passes.fusion.rules.elementwise_epilogue import ElementwiseEpilogue

from .programs import TARGET, Program


def test_an_elementwise_consumer_of_a_contraction_becomes_its_epilogue():
    p = Program((64, 32), (32, 48), (48,))
    y = p.binary(p.matmul(p.x[0], p.x[1]), p.x[2], dims_map(2, [1]))
    decision = p.done(y).decisions()["contraction", "elementwise"]
    assert (decision.rule, decision.verdict, decision.code) == ("elementwise-epilogue", "fused", "fused")
    assert decision.numbers["bytes_saved"] == 2 * 64 * 48 * 4


def test_a_transposed_write_is_an_epilogue_too():
    p = Program((64, 32), (32, 48))
    y = p.unary(p.matmul(p.x[0], p.x[1]), permutation=(1, 0))
    assert p.done(y).decisions()["contraction", "elementwise"].verdict == "fused"


def test_an_epilogue_that_reads_the_root_twice_at_different_places_is_refused():
    p = Program((64, 32), (32, 64))
    m = p.matmul(p.x[0], p.x[1])
    decision = p.done(p.binary(m, m, dims_map(2, [1, 0]))).decisions()["contraction", "elementwise"]
    assert (decision.verdict, decision.code) == ("missed", "indexing-map")


def test_a_consumer_with_more_parallel_loops_than_the_root_is_refused():
    p = Program((64, 32), (32, 48), (10, 64, 48))
    m = p.matmul(p.x[0], p.x[1])
    y = p.binary(p.x[2], m, dims_map(3, [1, 2]))
    decision = p.done(y).decisions()["contraction", "elementwise"]
    assert (decision.verdict, decision.code) == ("missed", "broadcast")


def test_a_reshape_that_regroups_stops_an_epilogue():
    p = Program((64, 32), (32, 48))
    decision = p.done(p.unary(p.collapse(p.matmul(p.x[0], p.x[1])))).decisions()["contraction", "elementwise"]
    assert (decision.verdict, decision.code) == ("missed", "reshape-between")


def test_a_diamond_is_one_group():
    p = Program((128, 384))
    top = p.unary(p.x[0])
    y = p.binary(p.unary(top), p.unary(p.unary(top)))
    assert len(p.done(y).partition().groups) == 1


def test_a_multi_use_producer_yields_both_results():
    p = Program((128, 384))
    top = p.unary(p.x[0])
    partition = p.done(top, p.unary(top)).partition()
    assert [len(group.results()) for group in partition.groups] == [2]


def test_softmax_is_one_group_with_the_row_in_scratch():
    p = Program((1536, 384))
    e = p.unary(p.x[0])
    y = p.binary(e, p.reduce(e), dims_map(2, [0]))
    partition = p.done(y).partition()
    assert [group.grid for group in partition.groups] == [(1536,)]
    assert max(d.numbers["scratch_bytes"] for d in partition.decisions) >= 4 * 384


ROWS_IN_SCRATCH = [rule for rule in builtin_rules() if rule.name != "long-rows"]


def test_a_row_that_does_not_fit_the_scratch_is_refused_with_the_numbers():
    p = Program((1536, 384))
    e = p.unary(p.x[0])
    small = replace(TARGET, scratch_bytes_limit=1024)
    decisions = p.done(p.binary(e, p.reduce(e), dims_map(2, [0]))).decisions(small, rules=ROWS_IN_SCRATCH)
    refused = [d for d in decisions.values() if d.code == "scratch"]
    assert refused and refused[0].numbers == {"scratch_bytes": 1600.0, "limit_bytes": 1024.0}


def test_a_row_without_a_bound_is_refused():
    p = Program((64, None))
    e = p.unary(p.x[0])
    decisions = p.done(p.binary(e, p.reduce(e), dims_map(2, [0]))).decisions(rules=ROWS_IN_SCRATCH)
    assert any(d.code == "unbounded-size" for d in decisions.values())


def _spread_over_rows(*shape: int) -> Program:
    """A sum over the second of three axes, and what reads it beside the summed tensor."""
    p = Program(shape)
    return p.done(p.binary(p.x[0], p.reduce(p.x[0], axis=1), dims_map(3, [0, 2])))


def test_rows_that_stay_in_the_cache_are_walked_down_their_columns():
    decision = _spread_over_rows(64, 56, 32).decisions()["reduction", "elementwise"]
    assert (decision.verdict, decision.rule) == ("fused", "row-chain")


def test_few_rows_are_walked_down_their_columns_whatever_is_beside_them():
    """The classes of each pixel."""
    decision = _spread_over_rows(2, 21, 90_001).decisions()["reduction", "elementwise"]
    assert (decision.verdict, decision.rule) == ("fused", "row-chain")


def test_rows_that_leave_the_cache_are_not_walked_down_their_columns():
    decision = _spread_over_rows(4, 5600, 320).decisions()["reduction", "elementwise"]
    assert (decision.verdict, decision.code) == ("missed", "strided-inner")
    assert decision.numbers["block_bytes"] == 5600 * 320 * 4


def test_a_few_blocks_of_columns_are_too_few_for_all_threads():
    p = _spread_over_rows(1, 2000, 60)
    decision = p.decisions(replace(TARGET, threads=4))["reduction", "elementwise"]
    assert (decision.verdict, decision.code) == ("missed", "parallelism")
    assert decision.numbers == {"workgroups": 3.0, "threads": 4.0}


def test_large_sides_without_a_common_parallel_loop_stay_apart():
    p = Program((640, 384), (384,))
    total = p.unary(p.x[1])
    y = p.binary(p.x[0], p.reduce(total), AffineMap(2, 0, ()))
    decision = p.done(y).decisions()["reduction", "elementwise"]
    assert (decision.verdict, decision.code) == ("missed", "parallelism")


def test_small_sides_without_a_common_parallel_loop_share_one_workgroup():
    p = Program((10,))
    e = p.unary(p.x[0])
    y = p.binary(e, p.reduce(e), AffineMap(1, 0, ()))
    assert len(p.done(y).partition().groups) == 1


def test_a_broadcast_producer_is_computed_once_per_row():
    p = Program((4, 4096), (4,))
    y = p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0]))
    partition = p.done(y).partition()
    assert [group.grid for group in partition.groups] == [(4,)]


def test_too_few_rows_for_the_threads_is_refused():
    p = Program((2, 1 << 20), (2,))
    y = p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0]))
    decision = p.done(y).decisions(replace(TARGET, threads=8))["elementwise", "elementwise"]
    assert (decision.verdict, decision.code, decision.at) == ("missed", "parallelism", decision.consumer)
    assert decision.detail == "2 parallel iterations would be left for 8 threads"


def test_a_pad_is_read_inside_a_convolution():
    p = Program((30, 16), (3, 16))
    decision = p.done(p.depthwise(p.pad(p.x[0], (1, 0), (1, 0)), p.x[1])).decisions()["pad", "depthwise"]
    assert (decision.rule, decision.verdict) == ("read-in-place", "fused")


def test_a_pad_with_another_reader_is_stored():
    p = Program((30, 16), (3, 16))
    padded = p.pad(p.x[0], (1, 0), (1, 0))
    decision = p.done(p.depthwise(padded, p.x[1]), padded).decisions()["pad", "depthwise"]
    assert (decision.verdict, decision.code) == ("missed", "multi-use")


@pytest.mark.parametrize(("pixels", "taps", "fused"), [(2000, 3, True), (64, 9, True), (64, 10, False)])
def test_arithmetic_before_a_window_is_evaluated_in_strips_of_any_line_unless_taps_are_many(
    pixels: int, taps: int, fused: bool
):
    p = Program((pixels, 16), (taps, 16))
    decision = p.done(p.depthwise(p.unary(p.x[0]), p.x[1])).decisions()["elementwise", "depthwise"]
    assert (decision.verdict, decision.code) == (("fused", "fused") if fused else ("missed", "recompute"))


def test_too_many_buffers_for_the_target_is_refused():
    p = Program((8, 8), (8, 8), (8, 8))
    y = p.binary(p.binary(p.x[0], p.x[1]), p.x[2])
    decision = p.done(y).decisions(replace(TARGET, binding_limit=3))["elementwise", "elementwise"]
    assert (decision.verdict, decision.code, decision.detail) == (
        "missed",
        "binding-limit",
        "4 buffers, the target binds 3",
    )
    assert decision.at == decision.consumer
    assert decision.numbers == {"bindings": 4.0}


def test_a_path_outside_the_group_is_a_cycle():
    p = Program((64, 64), (64, 64))
    top = p.unary(p.x[0])
    m = p.matmul(top, p.x[1])
    q = p.matmul(m, p.x[1])
    y = p.binary(q, top)
    p.done(y)
    decision = p.decisions()["elementwise", "elementwise"]
    assert (decision.verdict, decision.rule, decision.code) == ("missed", "structure", "cycle")
    assert decision.detail == f"{decision.at} lies on a path between them"
    assert decision.at in {
        name for names in p.decisions() for name in (p.decisions()[names].producer, p.decisions()[names].consumer)
    }


def test_a_row_that_fits_the_scratch_exactly():
    p = Program((1536, 384))
    e = p.unary(p.x[0])
    p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))
    (need,) = {
        d.numbers["scratch_bytes"]
        for d in p.decisions(replace(TARGET, scratch_bytes_limit=1024), rules=ROWS_IN_SCRATCH).values()
        if d.code == "scratch"
    }
    for limit, groups in ((int(need), 1), (int(need) - 1, 2)):
        assert len(p.partition(replace(TARGET, scratch_bytes_limit=limit), ROWS_IN_SCRATCH).groups) == groups


def test_a_number_of_roots_that_is_too_large_is_told():
    p = Program((64, 32), (32, 48), (48, 16))
    p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))
    refused = [d for d in p.decisions(replace(TARGET, roots_limit=1)).values() if d.code == "roots-limit"]
    assert refused and all(d.numbers["roots"] >= 1 for d in refused)
    assert all(d.detail == f"{d.numbers['roots']:g} roots, the target runs 1 in a dispatch" for d in refused)


def test_a_pair_that_no_rule_is_about_is_told():
    p = Program((640, 384), (384,))
    p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [1])))
    (decision,) = p.partition(rules=[ElementwiseEpilogue()]).decisions
    assert (decision.rule, decision.verdict, decision.code) == ("none", "missed", "no-rule")
    assert (decision.detail, decision.at) == ("no fusion rule covers this pair of ops", decision.consumer)
