"""What the attributes of `@main` say of its arguments and results, and the specs that come of it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.buffers import INDEX_TYPE, BufferRef, TensorSpec
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from fuseline.ir.text import parse_module
from fuseline.passes.schedule.main_border import Described, arguments_of, results_of, spec_of

TEXT = """func.func @main(%x: tensor<?x4xf32> {fuseline.name = "image", fuseline.dims = ["n", "4"]},
    %b: tensor<3xi8> {fuseline.dtype = "uint8"}, %k: index {fuseline.name = "k"}, %s: f32, %e: tensor<2xbf16>)
    -> (tensor<?x4xf32> {fuseline.name = "out", other.name = "no", fuseline.dims = ["n", 7 : i64, "4"]}, tensor<3xi8>) {
  return %x, %b : tensor<?x4xf32>, tensor<3xi8>
}"""


def _function(text: str = TEXT) -> FuncOp:
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    return function


def test_what_is_said_of_each():
    function = _function()
    assert [said.text("name") for said in arguments_of(function)] == ["image", None, "k", None, None]
    assert [said.text("dtype") for said in arguments_of(function)] == [None, "uint8", None, None, None]
    assert [said.texts("dims") for said in arguments_of(function)] == [["n", "4"], [], [], [], []]
    assert [said.text("name") for said in results_of(function)] == ["out", None]
    assert results_of(function)[0].texts("dims") == ["n", "4"]  # what is no text is none
    assert results_of(function)[0].text("dims") is None and results_of(function)[0].texts("name") == []


def test_nothing_is_said():
    function = _function("func.func @main(%x: tensor<2xf32>) { return }")
    assert [said.text("name") for said in arguments_of(function)] == [None]
    assert results_of(function) == []
    for said in (Described(None, 0), Described(ArrayAttr([]), 3)):
        assert said.text("name") is None and said.texts("dims") == []


def _spec(index: int, slot: BufferRef | None = None, function: FuncOp | None = None) -> TensorSpec:
    function = function or _function()
    shapes = ShapeAnalysis({"n": symbol("n", 2, 9)})
    return spec_of(function.body.block.args[index], arguments_of(function)[index], f"input{index}", shapes, slot)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, TensorSpec("image", "float32", (symbol("n", 2, 9), 4))),
        (1, TensorSpec("input1", "uint8", (3,))),
        (4, TensorSpec("input4", "bfloat16", (2,))),
    ],
)
def test_a_tensor_lies_in_memory(index: int, expected: TensorSpec):
    assert _spec(index) == expected


def test_a_number_that_sizes_depend_on():
    spec = _spec(2)
    assert (spec.name, spec.dtype, spec.type, spec.is_index, spec.shape) == ("k", "int64", INDEX_TYPE, True, ())
    assert spec.dims == (ShapeAnalysis().index(_function().body.block.args[2]),) == (symbol("k"),)


def test_what_is_boxed_needs_no_tensor():
    assert _spec(3, BufferRef("boxed", 5)) == TensorSpec("input3", "object", (), 5, "any")
    said = '{fuseline.type = "sequence", fuseline.dtype = "float32", fuseline.dims = ["n", "m"]}'
    function = _function(f"func.func @main(%s: f32 {said}) {{ return }}")
    assert _spec(0, BufferRef("boxed", 2), function) == TensorSpec(
        "input0", "float32", (symbol("n", 2, 9), symbol("m")), 2, "sequence"
    )


def test_anything_else_is_refused():
    with pytest.raises(FuselineError) as caught:
        _spec(3)
    assert caught.value.code == "E0305" and "f32" in caught.value.message
