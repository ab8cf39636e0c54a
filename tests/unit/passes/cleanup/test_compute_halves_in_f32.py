"""16-bit floats computed in f32: what rounds where, what stays as it is stored, and the values of programs with loops,
tables and host operators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import fuseline
from fuseline.api import emit
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.compute_halves_in_f32 import ComputeHalvesInF32Pass
from tests.graphs.onnx_text import onnx_model

Array = NDArray[Any]
F16, F32 = "float16", "float"

PROGRAM = """func.func @main(%x: tensor<?xf16>, %i: tensor<?xi64>) -> (tensor<?xf16>, tensor<?xi16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf16>
  %w = arith.constant dense<1.5> : tensor<4xf16>
  %p = arith.constant 2.0 : f16
  %padded = tensor.pad %x low[1] high[1] {
  ^bb0(%k: index):
    tensor.yield %p : f16
  } : tensor<?xf16> to tensor<?xf16>
  %cut = tensor.extract_slice %padded[1] [%n] [1] : tensor<?xf16> to tensor<?xf16>
  %e = tensor.empty(%n) : tensor<?xf16>
  %b = tensor.empty(%n) : tensor<?xi16>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>],
                         iterator_types = ["parallel"]}
      ins(%cut, %i : tensor<?xf16>, tensor<?xi64>) outs(%e, %b : tensor<?xf16>, tensor<?xi16>) {
  ^bb0(%v: f16, %j: i64, %out: f16, %bits: i16):
    %jj = arith.index_cast %j : i64 to index
    %t = tensor.extract %w[%jj] : tensor<4xf16>
    %s = arith.addf %v, %t : f16
    %q = arith.bitcast %s : f16 to i16
    linalg.yield %s, %q : f16, i16
  } -> (tensor<?xf16>, tensor<?xi16>)
  return %r#0, %r#1 : tensor<?xf16>, tensor<?xi16>
}"""


def _widened(text: str, numerics: str = "default") -> tuple[ModuleOp, CompilerContext]:
    ctx = new_context()
    ctx.target = TargetDescription("null", numerics=numerics)
    module = parse_module(text, ctx)
    ComputeHalvesInF32Pass().apply(ctx, module)
    module.verify()
    return module, ctx


def test_again_changes_nothing():
    module, ctx = _widened(PROGRAM)
    once = print_module(module, locations=True)
    ComputeHalvesInF32Pass().apply(ctx, module)
    assert print_module(module, locations=True) == once
    assert "addf" in once and "f32" in once


@pytest.mark.parametrize(("visibility", "border"), [("", True), ("public ", True), ("private ", False)])
def test_what_others_call_keeps_its_types(visibility: str, border: bool):
    text = f"""func.func {visibility}@main(%x: tensor<4xf16>) -> tensor<4xf16> {{
      %r = math.exp %x : tensor<4xf16>
      return %r : tensor<4xf16>
    }}"""
    module, _ = _widened(text)
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    element = "f16" if border else "f32"
    for types in (function.function_type.inputs, function.function_type.outputs):
        assert [str(type_) for type_ in types] == [f"tensor<4x{element}>"]


def test_strict_keeps_every_rounding():
    module, _ = _widened(PROGRAM, "strict")
    assert "f32" not in print_module(module)


def test_a_program_without_halves_stays_the_same():
    text = PROGRAM.replace("f16", "f32").replace("i16", "i32")
    ctx = new_context()
    assert print_module(_widened(text)[0]) == print_module(parse_module(text, ctx))


Sides = dict[str, tuple[str, list[Any]]]


def _model(nodes: str, weights: dict[str, Array], inputs: Sides, outputs: Sides) -> onnx.ModelProto:
    given, made = (
        ", ".join(f"{element}[{', '.join(map(str, sizes))}] {name}" for name, (element, sizes) in side.items())
        for side in (inputs, outputs)
    )
    return onnx_model(f"({given}) => ({made}) {{ {nodes} }}", weights)


def _compile(model: onnx.ModelProto, target: str = "cpu", numerics: str = "default") -> Any:
    return fuseline.compile(model, target=target, threads=1, numerics=numerics)


TARGETS = pytest.mark.parametrize("target", ["cpu", "cpu:baseline", "interpreter"])


@TARGETS
def test_sums_of_many_products_round_once(target: str):
    """`strict` rounds the product and each step behind it; else only the result is rounded."""
    rng = np.random.default_rng(11)
    x, w, c = (
        rng.standard_normal((5, 37)).astype("f2"),
        rng.standard_normal((37, 9)).astype("f2"),
        rng.standard_normal(9).astype("f2"),
    )
    nodes = "p = MatMul(x, w)  s = Add(p, c)  y = Mul(s, s)"
    model = _model(nodes, {"w": w, "c": c}, {"x": (F16, [5, 37])}, {"y": (F16, [5, 9])})
    exact = (x.astype("f8") @ w.astype("f8") + c.astype("f8")) ** 2
    rounded = (x.astype("f4") @ w.astype("f4")).astype("f2") + c
    got = _compile(model, target).run({"x": x})["y"]
    assert got.dtype == np.float16
    assert (np.abs(got - exact) <= 0.5005 * np.spacing(np.abs(exact).astype("f2"))).all()
    strict = _compile(model, target, "strict").run({"x": x})["y"]
    np.testing.assert_allclose(strict, rounded * rounded, rtol=2**-8)
    assert (strict != got).any()


@TARGETS
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_cast_of_the_model_rounds(target: str, dtype: Any):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = f"h = Cast<to = {kind}>(x)  w = Cast<to = 1>(h)  y = Sub(x, w)"
    model = _model(nodes, {}, {"x": (F32, [3, 41])}, {"y": (F32, [3, 41])})
    x = np.random.default_rng(3).standard_normal((3, 41)).astype("f4") * np.float32(1000)
    got = _compile(model, target).run({"x": x})["y"]
    np.testing.assert_array_equal(got, x - x.astype(dtype).astype("f4"))
    assert got.any()


def test_a_table_stays_as_it_is_stored():
    """An embedding of 2 MiB in f16: only the gathered rows are widened."""
    rng = np.random.default_rng(5)
    table, places = rng.standard_normal((4096, 256)).astype("f2"), rng.integers(0, 4096, (2, 7))
    nodes = "r = Gather(table, i)  y = Add(r, r)"
    model = _model(nodes, {"table": table}, {"i": ("int64", [2, 7])}, {"y": (F16, [2, 7, 256])})
    compiled = _compile(model)
    np.testing.assert_array_equal(compiled.run({"i": places})["y"], table[places] + table[places])
    assert compiled.stats["constant_bytes"]["packed"] < 1.1 * table.nbytes


@TARGETS
@pytest.mark.parametrize("op_type", ["LSTM", "GRU"])
def test_states_of_loops_are_f32(target: str, op_type: str):
    rng, hidden, gates = np.random.default_rng(8), 6, {"LSTM": 4, "GRU": 3}[op_type]
    weights = {
        "w": rng.standard_normal((1, gates * hidden, 5)).astype("f2"),
        "r": rng.standard_normal((1, gates * hidden, hidden)).astype("f2"),
    }
    node = f"y = {op_type}<hidden_size = {hidden}>(x, w, r)"
    model = _model(node, weights, {"x": (F16, [9, 2, 5])}, {"y": (F16, [9, 1, 2, hidden])})
    x = rng.standard_normal((9, 2, 5)).astype("f2")
    wide = _model(
        node,
        {name: array.astype("f4") for name, array in weights.items()},
        {"x": (F32, [9, 2, 5])},
        {"y": (F32, [9, 1, 2, hidden])},
    )
    expected = _compile(wide, "interpreter").run({"x": x.astype("f4")})["y"]
    got = _compile(model, target).run({"x": x})["y"]
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, expected, rtol=2**-11, atol=2**-12)


@TARGETS
def test_host_operators_exchange_what_they_declare(target: str):
    nodes = "d = Add(x, x)  u = Unique(d)  y = Mul(u, u)"
    model = _model(nodes, {}, {"x": (F16, [3, 8])}, {"y": (F16, ["n"])})
    x = np.random.default_rng(2).integers(-9, 9, (3, 8)).astype("f2")
    compiled = _compile(model, target)
    np.testing.assert_array_equal(compiled.run({"x": x})["y"], np.unique(x + x) ** 2)
    assert compiled.stats["host_ops"] == 1


def test_the_stage_shows_no_halves_but_at_the_border():
    nodes = "a = Exp(x)  y = Gemm<transB = 1>(a, a)"
    model = _model(nodes, {}, {"x": (F16, [4, 8])}, {"y": (F16, [4, 4])})
    text = emit(model, "cleanup", target="null")
    assert text.count("arith.extf") == text.count("arith.truncf") == 1
    strict = emit(model, "cleanup", target="null", numerics="strict")
    assert strict.count("arith.truncf") == 1 and "math.exp" in strict and strict.count("arith.extf") == 1
