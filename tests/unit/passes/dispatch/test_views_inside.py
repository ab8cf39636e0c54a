"""A view that goes into a dispatch is on record: its source node was eliminated by the pass that took it in."""

from __future__ import annotations

import numpy as np
import pytest

import fuseline
from fuseline.ir.context import new_context
from fuseline.passes.registry import load_pass
from tests.graphs.onnx_text import onnx_model
from tests.unit.passes.fusion.programs import Program


def test_a_reshape_taken_into_a_dispatch_is_recorded():
    p = Program((512, 96), (32, 16))
    part = p.columns(p.unary(p.x[0]), 32, 32)  # n1, n2
    rows = p.expand(p.collapse(part), 512, 32)  # n3, n4
    p.done(p.matmul(rows, p.x[1]), p.unary(p.x[0]))
    ctx = new_context()
    load_pass("form-dispatch-regions")().apply(ctx, p.module)
    assert {"n3", "n4"} <= set(ctx.records.eliminated)
    assert not {"n1", "n2"} & set(ctx.records.eliminated)


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
def test_a_view_that_one_op_reads_twice_goes_in_once(fusion: str):
    text = """(float[4] a, float[4] b) => (float[8] y, float[4] z)
        <int64[1] from = {2}, int64[1] to = {4}> {
          v = Sub(a, b)
          part = Slice(v, from, to)
          y = Concat<axis = 0>(part, v, part)
          z = Exp(b)
        }"""
    a, b = np.random.default_rng().normal(size=(2, 4)).astype(np.float32)
    found = fuseline.compile(onnx_model(text), threads=1, fusion=fusion).run({"a": a, "b": b})
    np.testing.assert_array_equal(found["y"], np.concatenate([(a - b)[2:], a - b, (a - b)[2:]]))
