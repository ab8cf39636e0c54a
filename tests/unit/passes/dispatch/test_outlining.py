"""Regions, executables and dispatches: what is outlined computes the same, names and users are clean, sizes become
arguments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp

from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_module
from fuseline.ir.build import dims_map
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.dim import symbol
from fuseline.ir.flow import DispatchOp, DispatchRegionOp, ExecutableOp
from fuseline.passes.registry import load_pass
from tests.unit.passes.fusion.programs import Program

STEPS = (
    "form-dispatch-regions",
    "clone-cheap-producers",
    "outline-executables",
    "deduplicate-executables",
    "record-dispatches",
)


def _outlined(p: Program, **limits: int) -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    ctx.target = replace(ctx.target, **limits)
    for name in STEPS:
        load_pass(name)().apply(ctx, p.module)
        p.module.verify()
    return p.module, ctx


def _softmax_and_product(rows: int | None, columns: int) -> Program:
    p = Program((rows, columns), (columns, 8))
    e = p.unary(p.x[0])
    return p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))


def test_an_outlined_program_computes_the_same():
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((6, 5)).astype(np.float32), rng.standard_normal((5, 8)).astype(np.float32)]
    before = evaluate_module(_softmax_and_product(6, 5).module, arrays, {})
    module, _ = _outlined(_softmax_and_product(6, 5))
    np.testing.assert_allclose(evaluate_module(module, arrays, {})[0], before[0], rtol=1e-6)


def test_every_value_in_an_executable_has_users_in_it_only():
    module, _ = _outlined(_softmax_and_product(6, 5))
    for executable in (op for op in module.ops if isinstance(op, ExecutableOp)):
        inside = set(executable.walk())
        for op in inside:
            assert all(use.operation in inside for result in op.results for use in result.uses)
    assert not any(isinstance(op, DispatchRegionOp) for op in module.walk())


def test_a_symbolic_size_becomes_an_index_argument_with_its_bounds():
    p = Program((None, 5))
    module, ctx = p.done(p.unary(p.x[0])).module, new_context()
    ctx.symbols["n0"] = symbol("n0", 2, 64)
    for name in STEPS:
        load_pass(name)().apply(ctx, module)
    (executable,) = (op for op in module.ops if isinstance(op, ExecutableOp))
    view = DispatchView(entry_of(executable))
    assert view.size_names == ("s0",)
    assert view.shapes.dims(view.results[0]) == (symbol("s0", 2, 64), 5)


def test_equal_dispatches_share_an_executable_and_records_keep_their_own_nodes():
    p = Program((6, 5), (6, 5))
    first, second = p.unary(p.x[0], arith.NegfOp), p.unary(p.x[1], arith.NegfOp)
    module, ctx = _outlined(p.done(first, second), arms_limit=1)
    calls = [op for op in module.walk() if isinstance(op, DispatchOp)]
    assert len(calls) == 2 and len({call.executable for call in calls}) == 1
    assert {node for record in ctx.records.dispatches for member in record.members for node in member.nodes} == {
        "n1",
        "n2",
    }


def test_running_the_passes_again_changes_nothing():
    module, ctx = _outlined(_softmax_and_product(6, 5))
    text = str(module)
    for name in STEPS:
        load_pass(name)().apply(ctx, module)
    assert str(module) == text
