from collections.abc import Sequence
from dataclasses import replace

import pytest
from xdsl.dialects import arith

from fuseline.ir.build import dims_map
from fuseline.ir.costs import ASSUMED_SIZE
from fuseline.ir.target_description import TargetDescription
from fuseline.report.records import Decision

from .programs import TARGET, Program


def _matmul_and_sum(rows: int = 4096, columns: int = 48) -> Program:
    p = Program((rows, 32), (32, columns))
    return p.done(p.reduce(p.matmul(p.x[0], p.x[1])))


def _chain(
    p: Program, target: TargetDescription = TARGET, ends: tuple[str, str] = ("contraction", "reduction")
) -> Decision:
    return p.decisions(target)[ends]


def test_a_row_reduction_joins_a_contraction_over_the_rows():
    decision = _chain(_matmul_and_sum())
    assert (decision.verdict, decision.rule) == ("fused", "root-chain")


def test_two_contractions_share_their_rows():
    p = Program((4096, 32), (32, 48), (48, 16))
    decision = _chain(p.done(p.matmul(p.matmul(p.x[0], p.x[1]), p.x[2])), ends=("contraction", "contraction"))
    assert (decision.verdict, decision.rule) == ("fused", "root-chain")


def test_a_target_of_one_root_keeps_them_apart():
    decision = _chain(_matmul_and_sum(), replace(TARGET, roots_limit=1))
    assert (decision.verdict, decision.code) == ("missed", "roots-limit")


def test_a_dispatch_has_no_more_roots_than_the_target_runs():
    p = Program((4096, 16), *[(16, 16)] * 5)
    value = p.x[0]
    for weights in p.x[1:]:
        value = p.matmul(value, weights)
    assert len(p.done(value).partition(replace(TARGET, roots_limit=3)).groups) == 2


def test_reading_an_operand_again_for_every_block_must_pay():
    p = Program((64, 2048), (2048, 48))
    decision = _chain(p.done(p.reduce(p.matmul(p.x[0], p.x[1]))))
    assert (decision.verdict, decision.code) == ("missed", "unprofitable")
    assert decision.numbers["streamed_ns"] > decision.numbers["saved_ns"]


def test_what_lies_between_must_fit_the_scratch():
    decision = _chain(_matmul_and_sum(columns=48), replace(TARGET, scratch_bytes_limit=1000))
    assert (decision.verdict, decision.code) == ("missed", "scratch")


def test_a_reshape_between_the_roots_stops_the_chain():
    p = Program((64, 32), (32, 48))
    flat = p.collapse(p.matmul(p.x[0], p.x[1]))
    decision = _chain(p.done(p.reduce(flat)))
    assert (decision.verdict, decision.code) == ("missed", "reshape-between")


@pytest.mark.parametrize("window", ["depthwise", "convolution"])
@pytest.mark.parametrize(("level", "code"), [("default", "unprofitable"), ("aggressive", "fused")])
def test_a_root_that_slides_over_the_shared_loop_is_met_block_by_block_where_that_pays(
    window: str, level: str, code: str
):
    p = Program((4098, 64), (3, 64) if window == "depthwise" else (3, 64, 64), (64, 64))
    chained = p.done(p.matmul(getattr(p, window)(p.x[0], p.x[1]), p.x[2]))
    decision = chained.decisions(replace(TARGET, numerics="strict"), level)[window, "contraction"]
    assert decision.code == code
    assert level != "default" or decision.numbers["sliding_ns"] > decision.numbers["saved_ns"]


def test_roots_over_different_loops_stay_apart():
    p = Program((66, 16), (16, 24), (3, 24, 8))
    decision = _chain(p.done(p.convolution(p.matmul(p.x[0], p.x[1]), p.x[2])), ends=("contraction", "convolution"))
    assert (decision.verdict, decision.code) == ("missed", "two-roots")


@pytest.mark.parametrize("padded", [True, False])
def test_a_depthwise_window_meets_what_makes_its_image_channel_by_channel(padded: bool):
    p = Program((66, 16), (16, 24), (3, 24))
    image = p.matmul(p.x[0], p.x[1])
    image = p.pad(image, [1, 0], [1, 0]) if padded else image
    found = p.done(p.depthwise(image, p.x[2])).partition()
    assert {d.rule for d in found.decisions} == ({"channel-window", "read-in-place"} if padded else {"channel-window"})
    assert [group.grid for group in found.groups] == [(24,)]


