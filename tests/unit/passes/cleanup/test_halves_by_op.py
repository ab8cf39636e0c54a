"""16-bit floats computed in f32, op by op: where a conversion goes, and what keeps its type."""

from __future__ import annotations

import pytest
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from fuseline.ir.context import new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.compute_halves_in_f32 import ComputeHalvesInF32Pass

GENERIC = (
    'linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}'
)
WIDEN = ["generic [f16] [f32] -> [f32]", "  extf f16 -> f32"]
NARROW = ["generic [f32] [f16] -> [f16]", "  truncf f32 -> f16"]


def elementwise(source: str, result: str, body: str) -> str:
    """A program that computes `%s` of `%a`, elements of its argument."""
    return f"""func.func @main(%x: tensor<4x{source}>) -> tensor<4x{result}> {{
      %e = tensor.empty() : tensor<4x{result}>
      %r = {GENERIC} ins(%x : tensor<4x{source}>) outs(%e : tensor<4x{result}>) {{
      ^bb0(%a: {source}, %o: {result}):
        {body}
        linalg.yield %s : {result}
      }} -> tensor<4x{result}>
      return %r : tensor<4x{result}>
    }}"""


def ops(text: str) -> list[str]:
    """The ops of the program after the pass with the elements of their types, bodies indented; without empties, yields
    and returns."""
    ctx = new_context()
    ctx.target = TargetDescription("null")
    module = parse_module(text, ctx)
    ComputeHalvesInF32Pass().apply(ctx, module)
    module.verify()
    left_out = (tensor.EmptyOp, tensor.YieldOp, linalg.ops.YieldOp)
    kept = (
        op
        for op in module.walk()
        if not isinstance(op, left_out) and op.name not in ("builtin.module", "func.func", "func.return")
    )
    return [line(op) for op in kept]


def line(op: Operation) -> str:
    """Indent, name, types of operands and results."""
    sides = [" ".join(element(value.type) for value in side) for side in (op.operands, op.results)]
    indent = "  " if isinstance(op.parent_op(), linalg.ops.GenericOp) else ""
    return f"{indent}{op.name.split('.')[-1]} {sides[0]} -> {sides[1]}"


def element(type_: Attribute) -> str:
    """The type's text; of a tensor, its element's in brackets."""
    return f"[{type_.get_element_type()}]" if isinstance(type_, TensorType) else str(type_)


def test_arguments_are_widened_and_results_narrowed():
    made = ops(elementwise("f16", "f16", "%s = arith.addf %a, %a : f16"))
    assert made == [*WIDEN, "generic [f32] [f32] -> [f32]", "  addf f32 f32 -> f32", *NARROW]


@pytest.mark.parametrize(
    ("source", "result", "conversion"),
    [("f16", "f32", "extf"), ("f16", "f64", "extf"), ("f32", "f16", "truncf"), ("f64", "f16", "truncf")],
)
@pytest.mark.parametrize("attribute", ["", "{fuseline.storage} "])
def test_a_conversion_at_the_border_is_all_there_is(source: str, result: str, conversion: str, attribute: str):
    made = ops(elementwise(source, result, f"%s = arith.{conversion} %a {attribute}: {source} to {result}"))
    assert made == [f"generic [{source}] [{result}] -> [{result}]", f"  {conversion} {source} -> {result}"]


def test_a_conversion_and_more_is_computed_wide():
    made = ops(elementwise("f16", "f32", "%w = arith.extf %a : f16 to f32\n%s = arith.negf %w : f32"))
    assert made == [*WIDEN, "generic [f32] [f32] -> [f32]", "  negf f32 -> f32"]


def test_a_rounding_that_the_model_asks_for_stays():
    made = ops(elementwise("f32", "f16", "%t = arith.truncf %a : f32 to f16\n%s = arith.negf %t : f16"))
    assert made == [
        "generic [f32] [f32] -> [f32]",
        "  truncf f32 -> f16",
        "  extf f16 -> f32",
        "  negf f32 -> f32",
        *NARROW,
    ]


def test_a_rounding_for_storage_goes():
    made = ops(
        elementwise("f32", "f16", "%t = arith.truncf %a {fuseline.storage} : f32 to f16\n%s = arith.negf %t : f16")
    )
    assert made == ["generic [f32] [f32] -> [f32]", "  negf f32 -> f32", *NARROW]


def test_a_rounding_of_f64_for_storage_rounds_to_f32():
    made = ops(
        elementwise("f64", "f16", "%t = arith.truncf %a {fuseline.storage} : f64 to f16\n%s = arith.negf %t : f16")
    )
    assert made == ["generic [f64] [f32] -> [f32]", "  truncf f64 -> f32", "  negf f32 -> f32", *NARROW]


def test_a_rounding_from_f64_to_f32_is_none_of_ours():
    made = ops(elementwise("f64", "f16", "%t = arith.truncf %a : f64 to f32\n%s = arith.truncf %t : f32 to f16"))
    assert made[:3] == ["generic [f64] [f32] -> [f32]", "  truncf f64 -> f32", "  truncf f32 -> f16"]


