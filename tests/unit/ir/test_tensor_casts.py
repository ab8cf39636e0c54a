"""Casts and comparisons on whole tensors: read like those of scalars, which stay xDSL's."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32, i1
from xdsl.ir import Operation

from fuseline.ir.context import new_context
from fuseline.ir.scalar_ops import IndexCastUIOp
from fuseline.ir.tensor_casts import ON_TENSORS, OnTensors, scalar_op
from fuseline.ir.text import parse_module

from .one_op import op_of, refused

KINDS = {kind.name: kind for kind in ON_TENSORS}
CASTS = {
    "arith.extf": ("f16", "f32"),
    "arith.truncf": ("f32", "f16"),
    "arith.sitofp": ("i8", "f32"),
    "arith.uitofp": ("i8", "f32"),
    "arith.fptosi": ("f32", "i8"),
    "arith.fptoui": ("f32", "i8"),
    "arith.extsi": ("i8", "i32"),
    "arith.extui": ("i8", "i32"),
    "arith.trunci": ("i32", "i8"),
    "arith.index_cast": ("i32", "index"),
    "arith.bitcast": ("i32", "f32"),
    IndexCastUIOp.name: ("i32", "index"),
}


def test_every_kind_is_tested_here():
    assert KINDS.keys() == {*CASTS, "arith.cmpi", "arith.cmpf"}


@pytest.mark.parametrize("name", CASTS)
def test_a_cast_of_tensors_and_of_scalars(name: str):
    source, target = CASTS[name]
    op = op_of(
        KINDS[name],
        f"%r = {name} %x {{kept}} : tensor<2x?x{source}> to tensor<2x?x{target}>",
        f"%x: tensor<2x?x{source}>",
    )
    assert isinstance(op, OnTensors) and "kept" in op.attributes
    scalar = op_of(scalar_op(KINDS[name]), f"%r = {name} %x : {source} to {target}", f"%x: {source}")
    assert not isinstance(scalar, OnTensors) and scalar.name == name


@pytest.mark.parametrize(
    ("name", "flag"), [("arith.extui", "nneg"), ("arith.uitofp", "nneg"), ("arith.truncf", "to_nearest_even")]
)
def test_flags_change_nothing(name: str, flag: str):
    source, target = CASTS[name]
    op_of(KINDS[name], f"%r = {name} %x {flag} : tensor<2x{source}> to tensor<2x{target}>", f"%x: tensor<2x{source}>")


@pytest.mark.parametrize(
    ("name", "words", "type_"),
    [("arith.cmpi", arith.CMPI_COMPARISON_OPERATIONS, "i32"), ("arith.cmpf", arith.CMPF_COMPARISON_OPERATIONS, "f32")],
)
def test_comparisons_keep_their_predicate(name: str, words: list[str], type_: str):
    for number, word in enumerate(words):
        op = op_of(KINDS[name], f"%r = {name} {word}, %x, %x : tensor<3x{type_}>", f"%x: tensor<3x{type_}>")
        assert op.properties["predicate"].value.data == number and op.results[0].type == TensorType(i1, [3])  # pyright: ignore
        scalar = op_of(scalar_op(KINDS[name]), f"%r = {name} {word}, %x, %x : {type_}", f"%x: {type_}")
        assert scalar.results[0].type == i1 and not isinstance(scalar, OnTensors)
        assert scalar.properties["predicate"].value.data == number  # pyright: ignore


def test_fast_math_changes_nothing():
    op_of(KINDS["arith.cmpf"], "%r = arith.cmpf olt, %x, %x fastmath<nnan, ninf> : tensor<3xf32>", "%x: tensor<3xf32>")


def test_what_does_not_read_or_fit():
    refused(
        "%r = arith.cmpi less, %x, %x : tensor<3xi32>", "%x: tensor<3xi32>", says="less is no comparison", code="E0301"
    )
    refused("%r = arith.extf %x : tensor<3xf16> to tensor<4xf32>", "%x: tensor<3xf16>", says="tensors of one shape")
    refused("%r = arith.extf %x : f16 to tensor<4xf32>", "%x: f16", says="tensor")


@pytest.mark.parametrize("kind", ON_TENSORS, ids=lambda kind: kind.name)
def test_what_is_done_with_each_element(kind: type[Operation]):
    assert scalar_op(kind).name == kind.name and not issubclass(scalar_op(kind), OnTensors)
    assert scalar_op(arith.AddfOp) is arith.AddfOp


def test_ops_made_of_parts_are_those_of_the_result():
    module = parse_module("func.func @main(%x: tensor<3xf16>, %s: f16) { return }", new_context())
    tensor, scalar = next(iter(module.ops)).body.block.args  # pyright: ignore
    kind = KINDS["arith.extf"]
    assert type(kind.create(operands=[scalar], result_types=[f32])) is arith.ExtFOp
    assert type(kind.create(operands=[tensor], result_types=[TensorType(f32, [3])])) is kind
