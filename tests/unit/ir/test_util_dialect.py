"""IREE's `util` and `iree_tensor_ext` as text: what each op holds, what is read as an op of `func`, what does not
read."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr, TensorType, f32, i32
from xdsl.ir import Operation

from fuseline.errors import FuselineError
from fuseline.ir import util_dialect
from fuseline.ir.context import new_context
from fuseline.ir.tensor_ext import ComputeBarrierEndOp, ComputeBarrierOp, ComputeBarrierStartOp, TensorExt
from fuseline.ir.text import parse_module, print_module

from .one_op import op_of, refused


def _module(text: str) -> list[Operation]:
    """The ops of a module, which is the same when it is printed and read again."""
    module = parse_module(text, new_context())
    again = parse_module(print_module(module), new_context())
    assert again.is_structurally_equivalent(module)
    return list(module.ops)


@pytest.mark.parametrize(
    ("text", "mutable", "visibility", "valued"),
    [
        ("util.global @g = 3 : i32", False, None, True),
        ("util.global private mutable @g = 3 : i32", True, "private", True),
        ("util.global public @g : i32", False, "public", False),
        ("util.global private @g {kept} = dense<3> : tensor<2xi32>", False, "private", True),
    ],
)
def test_globals(text: str, mutable: bool, visibility: str | None, valued: bool):
    (op,) = _module(text)
    assert isinstance(op, util_dialect.GlobalOp) and op.sym_name.data == "g"
    assert (op.mutable is not None, op.value is not None) == (mutable, valued)
    assert op.sym_visibility == (StringAttr(visibility) if visibility else None)
    assert op.type == (TensorType(i32, [2]) if "tensor" in text else i32) and ("kept" in op.attributes) == (
        "kept" in text
    )


@pytest.mark.parametrize("text", ["util.global @g", "util.global @g = unit"])
def test_a_global_has_a_type(text: str):
    with pytest.raises(FuselineError, match="expected the type of the global"):
        _module(text)


@pytest.mark.parametrize("word", ["", "immutable "])
def test_loads_and_stores(word: str):
    load = op_of(util_dialect.GlobalLoadOp, f"%r = util.global.load {word}@g : tensor<2xf32>")
    assert load.target == SymbolRefAttr("g") and load.res.type == TensorType(f32, [2])
    store = op_of(util_dialect.GlobalStoreOp, f"util.global.store %x, {word}@g {{kept}} : f32", "%x: f32")
    assert store.target == SymbolRefAttr("g") and store.value.type == f32 and "kept" in store.attributes


def test_indirect_loads():
    lines = "%p = util.global.address @g : !util.ptr<f32>\n%r = util.global.load.indirect %p : !util.ptr<f32> -> f32"
    address, load = op_of(util_dialect.GlobalAddressOp, lines), op_of(util_dialect.GlobalLoadIndirectOp, lines)
    assert address.res.type == util_dialect.PointerType(f32) == load.address.type and load.res.type == f32


@pytest.mark.parametrize("text", ["util.global.load 3 : f32", "util.global.store %x, 3 : f32"])
def test_what_is_no_global(text: str):
    refused(("%r = " if "load" in text else "") + text, "%x: f32", says="expected @global", code="E0301")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("%r = util.optimization_barrier %x : f32", 1),
        ("%r:2 = util.optimization_barrier %x, %t : f32, tensor<2xf32>", 2),
        ("%r = util.optimization_barrier %t {kept} : tensor<2xf32>", 1),
    ],
)
def test_barriers(text: str, count: int):
    op = op_of(util_dialect.OptimizationBarrierOp, text, "%x: f32, %t: tensor<2xf32>")
    assert len(op.values) == len(op.res) == count and list(op.values.types) == list(op.res.types)
    assert ("kept" in op.attributes) == ("kept" in text)


def test_constants_that_nobody_folds():
    assert op_of(util_dialect.UnfoldableConstantOp, "%r = util.unfoldable_constant 3 : i32").res.type == i32
    op = op_of(util_dialect.UnfoldableConstantOp, "%r = util.unfoldable_constant {kept} dense<2.0> : tensor<2xf32>")
    assert op.res.type == TensorType(f32, [2]) and "kept" in op.attributes
    refused("%r = util.unfoldable_constant unit", says="expected a constant with a type", code="E0301")


def test_functions_calls_and_returns_are_those_of_func():
    text = """util.func private @callee(%x: f32) -> f32 {
      util.return %x : f32
    }
    util.func public @main(%x: f32) -> f32 attributes {inlining = #util.inline.never, other = #util.inline.always} {
      %r = util.call @callee(%x) : (f32) -> f32
      util.return %r : f32
    }"""
    first, second = _module(text)
    assert isinstance(first, func.FuncOp) and isinstance(second, func.FuncOp)
    assert second.attributes == {"inlining": util_dialect.InlineNeverAttr(), "other": util_dialect.InlineAlwaysAttr()}
    assert [type(op) for op in second.body.block.ops] == [func.CallOp, func.ReturnOp]


@pytest.mark.parametrize("kind", [ComputeBarrierStartOp, ComputeBarrierEndOp])
@pytest.mark.parametrize(
    ("value", "type_", "sizes"), [("%t", "tensor<2xf32>", 0), ("%d {kept}", "tensor<?x?xf32>{%n, %n}", 2)]
)
def test_compute_barriers(kind: type[ComputeBarrierOp], value: str, type_: str, sizes: int):
    plain = type_.partition("{")[0]
    text = f"%r = {kind.name} {value} : {type_} -> {plain}"
    op = op_of(kind, text, "%t: tensor<2xf32>, %d: tensor<?x?xf32>, %n: index")
    assert len(op.dims) == sizes and op.res.type == op.value.type and ("kept" in op.attributes) == ("kept" in value)


def test_the_dialects_hold_what_is_tested_here():
    assert {kind.name for kind in TensorExt.operations} == {ComputeBarrierStartOp.name, ComputeBarrierEndOp.name}
    assert {kind.name for kind in util_dialect.Util.operations} >= {
        "util.func",
        "util.global",
        "util.global.load.indirect",
    }
    assert {kind.name for kind in util_dialect.Util.attributes} == {
        "util.ptr",
        "util.inline.never",
        "util.inline.always",
    }
