"""Ops made from their parts are the ops that xDSL's constructors make, and attributes made once are those made each
time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects import math as mlir_math
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.ir.element_types import scalar_attribute
from fuseline.ir.fast import attributes, create
from fuseline.ir.provenance import location_of

LOCATION = location_of(["node"])


def _same(made: Operation, expected: Operation) -> None:
    made.verify()
    assert type(made) is type(expected)
    assert made.is_structurally_equivalent(expected)
    assert [result.type for result in made.results] == [result.type for result in expected.results]
    assert list(made.operands) == list(expected.operands)


def _empty(*shape: int) -> SSAValue:
    return tensor.EmptyOp([], TensorType(f32, shape)).tensor


def _region() -> Region:
    block = Block(arg_types=[f32, f32])
    block.add_op(linalg.ops.YieldOp(block.args[0]))
    return Region(block)


def test_generic():
    x, out, identity = _empty(3, 5), _empty(3, 5), AffineMap.identity(2)
    made = create.create_generic(
        [x], [out], _region(), [identity, identity], ["parallel", "parallel"], location=LOCATION
    )
    kinds = [linalg.attrs.IteratorTypeAttr(linalg.attrs.IteratorType.PARALLEL)] * 2
    _same(made, linalg.ops.GenericOp([x], [out], _region(), [AffineMapAttr(identity)] * 2, kinds, [out.type]))
    assert made.location == LOCATION


def test_fill_empty_constant_and_concat():
    scalar, into = arith.ConstantOp(FloatAttr(2.5, f32)).result, _empty(7)
    _same(create.create_fill(scalar, into), linalg.ops.FillOp([scalar], [into], [into.type]))
    size, dynamic = arith.ConstantOp(IntegerAttr(3, IndexType())).result, TensorType(f32, [DYNAMIC_INDEX, 4])
    _same(create.create_empty(dynamic, [size]), tensor.EmptyOp([size], dynamic))
    _same(create.create_constant(FloatAttr(2.5, f32), f32), arith.ConstantOp(FloatAttr(2.5, f32)))
    pieces, joined = [_empty(2, 3), _empty(2, 4)], TensorType(f32, [2, 7])
    _same(create.create_concat(pieces, 1, joined), tensor.ConcatOp(pieces, 1, joined))


def test_pad_with_numbers_and_values():
    source, scalar = _empty(4, 6), arith.ConstantOp(FloatAttr(-1.0, f32)).result
    amount = arith.ConstantOp(IntegerAttr(2, IndexType())).result
    type_ = TensorType(f32, [DYNAMIC_INDEX, 9])
    made = create.create_pad(source, [amount, 1], [0, 2], scalar, type_)
    block = Block(arg_types=[IndexType()] * 2)
    block.add_op(tensor.YieldOp(scalar))
    _same(made, tensor.PadOp(source, [amount], [], Region(block), [DYNAMIC_INDEX, 1], [0, 2], type_))


SCALARS: list[tuple[Callable[..., Operation], list[Attribute], list[Any]]] = [
    (arith.AddfOp, [f32, f32], []),
    (arith.AddfOp, [f64, f64], []),
    (arith.MuliOp, [i32, i32], []),
    (arith.SelectOp, [i1, f32, f32], []),
    (arith.CmpfOp, [f32, f32], ["ogt"]),
    (arith.CmpfOp, [f32, f32], ["olt"]),
    (arith.CmpiOp, [i64, i64], [1]),
    (mlir_math.ExpOp, [f32], []),
    (arith.ExtFOp, [f32], [f64]),
    (linalg.ops.IndexOp, [], [2]),
]


@pytest.mark.parametrize(("kind", "types", "rest"), SCALARS)
def test_scalar_ops_are_those_of_the_constructor(
    kind: Callable[..., Operation], types: list[Attribute], rest: list[Any]
):
    """The second one is made from the pattern of the first."""
    ops = create.ScalarOps()
    for _ in range(2):
        operands = [*Block(arg_types=types).args, *rest]
        made, expected = ops.make(kind, operands, {}, LOCATION), kind(*operands)
        assert made.is_structurally_equivalent(expected)
        assert made.results[0].type == expected.results[0].type
        assert made.location == LOCATION


def test_scalar_ops_do_not_mix_up_arguments():
    ops = create.ScalarOps()
    made = [ops.make(linalg.ops.IndexOp, [position], {}, LOCATION) for position in (0, 1, 0, 2)]
    assert [op.properties["dim"] for op in made] == [IntegerAttr(position, i64) for position in (0, 1, 0, 2)]


def test_scalar_ops_with_lists_are_constructed_each_time():
    source, ops = _empty(4), create.ScalarOps()
    places = [arith.ConstantOp(IntegerAttr(i, IndexType())).result for i in range(2)]
    made = [ops.make(tensor.ExtractOp, [source, [position], f32], {}, LOCATION) for position in places]
    assert [op.operands[1] for op in made] == places


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, math.inf, -math.inf])
def test_a_float_keeps_its_sign(value: float):
    found = attributes.floating(value, f32)
    assert math.copysign(1.0, found.value.data) == math.copysign(1.0, value) and found.value.data == value
    assert attributes.floating(value, f32) is found
    assert attributes.floating(value, f64).type == f64


def test_not_a_number_is_one():
    assert math.isnan(attributes.floating(math.nan, f32).value.data)


def test_attributes_are_those_of_xdsl():
    assert attributes.tensor_type(f32, (2, DYNAMIC_INDEX)) == TensorType(f32, [2, DYNAMIC_INDEX])
    assert attributes.index(3) == IntegerAttr(3, IndexType())
    assert attributes.integer(-1, i32) == IntegerAttr(-1, i32) != attributes.integer(-1, i64)
    assert attributes.dense((1, 2)) == DenseArrayBase.from_list(i64, [1, 2])
    assert attributes.segments((1, 2)) == DenseArrayBase.from_list(i32, [1, 2])
    assert scalar_attribute(True, i1) == IntegerAttr(1, i1)
    assert scalar_attribute(255, i8) == IntegerAttr(-1, i8)
