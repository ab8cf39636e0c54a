"""Elementwise ops of one dispatch become one op: it computes the same, says the same of its loops, and is of all its
members."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith, linalg
from xdsl.dialects import math as mlir_math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from fuseline.analysis.structured import is_generic
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.verify_loops import verify_loops
from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.registry import load_pass
from tests.draws import RNG
from tests.graphs.program import Program, Size

STEPS = ("form-dispatch-regions", "clone-cheap-producers", "outline-executables")
KINDS = (mlir_math.TanhOp, mlir_math.AbsFOp, mlir_math.ExpOp, arith.NegfOp)


def _outlined(p: Program) -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    for name in STEPS:
        load_pass(name)().apply(ctx, p.module)
    return p.module, ctx


def _merge(module: ModuleOp, ctx: CompilerContext) -> None:
    load_pass("fuse-elementwise-bodies")().apply(ctx, module)
    module.verify()
    verify_loops(module, ctx)


def _generics(module: ModuleOp) -> int:
    entries = [entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)]
    return sum(is_generic(op) for entry in entries for op in entry.body.block.ops)


def _arrays(p: Program, sizes: dict[str, int]) -> list[np.ndarray]:
    shapes = [[size if isinstance(size, int) else sizes[str(size)] for size in p.shape(x)] for x in p.x]
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


def _same(p: Program, generics: int, sizes: dict[str, int] | None = None) -> ModuleOp:
    """The program merges to so many generics in executables, and computes the same as before, to the bit."""
    module, ctx = _outlined(p)
    arrays = _arrays(p, sizes or {})
    before = evaluate_module(module, arrays, {})
    _merge(module, ctx)
    assert _generics(module) == generics
    for one, other in zip(evaluate_module(module, arrays, {}), before, strict=True):
        np.testing.assert_array_equal(one, other)
    again = str(module)
    _merge(module, ctx)
    assert str(module) == again
    return module


def _chain(p: Program, x: SSAValue, length: int) -> SSAValue:
    """Elementwise ops one behind the other, each reading the one before in a random order of dimensions, and some of
    them an argument."""
    rank = len(p.shape(x))
    for _ in range(length):
        x = p.unary(x, RNG.choice(np.array(KINDS)), permutation=[int(axis) for axis in RNG.permutation(rank)])
        axis = int(RNG.integers(rank))
        vector = next((one for one in p.x[1:] if p.shape(one) == (p.shape(x)[axis],)), None)
        x = p.bias(x, vector, axis) if vector is not None and RNG.random() < 0.5 else x
    return x


@pytest.mark.parametrize("shape", [(7,), (3, 5), (4, 1, 6), (2, 3, 2, 3), ("n", 5), ("n", "m", 3)])
@pytest.mark.parametrize("length", [2, 3, 6])
def test_a_chain_is_one_op_whatever_the_order_of_dimensions(shape: tuple[Size, ...], length: int):
    p = Program(shape, *((size,) for size in shape))
    _same(p.done(_chain(p, p.x[0], length)), 1, {"n": 3, "m": 4})


def _product(p: Program) -> SSAValue:
    return p.matmul(p.x[0], p.x[1])


def _row(p: Program) -> SSAValue:
    return p.reduce(p.x[0])


@pytest.mark.parametrize("root", [_product, _row])
@pytest.mark.parametrize("rows", [6, "n"])
def test_what_follows_a_root_is_one_op_behind_it(root: Callable[[Program], SSAValue], rows: Size):
    p = Program((rows, 5), (5, 4))
    y = p.unary(p.relu(p.unary(root(p), mlir_math.TanhOp)), mlir_math.AbsFOp)
    module = _same(p.done(y), 2, {"n": 3})
    (entry,) = [entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)]
    found = DispatchView(entry).root
    assert found is not None and is_generic(found) and len(found.iterator_types) > len(p.shape(y))


def test_a_diamond_of_one_reader_each_is_one_op():
    p = Program((4, 5), (4, 5))
    _same(p.done(p.binary(p.unary(p.x[0]), p.unary(p.x[1], arith.NegfOp))), 1)


def test_what_two_ops_read_stays_an_op():
    p = Program((4, 5))
    a = p.unary(p.x[0])
    _same(p.done(p.unary(a, arith.NegfOp), p.unary(a, mlir_math.AbsFOp)), 3)


def test_a_broadcast_is_evaluated_once():
    p = Program((4, 5), (5,))
    _same(p.done(p.bias(p.unary(p.x[0]), p.unary(p.x[1], mlir_math.TanhOp), 1)), 2)


def test_what_follows_a_reduction_stays_with_it():
    """Of two products added up, the first has an epilogue of its own."""
    p = Program((4, 6), (6, 5), (6, 5))
    first = p.unary(p.matmul(p.x[0], p.x[1]), mlir_math.TanhOp)
    second = p.unary(p.matmul(p.x[0], p.x[2]), mlir_math.AbsFOp)
    _same(p.done(p.unary(p.add(first, second), mlir_math.ExpOp)), 4)


def test_the_parts_of_a_softmax_stay_parts():
    p = Program((4, 6))
    module = _same(p.done(p.unary(p.unary(p.softmax(p.x[0]), arith.NegfOp), mlir_math.AbsFOp)), 4)
    names = [inner.name for op in module.walk() if isinstance(op, linalg.ops.GenericOp) for inner in op.body.block.ops]
    assert [name for name in names if name.startswith(("math", "arith.neg", "arith.div"))] == [
        "math.exp",
        "arith.divf",
        "arith.negf",
        "math.absf",
    ]
