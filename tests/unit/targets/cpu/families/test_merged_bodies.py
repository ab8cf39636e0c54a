"""A dispatch whose elementwise ops became one is the same kernel: family, scratch, memory for constants, and bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects import math as mlir_math
from xdsl.ir import SSAValue

from fuseline.analysis.structured import is_generic
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.registry import load_pass
from fuseline.targets.cpu.families import families
from tests.graphs.program import Program
from tests.kernels import Runner, arrays_for

STEPS = ("form-dispatch-regions", "clone-cheap-producers", "outline-executables")
MERGE = "fuse-elementwise-bodies"


def _runner(make: Callable[[], Program], *steps: str) -> Runner:
    p, ctx = make(), new_context()
    for name in (*STEPS, *steps):
        load_pass(name)().apply(ctx, p.module)
    (executable,) = [op for op in p.module.ops if isinstance(op, ExecutableOp)]
    return Runner(families(), DispatchView(entry_of(executable)))


def _norm(p: Program, x: SSAValue, channels: int) -> SSAValue:
    """`relu((x * scale + shift) * factor + bias)`, op by op, per channel."""
    last = len(p.shape(x)) - 1
    for number in range(4):
        vector = p.x[-1 - number]
        assert p.shape(vector) == (channels,)
        x = p.binary(x, vector, dims_map(last + 1, [last]), arith.AddfOp if number % 2 else arith.MulfOp)
    return p.relu(x)


def _product(rows: int | str, length: int = 1) -> Program:
    p = Program((rows, 24), (24, 40), *[(40,)] * 4)
    y = p.matmul(p.x[0], p.x[1])
    for _ in range(length):
        y = _norm(p, y, 40)
    return p.done(y)


def _convolution() -> Program:
    p = Program((33, 8), (3, 8, 24), *[(24,)] * 4)
    return p.done(_norm(p, p.convolution(p.x[0], p.x[1]), 24))


def _depthwise() -> Program:
    p = Program((33, 24), (3, 24), *[(24,)] * 4)
    return p.done(_norm(p, p.depthwise(p.x[0], p.x[1]), 24))


def _row_norm() -> Program:
    p = Program((9, 37), *[(37,)] * 4)
    total = p.reduce(p.binary(p.x[0], p.x[0], kind=arith.MulfOp))
    return p.done(_norm(p, p.by_row(p.x[0], total, lambda b: b.op(arith.DivfOp, b.args[0], b.args[1])), 37))


def _two_products() -> Program:
    p = Program((9, 24), (24, 40), (24, 40), *[(40,)] * 4)
    gate = p.unary(p.unary(p.matmul(p.x[0], p.x[1]), mlir_math.TanhOp), arith.NegfOp)
    return p.done(_norm(p, p.binary(p.matmul(p.x[0], p.x[2]), gate, kind=arith.MulfOp), 40))


def _points() -> Program:
    p = Program(("n", 37), *[(37,)] * 4)
    return p.done(p.unary(p.unary(_norm(p, p.x[0], 37), mlir_math.TanhOp), permutation=(1, 0)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: _product(17),
        lambda: _product(1),
        lambda: _product("n"),
        lambda: _product(17, length=3),
        _convolution,
        _depthwise,
        _row_norm,
        _two_products,
        _points,
    ],
    ids=["product", "row", "rows", "long", "convolution", "depthwise", "norm", "two", "points"],
)
def test_the_kernel_of_merged_bodies_is_that_of_the_ops(make: Callable[[], Program]):
    apart, merged = _runner(make), _runner(make, MERGE)
    count = [sum(is_generic(op) for op in runner.view.members) for runner in (apart, merged)]
    assert count[1] < count[0]
    assert (apart.family.name, apart.plan.notes) == (merged.family.name, merged.plan.notes)
    assert (apart.kernel.scratch_bytes, apart.plan.workgroups) == (merged.kernel.scratch_bytes, merged.plan.workgroups)
    sizes = {"s0": 11} if apart.view.sizes else {}
    arrays = arrays_for(apart.view, sizes)
    (one,), (other,) = apart(*arrays, sizes=sizes), merged(*arrays, sizes=sizes)
    np.testing.assert_array_equal(one, other)
    assert len(np.unique(one)) > 10
