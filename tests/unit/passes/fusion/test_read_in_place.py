from dataclasses import replace

import numpy as np

import fuseline
from fuseline.report.records import Decision
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .programs import TARGET, Program

APART = replace(TARGET, roots_limit=1, arms_limit=1)


def _edge(p: Program, producer: str, consumer: str) -> Decision:
    return p.decisions(APART)[producer, consumer]


def test_a_contraction_reads_the_parts_of_a_concat_where_they_lie():
    p = Program((64, 32), (64, 48), (80, 16))
    parts = p.unary(p.x[0]), p.unary(p.x[1])
    decision = _edge(p.done(p.matmul(p.concat(*parts), p.x[2])), "concat", "contraction")
    assert (decision.verdict, decision.rule) == ("fused", "read-in-place")


def test_a_contraction_reads_a_slice_of_a_larger_tensor():
    p = Program((64, 96), (32, 16))
    whole = p.unary(p.x[0])
    decision = _edge(p.done(p.matmul(p.columns(whole, 32, 32), p.x[1]), whole), "slice", "contraction")
    assert (decision.verdict, decision.rule) == ("fused", "read-in-place")


def test_moved_data_that_others_read_too_is_stored():
    p = Program((64, 96), (32, 16))
    part = p.columns(p.unary(p.x[0]), 32, 32)
    decision = _edge(p.done(p.matmul(part, p.x[1]), part), "slice", "contraction")
    assert (decision.verdict, decision.code) == ("missed", "multi-use")


def test_a_contraction_evaluates_what_it_reads_once_per_block():
    p = Program((512, 64), (64, 48))
    decision = _edge(p.done(p.matmul(p.unary(p.x[0]), p.x[1])), "elementwise", "contraction")
    assert (decision.verdict, decision.rule) == ("fused", "read-in-place")
    assert decision.numbers["evaluation_ns"] > 0


def test_what_is_evaluated_for_many_blocks_is_stored_instead():
    p = Program((512, 64), (64, 4096))
    decision = _edge(p.done(p.matmul(p.unary(p.x[0]), p.x[1])), "elementwise", "contraction")
    assert (decision.verdict, decision.code) == ("missed", "unprofitable")


def test_rows_that_are_a_blocks_own_are_evaluated_once():
    """Two products one behind the other: a workgroup has some of the rows, and all columns of the first."""
    text = "(float[64, 256] x) => (float[64, 256] y) { a = Exp(x)  h = MatMul(a, w)  r = Relu(h)  y = MatMul(r, v) }"
    weights = {"w": RNG.normal(0, 0.1, (256, 512)), "v": RNG.normal(0, 0.1, (512, 256))}
    model = onnx_model(text, {name: value.astype(np.float32) for name, value in weights.items()})
    program, x = fuseline.compile(model, threads=1), RNG.normal(0, 0.3, (64, 256)).astype(np.float32)
    assert program.stats["dispatches"] == 1
    (found,) = program.run({"x": x}).values()
    wanted = np.maximum(np.exp(x.astype(np.float64)) @ weights["w"], 0) @ weights["v"]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_long_rows_are_evaluated_a_part_at_a_time():
    p = Program((64, 8192), (8192, 48))
    decision = _edge(p.done(p.matmul(p.unary(p.x[0]), p.x[1])), "elementwise", "contraction")
    assert (decision.verdict, decision.rule) == ("fused", "read-in-place")


def test_a_pad_is_read_inside_any_root():
    p = Program((64, 16), (3, 16))
    decision = _edge(p.done(p.depthwise(p.pad(p.unary(p.x[0]), [1, 0], [1, 0]), p.x[1])), "pad", "depthwise")
    assert (decision.verdict, decision.rule) == ("fused", "read-in-place")


def test_an_unknown_number_of_blocks_is_taken_for_what_is_assumed():
    p = Program((512, 64), (64, "n"))
    decision = _edge(p.done(p.matmul(p.unary(p.x[0]), p.x[1])), "elementwise", "contraction")
    fixed = Program((512, 64), (64, 128))
    known = _edge(fixed.done(fixed.matmul(fixed.unary(fixed.x[0]), fixed.x[1])), "elementwise", "contraction")
    assert (decision.verdict, decision.code, decision.numbers) == (known.verdict, known.code, known.numbers)


def test_what_is_computed_behind_moved_data_is_weighed_as_in_the_root():
    """The slice is read in place; what it reads would be evaluated in the contraction, for many blocks."""
    p = Program((512, 64), (63, 4096))
    decision = _edge(p.done(p.matmul(p.columns(p.unary(p.x[0]), 1, 63), p.x[1])), "elementwise", "slice")
    assert (decision.verdict, decision.code) == ("missed", "unprofitable")
