"""Bodies that scale and shift are recognised, others are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.linalg import ops as linalg_ops
from xdsl.ir import Block, SSAValue

from fuseline.ir.build import PARALLEL, Body, Emitter, identity_map
from fuseline.passes.layout.affine_bodies import affine_body, can_be_affine, only_shifts


def generic(body: Callable[[Body], SSAValue]) -> linalg_ops.GenericOp:
    """An elementwise op over two tensors of four elements; the second is the constant."""
    block = Block(arg_types=[TensorType(f32, [4])] * 2)
    at = Emitter.at_end(block)
    return at.generic(list(block.args), [at.empty(f32, [4])], [identity_map(1)] * 3, [PARALLEL], lambda b: [body(b)])


def test_scale_and_shift() -> None:
    op = generic(lambda b: b.op(arith.SubfOp, b.op(arith.DivfOp, b.op(arith.AddfOp, b.args[0], b.args[1]), b.constant(2.0, f32)), b.args[1]))
    made = affine_body(op, [0], {1: np.arange(4.0)})
    assert made is not None
    assert np.all(made[0] == 0.5)
    np.testing.assert_array_equal(made[1], np.arange(4.0) / 2 - np.arange(4.0))


def test_negated() -> None:
    made = affine_body(generic(lambda b: b.op(arith.NegfOp, b.args[0])), [0], {1: np.ones(4)})
    assert made is not None
    assert (float(made[0]), float(made[1])) == (-1.0, 0.0)


@pytest.mark.parametrize(
    "body",
    [
        lambda b: b.op(arith.MulfOp, b.args[0], b.args[0]),
        lambda b: b.op(arith.DivfOp, b.args[1], b.args[0]),
        lambda b: b.op(arith.DivfOp, b.args[0], b.constant(0.0, f32)),
        lambda b: b.op(math.ExpOp, b.args[0]),
        lambda b: b.op(arith.MaximumfOp, b.args[0], b.args[1]),
    ],
)
def test_no_scale_and_shift(body: Callable[[Body], SSAValue]) -> None:
    assert affine_body(generic(body), [0], {1: np.ones(4)}) is None


@pytest.mark.parametrize(
    ("body", "affine", "shifts"),
    [
        (lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), True, True),
        (lambda b: b.op(arith.AddfOp, b.args[0], b.constant(2.5, f32)), True, True),
        (lambda b: b.op(arith.AddfOp, b.args[0], b.args[0]), True, False),
        (lambda b: b.op(arith.SubfOp, b.args[1], b.args[0]), True, False),
        (lambda b: b.op(arith.MulfOp, b.args[0], b.args[1]), True, False),
        (lambda b: b.op(arith.MaximumfOp, b.args[0], b.args[1]), False, False),
    ],
)
def test_what_a_body_may_do_by_its_kinds_of_ops(body: Callable[[Body], SSAValue], affine: bool, shifts: bool) -> None:
    op = generic(body)
    assert (can_be_affine(op), only_shifts(op)) == (affine, shifts)


def test_only_shifts_keeps_the_scale() -> None:
    made = affine_body(generic(lambda b: b.op(arith.AddfOp, b.args[1], b.args[0])), [0], {1: np.arange(4.0)})
    assert made is not None and float(made[0]) == 1.0
