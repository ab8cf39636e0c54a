"""Concats that become memory: what is recorded, and what another run of fusion makes of them."""

from __future__ import annotations

from xdsl.passes import ModulePass

from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import print_module
from fuseline.passes.dispatch.elide_concats import ElideConcatsPass
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from tests.unit.passes.fusion.programs import Program


def _chain() -> Program:
    """Three products that depend on each other, one below the other: no arms, as each waits for the one before."""
    p = Program((4, 8), (8, 8))
    a = p.matmul(p.x[0], p.x[1])
    b = p.matmul(a, p.x[1])
    c = p.matmul(b, p.x[1])
    return p.done(p.concat(a, b, c, axis=0))


def _run(ctx: CompilerContext, p: Program, *steps: ModulePass) -> str:
    for one in steps:
        one.apply(ctx, p.module)
        p.module.verify()
    return print_module(p.module)


FORM, ELIDE = FormDispatchRegionsPass(fusion="none"), ElideConcatsPass()


def test_fusing_again_leaves_it_where_it_is():
    p, ctx = _chain(), new_context()
    once = _run(ctx, p, FORM, ELIDE)
    assert _run(ctx, p, FORM, ELIDE) == once
    assert _run(ctx, p, ELIDE, FORM) == once


def test_the_source_node_costs_nothing_and_its_edges_are_fused():
    p, ctx = _chain(), new_context()
    _run(ctx, p, FORM, ELIDE)
    assert ctx.records.eliminated == {"n4": "elide-concats"}
    edges = [decision for decision in ctx.records.decisions if decision.consumer_op == "concat"]
    assert len(edges) == 3
    found = {(edge.verdict, edge.rule, edge.code, edge.detail, edge.at) for edge in edges}
    assert found == {("fused", "elide-concats", "fused", "the part is written where it lies in the concat", "")}


def test_other_edges_keep_their_words():
    p, ctx = _chain(), new_context()
    _run(ctx, p, FORM)
    before = [decision for decision in ctx.records.decisions if decision.consumer_op != "concat"]
    _run(ctx, p, ELIDE)
    assert [decision for decision in ctx.records.decisions if decision.consumer_op != "concat"] == before
