"""Rows that fit no scratch are evaluated by each of their readers, where that costs less than storing them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest
from xdsl.dialects import math

import fuseline
from fuseline.ir.build import dims_map
from fuseline.ir.costs import MachineCosts
from fuseline.passes.fusion.evaluated_rows import evaluation_ns, with_rows_evaluated
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .programs import TARGET, Program

SMALL = replace(TARGET, scratch_bytes_limit=1024)


def _normalised(*shape: int | None) -> Program:
    p = Program(shape)
    e = p.unary(p.x[0])
    return p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))


@pytest.mark.parametrize("columns", [None, 300_000])
def test_a_row_without_a_bound_or_too_long_for_scratch(columns: int | None):
    partition = _normalised(64, columns).partition()
    (group,) = partition.groups
    assert [node.kind.value for node in group.inlined] == ["elementwise"] and group.scratch_bytes == 0
    decision = next(d for d in partition.decisions if d.rule == "long-rows")
    assert decision.verdict == "fused" and decision.numbers["evaluation_ns"] >= 0


def test_rows_that_fit_lie_in_scratch():
    (group,) = _normalised(64, 300).partition().groups
    assert not group.inlined and group.scratch_bytes


def test_what_is_in_a_cache_and_costs_much_is_stored():
    p = _normalised(64, 300)
    slow = replace(SMALL, costs=MachineCosts(flops_per_ns=0.5))
    assert len(p.partition(slow).groups) == 2
    assert any("evaluated again" in d.detail or d.code == "scratch" for d in p.partition(slow).decisions)
    assert len(p.partition(replace(SMALL, costs=MachineCosts(flops_per_ns=1e4))).groups) == 1


def test_a_row_that_leaves_is_stored():
    p = Program((64, None))
    e = p.unary(p.x[0])
    p.done(p.binary(e, p.reduce(e), dims_map(2, [0])), e)
    assert all(not group.inlined for group in p.partition().groups)


def test_what_is_evaluated_for_two_readers_counts_once_more():
    p = Program((64, 300))
    e = p.unary(p.unary(p.x[0], math.TanhOp))
    p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))
    (whole,) = p.partition().groups
    found = with_rows_evaluated(whole)
    assert found is not None and len(found.inlined) == 2
    cheap, dear = (evaluation_ns(found, whole, MachineCosts(flops_per_ns=rate)) for rate in (50.0, 5.0))
    operations = sum(node.operations for node in found.inlined)
    assert cheap == pytest.approx(2 * 64 * 300 * operations / 50.0) and dear == pytest.approx(10 * cheap)


BODIES = {
    "softmax": "y = Softmax<axis = {axis}>(x)",
    "centred": (
        "m = ReduceMean<axes = [{axis}]>(x) c = Sub(x, m) q = Mul(c, c) v = ReduceMean<axes = [{axis}]>(q) "
        "w = Add(v, e) y = Div(c, w)"
    ),
    "in a chain": "t = Tanh(x) s = Softmax<axis = {axis}>(t) y = Mul(s, t)",
    "a maximum": "f = Exp(x) n = Neg(f) m = ReduceMax<axes = [{axis}]>(n) y = Sub(f, m)",
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("body", BODIES)
def test_values(body: str, axis: int):
    model = onnx_model(f"(float[a,b,c] x) => (y) {{ {BODIES[body].format(axis=axis)} }}", opset=17, e=np.float32(0.1))
    reference = ort.InferenceSession(model.SerializeToString())
    for threads in (1, 3):
        found = fuseline.compile(model, threads=threads)
        assert found.stats["dispatches"] == 1 or axis == 0 or body == "in a chain"  # strided rows, and much arithmetic
        for sizes in ((1, 1, 1), (3, 5, 7), (17, 2, 33), (2, 70, 19)):
            x = RNG.standard_normal(sizes).astype(np.float32)
            expected = np.asarray(reference.run(None, {"x": x})[0])
            np.testing.assert_allclose(found.run({"x": x})["y"], expected, rtol=2e-4, atol=2e-5)
