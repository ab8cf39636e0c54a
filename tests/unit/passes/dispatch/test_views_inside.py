"""A view that goes into a dispatch is on record: its source node was eliminated by the pass that took it in."""

from __future__ import annotations

from fuseline.ir.context import new_context
from fuseline.passes.registry import load_pass
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