def test_a_border_of_channels_keeps_a_window_from_what_makes_its_image():
    p = Program((66, 16), (16, 22), (3, 24))
    image = p.pad(p.matmul(p.x[0], p.x[1]), [0, 1], [0, 1])
    assert len(p.done(p.depthwise(image, p.x[2])).partition().groups) == 2


def test_windows_over_one_image_share_every_loop():
    p = Program((4098, 16), (3, 16), (3, 16))
    a, b = p.depthwise(p.x[0], p.x[1]), p.depthwise(p.x[0], p.x[2])
    assert len(p.done(p.binary(a, b)).partition().groups) == 1


@pytest.mark.parametrize(
    ("taps", "channels", "numerics", "code"),
    [(3, 64, "default", "unprofitable"), (3, 64, "strict", "fused"), (3, 4, "default", "fused")],
)
def test_a_convolution_keeps_its_filter_whole_where_minimal_filtering_pays(
    taps: int, channels: int, numerics: str, code: str
):
    p = Program((258, channels), (taps, channels, 64))
    pooled = p.reduce(p.convolution(p.x[0], p.x[1]), axis=0)
    assert _chain(p.done(pooled), replace(TARGET, numerics=numerics), ("convolution", "reduction")).code == code


def test_a_number_of_rows_without_a_bound_is_weighed_like_a_likely_one():
    """As bytes and as passes over an operand alike: neither side of the balance forgets it."""
    p = Program(("rows", 32), (32, 48))
    decision = _chain(p.done(p.reduce(p.matmul(p.x[0], p.x[1]))), replace(TARGET, threads=1))
    assert (decision.verdict, decision.rule) == ("fused", "root-chain")
    assert decision.numbers["bytes_saved"] == 2 * 4 * ASSUMED_SIZE * 48


def _symmetric(batch: int, turned: Sequence[int]) -> Program:
    """Products of a batch, and their sums with themselves with dimensions in another order."""
    p = Program((batch, 32, 16), (batch, 16, 32))
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [0, 3, 2]), dims_map(4, [0, 1, 2])]
    m = p.multiply_add(p.x[0], p.x[1], p.zeros(batch, 32, 32), maps, "pppr")
    return p.done(p.over(m, (m, dims_map(3, turned)), body=lambda b: b.op(arith.AddfOp, *b.args[:2])))


def test_a_matrix_and_its_transposition_are_read_of_one_block():
    decision = _chain(_symmetric(256, [0, 2, 1]), ends=("contraction", "elementwise"))
    assert (decision.verdict, decision.rule) == ("fused", "root-chain")


def test_a_reader_of_one_order_is_an_epilogue():
    decision = _chain(_symmetric(256, [0, 1, 2]), ends=("contraction", "elementwise"))
    assert (decision.verdict, decision.rule) == ("fused", "elementwise-epilogue")


def test_a_matrix_alone_is_turned_by_itself():
    """There is no loop that both orders share: one workgroup would be left."""
    p = Program((512, 16), (16, 512))
    m = p.matmul(p.x[0], p.x[1])
    done = p.done(p.over(m, (m, dims_map(2, [1, 0])), body=lambda b: b.op(arith.AddfOp, *b.args[:2])))
    assert len(done.partition().groups) == 2


@pytest.mark.parametrize("columns", [24, 40, 56])
def test_halves_of_a_product_meet_in_its_block(columns: int):
    p = Program((512, 32), (32, 2 * columns))
    m = p.matmul(p.x[0], p.x[1])
    first, second = (p.slice(m, [0, begin], [512, columns]) for begin in (0, columns))
    found = p.done(p.binary(first, second)).partition()
    assert [group.grid for group in found.groups] == [(512,)]
    assert {decision.rule for decision in found.decisions if decision.verdict == "fused"} >= {"root-chain"}


def test_nothing_is_kept_for_what_only_moves():
    p = Program((512, 32), (32, 48))
    m = p.matmul(p.x[0], p.x[1])
    found = p.done(p.slice(m, [0, 0], [512, 24]), p.slice(m, [0, 24], [512, 24])).partition()
    assert not any(decision.rule == "root-chain" for decision in found.decisions)


@pytest.mark.parametrize(("rows", "threads", "groups"), [(512, 2, 1), ("rows", 1, 1), ("rows", 2, 2)])
def test_rows_of_which_there_may_be_few_are_shared_out(rows: int | str, threads: int, groups: int):
    """Blocks of unknown rows are small on several threads: a weight would be read again for each of them."""
    p = Program((rows, 128), (128, 512), constants=[1])
    done = p.done(p.reduce(p.matmul(p.x[0], p.x[1])))
    assert len(done.partition(replace(TARGET, threads=threads)).groups) == groups
