"""`flow.tensor.*` and its constants as text: what each op holds, and what does not fit."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, TensorType, f32, i32
from xdsl.ir import Attribute, Operation

from fuseline.ir import flow_tensor as ft
from fuseline.ir.flow_constants import ConstantOp, DynamicConstantOp
from fuseline.ir.flow_tensor_base import FlowTensorOp, count, element, rank

from .one_op import op_of, refused

ARGUMENTS = (
    "%a: tensor<4x6xf32>, %d: tensor<?x6xf32>, %b: tensor<2x3xf32>, %s: f32, %i: index, %n: index, %x: tensor<f32>"
)

FORMS: list[tuple[type[FlowTensorOp], str, tuple[int, int, int, int, int]]] = [
    (ft.ReshapeOp, "flow.tensor.reshape %a : tensor<4x6xf32> -> tensor<24xf32>", (1, 0, 0, 0, 0)),
    (ft.ReshapeOp, "flow.tensor.reshape %d : tensor<?x6xf32>{%n} -> tensor<6x?xf32>{%n}", (1, 0, 0, 1, 1)),
    (ft.BitCastOp, "flow.tensor.bitcast %a : tensor<4x6xf32> -> tensor<24xi32>", (1, 0, 0, 0, 0)),
    (ft.TensorExtBitCastOp, "iree_tensor_ext.bitcast %a : tensor<4x6xf32> -> tensor<6x4xi32>", (1, 0, 0, 0, 0)),
    (ft.EncodeOp, "flow.tensor.encode %d : tensor<?x6xf32>{%n} -> tensor<?x6xf32>{%n}", (1, 0, 0, 1, 1)),
    (ft.LoadOp, "flow.tensor.load %a[%i, %n] : tensor<4x6xf32>", (1, 2, 0, 0, 0)),
    (ft.LoadOp, "flow.tensor.load %d[%i, %n] : tensor<?x6xf32>{%n}", (1, 2, 0, 0, 1)),
    (ft.LoadOp, "flow.tensor.load %x : tensor<f32>", (1, 0, 0, 0, 0)),
    (ft.StoreOp, "flow.tensor.store %s, %a[%i, %i] : tensor<4x6xf32>", (2, 2, 0, 0, 0)),
    (ft.EmptyOp, "flow.tensor.empty : tensor<?x6xf32>{%n}", (0, 0, 0, 0, 1)),
    (ft.AllocaOp, "flow.tensor.alloca : tensor<4xf32>", (0, 0, 0, 0, 0)),
    (ft.SplatOp, "flow.tensor.splat %s : tensor<?x2xf32>{%n}", (1, 0, 0, 0, 1)),
    (ft.CloneOp, "flow.tensor.clone %a : tensor<4x6xf32>", (1, 0, 0, 0, 0)),
    (ft.TieShapeOp, "flow.tensor.tie_shape %d : tensor<?x6xf32>{%n}", (1, 0, 0, 0, 1)),
    (ft.BarrierOp, 'flow.tensor.barrier %a : tensor<4x6xf32> on "here"', (1, 0, 0, 0, 0)),
    (ft.TransferOp, 'flow.tensor.transfer %d : tensor<?x6xf32>{%n} to "there"', (1, 0, 0, 0, 1)),
    (
        ft.SliceOp,
        "flow.tensor.slice %a[%i, %i for %n, %n] : tensor<4x6xf32> -> tensor<?x?xf32>{%n, %n}",
        (1, 2, 2, 0, 2),
    ),
    (ft.UpdateOp, "flow.tensor.update %b, %a[%i, %i] : tensor<2x3xf32> -> tensor<4x6xf32>", (2, 2, 0, 0, 0)),
]


@pytest.mark.parametrize(("kind", "text", "counts"), FORMS)
def test_each_op_reads_back(kind: type[FlowTensorOp], text: str, counts: tuple[int, ...]):
    op = op_of(kind, f"%r = {text}", ARGUMENTS)
    assert tuple(len(part) for part in (op.values, op.indices, op.lengths, op.source_dims, op.result_dims)) == counts
    assert op.target is None or str(op.target).strip('"') in text
    assert (kind in ft.FLOW_TENSOR_OPS) == kind.name.startswith("flow.")
    assert (kind in ft.HANDED_ON) == (kind.name.rpartition(".")[2] in ("clone", "tie_shape", "barrier", "transfer"))


def test_every_op_has_a_form_here():
    assert {kind for kind, _, _ in FORMS} == {*ft.FLOW_TENSOR_OPS, ft.TensorExtBitCastOp}


def test_the_types_follow_from_the_text():
    assert op_of(ft.LoadOp, "%r = flow.tensor.load %a[%i, %i] : tensor<4x6xf32>", ARGUMENTS).res[0].type == f32
    update = op_of(
        ft.UpdateOp, "%r = flow.tensor.update %b, %a[%i, %i] : tensor<2x3xf32> -> tensor<4x6xf32>", ARGUMENTS
    )
    assert update.indexed is update.values[1] and update.res[0].type == TensorType(f32, [4, 6])


def test_attributes_are_kept():
    op = op_of(ft.CloneOp, "%r = flow.tensor.clone %a : tensor<4x6xf32> attributes {kept = 7 : i64}", ARGUMENTS)
    assert op.attributes == {"kept": IntegerAttr(7, 64)}


def test_a_result_may_name_what_it_is_made_in():
    op_of(ft.ReshapeOp, "%r = flow.tensor.reshape %a : tensor<4x6xf32> -> %a as tensor<24xf32>", ARGUMENTS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("flow.tensor.reshape %a : tensor<4x6xf32> -> tensor<25xf32>", "24 and 25 elements"),
        ("flow.tensor.reshape %a : tensor<4x6xf32> -> tensor<24xi32>", "other element types"),
        ("flow.tensor.load %a[%i] : tensor<4x6xf32>", "1 indices for tensor<4x6xf32>"),
        ("flow.tensor.load %a : tensor<4x6xf32>", "0 indices for tensor<4x6xf32>"),
        ("flow.tensor.slice %a[%i, %i for %n] : tensor<4x6xf32> -> tensor<4x6xf32>", "as many lengths as indices"),
        (
            "flow.tensor.slice %a[%i, %i] : tensor<4x6xf32> -> tensor<4x6xf32>",
            "as many dimensions as there are lengths",
        ),
        ("flow.tensor.slice %a[%i, %i for %i, %i] : tensor<4x6xf32> -> tensor<4xf32>", "as many dimensions"),
        (
            "flow.tensor.update %x, %a[%i, %i] : tensor<f32> -> tensor<4x6xf32>",
            "as many dimensions as what it goes into",
        ),
    ],
)
def test_what_does_not_fit(text: str, says: str):
    refused(f"%r = {text}", ARGUMENTS, says=says)


@pytest.mark.parametrize(
    ("operands", "segments", "types", "says"),
    [
        ("%a, %a", "2, 0, 0, 0, 0", "tensor<4x6xf32>, tensor<4x6xf32>", "expected 1 operands and a result"),
        ("%d", "1, 0, 0, 0, 0", "tensor<?x6xf32>", "1 unknown sizes, 0 are given"),
        ("%d, %n, %n", "1, 0, 0, 0, 2", "tensor<?x6xf32>, index, index", "1 unknown sizes, 2 are given"),
        ("%a, %n", "1, 0, 1, 0, 0", "tensor<4x6xf32>, index", "as many lengths as indices are wanted"),
    ],
)
def test_the_generic_form_is_verified_as_well(operands: str, segments: str, types: str, says: str):
    result = types.partition(", ")[0]
    text = f'"flow.tensor.clone"({operands}) <{{operandSegmentSizes = array<i32: {segments}>}}> : ({types}) -> {result}'
    refused(f"%r = {text}", ARGUMENTS, says=says)


@pytest.mark.parametrize(
    ("type_", "dims", "kind", "elements"),
    [
        (TensorType(f32, [4, 6]), 2, f32, 24),
        (TensorType(i32, []), 0, i32, 1),
        (TensorType(f32, [DYNAMIC_INDEX, 6]), 2, f32, None),
        (TensorType(f32, [0, 6]), 2, f32, 0),
        (IndexType(), -1, IndexType(), None),
    ],
)
def test_what_types_say(type_: Attribute, dims: int, kind: Attribute, elements: int | None):
    assert (rank(type_), element(type_), count(type_)) == (dims, kind, elements)


@pytest.mark.parametrize(
    ("kind", "text", "type_"),
    [
        (ConstantOp, "flow.tensor.constant dense<3.0> : tensor<2x3xf32>", TensorType(f32, [2, 3])),
        (ConstantOp, "flow.tensor.constant {kept} dense<3.0> : tensor<2x3xf32>", TensorType(f32, [2, 3])),
        (
            DynamicConstantOp,
            "flow.tensor.dynamic_constant dense<3> : tensor<2xi32> -> tensor<?xi32>",
            TensorType(i32, [DYNAMIC_INDEX]),
        ),
    ],
)
def test_constants(kind: type[Operation], text: str, type_: Attribute):
    op = op_of(kind, f"%r = {text}")
    assert op.results[0].type == type_ and ("kept" in op.attributes) == ("kept" in text)


def test_a_constant_without_a_type():
    refused("%r = flow.tensor.constant unit", says="expected a constant with a type", code="E0301")
