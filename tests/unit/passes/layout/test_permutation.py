"""Permutations, and the transposes, inits and merges that carry them: exact types and operands, on static and on
runtime sizes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue

from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.layout.rewriting.permutation import (
    apply,
    compose,
    identity,
    init_like,
    inverse,
    is_identity,
    is_init,
    merge_equal_transposes,
    permutation_of,
    permuted_init,
    transpose,
    transposed_input,
    users_of,
)
from fuseline.passes.layout.rewriting.scope import Scope

D = -1
PROGRAM = """func.func @main(%x: tensor<2x3x?xf32>, %n: index, %m: index, %v: f32) {
  %static = tensor.empty() : tensor<2x3x5xf32>
  %dynamic = tensor.empty(%n, %m) : tensor<?x3x?xf32>
  %fill = linalg.fill ins(%v : f32) outs(%dynamic : tensor<?x3x?xf32>) -> tensor<?x3x?xf32>
  %over = linalg.fill ins(%v : f32) outs(%x : tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  %splat = arith.constant dense<2.5> : tensor<2x3x5xf32>
  %numbers = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  return
}"""


class Program:
    """`PROGRAM` with its values by name, and a place to add ops."""

    def __init__(self, text: str = PROGRAM) -> None:
        ctx = new_context()
        self.module: ModuleOp = parse_module(text, ctx)
        function = next(op for op in self.module.walk() if isinstance(op, func.FuncOp))
        self.scope = Scope(function, ctx)
        self.block = function.body.block
        results = [result for op in self.block.ops for result in op.results]
        self.values = {value.name_hint: value for value in (*self.block.args, *results)}
        last = self.block.last_op
        assert last is not None
        self.at = Emitter.before(last)

    def __getitem__(self, name: str) -> SSAValue:
        return self.values[name]

    def transposed(self, name: str, order: tuple[int, ...]) -> SSAValue:
        return transpose(self.scope, self.at, self[name], order)


def made(value: SSAValue, kind: type[Operation]) -> Any:
    """The op of `value`, which is of that kind."""
    assert isinstance(value.owner, kind)
    return value.owner


def shape(value: SSAValue) -> tuple[int, ...]:
    """The sizes in the type; -1 for one of run time."""
    return tuple(-1 if size < 0 else size for size in shape_of(value))


# permutations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", list(permutations(range(3))))
def test_permutations_do_what_numpy_does(first: tuple[int, ...]):
    array = np.arange(24).reshape(2, 3, 4)
    assert tuple(apply(first, array.shape)) == array.transpose(first).shape
    np.testing.assert_array_equal(array.transpose(first).transpose(inverse(first)), array)
    for second in permutations(range(3)):
        np.testing.assert_array_equal(array.transpose(compose(first, second)), array.transpose(first).transpose(second))
    assert is_identity(first) == (first == identity(3))


def test_nothing_is_the_identity_of_scalars():
    assert identity(0) == inverse(()) == compose((), ()) == ()
    assert is_identity(())


# transposes -----------------------------------------------------------------------------------------------------------


def test_a_transpose_reads_the_sizes_of_run_time():
    p = Program()
    value = p.transposed("x", (2, 0, 1))
    op = made(value, linalg.ops.TransposeOp)
    assert shape(value) == (D, 2, 3)
    assert op.operands[0] is p["x"]
    assert permutation_of(op) == (2, 0, 1)
    assert transposed_input(value) == (op, p["x"], (2, 0, 1))
    p.module.verify()


def test_a_transpose_is_what_its_constructor_makes():
    p = Program()
    op = made(p.transposed("x", (2, 0, 1)), linalg.ops.TransposeOp)
    wanted = linalg.ops.TransposeOp(op.operands[0], op.operands[1], DenseArrayBase.from_list(i64, [2, 0, 1]))
    assert op.is_structurally_equivalent(wanted)


def test_two_transposes_are_one_and_opposite_ones_are_none():
    p = Program()
    first = p.transposed("x", (2, 0, 1))
    second = transpose(p.scope, p.at, first, (0, 2, 1))
    assert transposed_input(second) == (second.owner, p["x"], (2, 1, 0))
    assert shape(second) == (D, 3, 2)
    assert transpose(p.scope, p.at, first, inverse((2, 0, 1))) is p["x"]
    assert transpose(p.scope, p.at, p["x"], (0, 1, 2)) is p["x"]
    p.module.verify()


def test_what_is_no_transpose_has_no_transposed_input():
    p = Program()
    assert [transposed_input(p[name]) for name in ("x", "static", "fill", "splat")] == [None] * 4


def test_inits_are_made_again_and_constants_are_transposed():
    p = Program()
    assert shape(made(p.transposed("dynamic", (1, 2, 0)), tensor.EmptyOp).tensor) == (3, D, D)
    assert shape(made(p.transposed("fill", (1, 2, 0)), linalg.ops.FillOp).results[0]) == (3, D, D)
    made(p.transposed("over", (1, 2, 0)), linalg.ops.TransposeOp)
    made(p.transposed("splat", (1, 2, 0)), linalg.ops.TransposeOp)  # left to constant folding
    made(p.transposed("numbers", (1, 0)), linalg.ops.TransposeOp)
    p.module.verify()


# inits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("static", True),
        ("dynamic", True),
        ("fill", True),
        ("splat", True),
        ("over", False),
        ("numbers", False),
        ("x", False),
    ],
)
def test_what_is_the_same_everywhere(name: str, expected: bool):
    p = Program()
    assert is_init(p[name]) is expected


@pytest.mark.parametrize(
    ("order", "sizes"), [((2, 1, 0), "mn"), ((1, 0, 2), "nm"), ((2, 0, 1), "mn"), ((0, 2, 1), "nm")]
)
def test_an_empty_tensor_of_runtime_sizes_takes_them_along(order: tuple[int, ...], sizes: str):
    p = Program()
    op = made(permuted_init(p.scope, p["dynamic"], order), tensor.EmptyOp)
    assert shape(op.tensor) == tuple(apply(order, (D, 3, D)))
    assert tuple(op.dynamic_sizes) == tuple(p[name] for name in sizes)
    p.module.verify()


def test_a_size_of_0_is_no_runtime_size():
    p = Program(PROGRAM.replace("%static", "%none = tensor.empty(%n) : tensor<0x?xf32>\n  %static"))
    op = made(permuted_init(p.scope, p["none"], (1, 0)), tensor.EmptyOp)
    assert shape(op.tensor) == (D, 0)
    assert tuple(op.dynamic_sizes) == (p["n"],)


def test_empty_tensors_of_equal_static_types_are_one():
    p = Program()
    one, two = (permuted_init(p.scope, p["static"], (2, 0, 1)) for _ in range(2))
    assert one is two
    assert shape(one) == (5, 2, 3)


def test_a_fill_keeps_its_number_and_is_made_once():
    p = Program()
    one = permuted_init(p.scope, p["fill"], (2, 1, 0))
    fill = made(one, linalg.ops.FillOp)
    assert fill.operands[0] is p["v"]
    assert tuple(made(fill.operands[1], tensor.EmptyOp).dynamic_sizes) == (p["m"], p["n"])
    assert permuted_init(p.scope, p["fill"], (2, 1, 0)) is one
    assert permuted_init(p.scope, p["fill"], (1, 2, 0)) is not one
    p.module.verify()


def test_a_splat_keeps_its_number():
    p = Program()
    value = permuted_init(p.scope, p["splat"], (1, 2, 0))
    assert shape(value) == (3, 5, 2)
    attribute = made(value, arith.ConstantOp).value
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    assert attribute.type == value.type
    assert set(attribute.get_values()) == {2.5}
    p.module.verify()


def test_an_init_with_data_is_transposed():
    p = Program()
    made(init_like(p.scope, p.at, p["over"], (1, 2, 0)), linalg.ops.TransposeOp)
    made(init_like(p.scope, p.at, p["splat"], (1, 2, 0)), arith.ConstantOp)
    p.module.verify()


# users ----------------------------------------------------------------------------------------------------------------

TRANSPOSES = """func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, index) {
  %c = arith.constant 0 : index
  %size = tensor.dim %x, %c : tensor<4x4xf32>
  %other = tensor.cast %x : tensor<4x4xf32> to tensor<?x4xf32>
  %a = linalg.transpose ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) permutation = [1, 0]
  %b = linalg.transpose ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) permutation = [1, 0]
  %same = linalg.transpose ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) permutation = [0, 1]
  %into = linalg.transpose ins(%y : tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) permutation = [1, 0]
  %last = linalg.transpose ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) permutation = [1, 0]
  return %b, %last, %same, %into, %size : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, index
}"""


def test_sizes_are_not_read_by_a_user():
    p = Program(TRANSPOSES)
    users = users_of(p["x"])
    assert sorted(id(user) for user in users) == sorted(
        id(p[name].owner) for name in ("a", "b", "same", "into", "last", "other")
    )


def test_equal_transposes_of_a_value_become_the_earliest():
    p = Program(TRANSPOSES)
    returned = p.block.last_op
    assert returned is not None
    merge_equal_transposes(p["x"])
    assert tuple(returned.operands)[:4] == (p["a"], p["a"], p["same"], p["into"])
    p.module.verify()


def test_the_earliest_of_equal_transposes_stays_whatever_the_order_of_uses():
    p = Program(TRANSPOSES)
    early = made(p["a"], linalg.ops.TransposeOp)
    early.operands[0] = p["y"]
    early.operands[0] = p["x"]  # used last now
    merge_equal_transposes(p["x"])
    returned = p.block.last_op
    assert returned is not None
    assert tuple(returned.operands)[:2] == (p["a"], p["a"])
    p.module.verify()