@pytest.mark.parametrize("conversion", ["sitofp", "uitofp"])
def test_integers_round_as_the_model_asks(conversion: str):
    made = ops(elementwise("i32", "f16", f"%s = arith.{conversion} %a : i32 to f16"))
    assert made == ["generic [i32] [f32] -> [f32]", f"  {conversion} i32 -> f16", "  extf f16 -> f32", *NARROW]


def test_bits_are_those_of_the_stored_type():
    made = ops(elementwise("f16", "i16", "%t = arith.addf %a, %a : f16\n%s = arith.bitcast %t : f16 to i16"))
    assert made == [
        *WIDEN,
        "generic [f32] [i16] -> [i16]",
        "  addf f32 f32 -> f32",
        "  truncf f32 -> f16",
        "  bitcast f16 -> i16",
    ]
    back = ops(elementwise("i16", "f16", "%t = arith.bitcast %a : i16 to f16\n%s = arith.negf %t : f16"))
    assert back == [
        "generic [i16] [f32] -> [f32]",
        "  bitcast i16 -> f16",
        "  extf f16 -> f32",
        "  negf f32 -> f32",
        *NARROW,
    ]


CALLS = """func.func @main(%x: tensor<4xf16>) -> tensor<4xf16> {
  %r = func.call @part(%x) : (tensor<4xf16>) -> tensor<4xf16>
  %q = func.call @host(%r) : (tensor<4xf16>) -> tensor<4xf16>
  %z = func.call @part(%q) : (tensor<4xf16>) -> tensor<4xf16>
  return %z : tensor<4xf16>
}
func.func private @part(%y: tensor<4xf16>) -> tensor<4xf16> {
  return %y : tensor<4xf16>
}
func.func private @host(tensor<4xf16>) -> tensor<4xf16>"""


def test_parts_of_the_program_exchange_f32_and_host_operators_what_they_declare():
    part, host = "call [f32] -> [f32]", "call [f16] -> [f16]"
    assert ops(CALLS) == [*WIDEN, part, *NARROW, host, *WIDEN, part, *NARROW]


def test_what_a_host_operator_hands_to_another_is_not_converted():
    text = CALLS.replace("@part(%x)", "@host(%x)").replace("@part(%q)", "@host(%q)")
    assert ops(text) == ["call [f16] -> [f16]"] * 3


def test_halves_between_steps_of_an_f32_program_go():
    """No argument or result has them; the rounding that the model asks for stays."""
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %e = tensor.empty() : tensor<4xf16>
      %h = {GENERIC} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf16>) {{
      ^bb0(%a: f32, %o: f16):
        %t = arith.truncf %a : f32 to f16
        linalg.yield %t : f16
      }} -> tensor<4xf16>
      %w = tensor.empty() : tensor<4xf32>
      %r = {GENERIC} ins(%h : tensor<4xf16>) outs(%w : tensor<4xf32>) {{
      ^bb0(%a: f16, %o: f32):
        %t = arith.negf %a : f16
        %s = arith.extf %t : f16 to f32
        linalg.yield %s : f32
      }} -> tensor<4xf32>
      return %r : tensor<4xf32>
    }}"""
    wide = "generic [f32] [f32] -> [f32]"
    assert ops(text) == [wide, "  truncf f32 -> f16", "  extf f16 -> f32", wide, "  negf f32 -> f32"]


def test_constants_keep_their_numbers():
    text = """func.func @main() -> (tensor<2xf16>, tensor<4xbf16>, tensor<2xf32>) {
      %a = arith.constant dense<[1.5, 2.0]> : tensor<2xf16>
      %b = arith.constant dense<0.5> : tensor<4xbf16>
      %c = arith.constant dense<[1.25, 3.0]> : tensor<2xf32>
      return %a, %b, %c : tensor<2xf16>, tensor<4xbf16>, tensor<2xf32>
    }"""
    narrow = ["generic [f32] [bf16] -> [bf16]", "  truncf f32 -> bf16"]
    assert ops(text) == ["constant  -> [f32]"] * 3 + NARROW + narrow
    ctx = new_context()
    ctx.target = TargetDescription("null")
    module = parse_module(text, ctx)
    ComputeHalvesInF32Pass().apply(ctx, module)
    numbers = [op.properties["value"] for op in module.walk() if op.name == "arith.constant"]
    printed = ["dense<[1.500000e+00, 2.000000e+00]>", "dense<5.000000e-01>", "dense<[1.250000e+00, 3.000000e+00]>"]
    assert [str(number).split(" :")[0] for number in numbers] == printed


def test_a_fill_takes_its_number_wide():
    text = """func.func @main() -> tensor<3xf16> {
      %v = arith.constant 3.5 : f16
      %e = tensor.empty() : tensor<3xf16>
      %f = linalg.fill ins(%v : f16) outs(%e : tensor<3xf16>) -> tensor<3xf16>
      return %f : tensor<3xf16>
    }"""
    assert ops(text)[:2] == ["constant  -> f32", "fill f32 [f32] -> [f32]"]


def test_sizes_are_read_off_the_narrow_tensor():
    text = """func.func @main(%x: tensor<?xf16>) -> index {
      %c = arith.constant 0 : index
      %n = tensor.dim %x, %c : tensor<?xf16>
      return %n : index
    }"""
    assert ops(text) == ["constant  -> index", "dim [f16] index -> index"]
