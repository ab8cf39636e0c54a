"""Bodies that scale and shift are recognised, others are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, TensorType, f32
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
    op = generic(
        lambda b: b.op(
            arith.SubfOp, b.op(arith.DivfOp, b.op(arith.AddfOp, b.args[0], b.args[1]), b.constant(2.0, f32)), b.args[1]
        )
    )
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


def op(kind: type, *parts: Callable[[Body], SSAValue]) -> Callable[[Body], SSAValue]:
    """The body that applies `kind` to what `parts` compute."""
    return lambda b: b.op(kind, *(part(b) for part in parts))


def x(b: Body) -> SSAValue:
    return b.args[0]


def c(b: Body) -> SSAValue:
    return b.args[1]


def three(b: Body) -> SSAValue:
    return b.constant(3.0, f32)


C = np.array([2.0, -4.0, 5.0, 0.5])
Add, Sub, Mul, Div, Neg = arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp


@pytest.mark.parametrize(
    ("body", "scale", "shift"),
    [
        (x, 1.0, 0.0),
        (c, 0.0, C),
        (three, 0.0, 3.0),
        (op(Add, x, c), 1.0, C),
        (op(Sub, x, c), 1.0, -C),
        (op(Sub, c, x), -1.0, C),
        (op(Add, x, x), 2.0, 0.0),
        (op(Sub, x, x), 0.0, 0.0),
        (op(Mul, x, c), C, 0.0),
        (op(Mul, c, x), C, 0.0),
        (op(Mul, op(Add, x, three), c), C, 3 * C),
        (op(Mul, c, op(Add, x, three)), C, 3 * C),
        (op(Div, op(Add, x, three), c), 1 / C, 3 / C),
        (op(Neg, op(Add, x, three)), -1.0, -3.0),
        (op(Mul, x, op(Mul, c, three)), 3 * C, 0.0),
        (op(Mul, x, op(Div, c, three)), C / 3, 0.0),
        (op(Mul, x, op(Add, c, three)), C + 3, 0.0),
        (op(Mul, x, op(Sub, c, three)), C - 3, 0.0),
        (op(Mul, x, op(Neg, c)), -C, 0.0),
    ],
)
def test_the_scale_and_shift_of_each_operation(body: Callable[[Body], SSAValue], scale: object, shift: object) -> None:
    made = affine_body(generic(body), [0], {1: C})
    assert made is not None
    np.testing.assert_array_equal(np.broadcast_to(made[0], 4), np.broadcast_to(np.asarray(scale), 4))
    np.testing.assert_array_equal(np.broadcast_to(made[1], 4), np.broadcast_to(np.asarray(shift), 4))


@pytest.mark.parametrize(
    "body",
    [
        op(Mul, op(Add, x, c), x),
        op(Div, c, op(Add, x, c)),
        op(Div, x, x),
        op(Div, three, x),
        op(Add, op(math.ExpOp, x), c),
        op(Neg, op(math.ExpOp, c)),
    ],
)
def test_products_quotients_and_functions_of_the_variable(body: Callable[[Body], SSAValue]) -> None:
    assert affine_body(generic(body), [0], {1: C}) is None


def test_one_zero_among_the_divisors() -> None:
    assert affine_body(generic(op(Div, x, c)), [0], {1: np.array([1.0, 0.0, 2.0, 3.0])}) is None


def test_an_input_that_is_neither() -> None:
    assert affine_body(generic(op(Add, x, c)), [0], {}) is None
    assert affine_body(generic(c), [0], {}) is None


def test_one_tensor_read_twice() -> None:
    made = affine_body(generic(op(Add, op(Mul, x, three), c)), [0, 1], {})
    assert made is not None
    assert (float(made[0]), float(made[1])) == (4.0, 0.0)


def test_a_constant_from_around_the_body() -> None:
    block = Block(arg_types=[TensorType(f32, [4])])
    at = Emitter.at_end(block)
    outer = at.add(arith.ConstantOp(FloatAttr(2.5, f32))).result
    made = affine_body(
        at.generic(
            [block.args[0]],
            [at.empty(f32, [4])],
            [identity_map(1)] * 2,
            [PARALLEL],
            lambda b: [b.op(Mul, b.args[0], outer)],
        ),
        [0],
        {},
    )
    assert made is not None
    assert (float(made[0]), float(made[1])) == (2.5, 0.0)
