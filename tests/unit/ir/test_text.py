"""MLIR text: places as locations, aliases and resources as MLIR prints them, and errors that say where."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from xdsl.dialects.arith import ConstantOp

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.provenance import provenance
from fuseline.ir.text import parse_module, print_module, split_input

IREE_OPT = shutil.which("iree-opt")

EXP = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)
  return %r : tensor<4xf32>
}
"""

# As `iree-opt --mlir-print-debuginfo` prints it: aliases last, some of them made of others.
WITH_ALIASES = """module {
  func.func @main(%arg0: tensor<4xf32> loc("x")) -> tensor<4xf32> {
    %0 = tensor.empty() : tensor<4xf32> loc(#loc2)
    %mapped = linalg.map { math.exp } ins(%arg0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) loc(#loc4)
    return %mapped : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("m.mlir":7:3)
#loc4 = loc(fused[#loc2, #loc3])
#loc3 = loc("node_a")
"""

RESOURCE = """func.func @main() -> (tensor<2xf32>, tensor<3xi1>) {
  %w = arith.constant dense_resource<w0> : tensor<2xf32>
  %b = arith.constant dense_resource<b0> : tensor<3xi1>
  return %w, %b : tensor<2xf32>, tensor<3xi1>
}

{-#
  dialect_resources: {
    builtin: {
      w0: "0x040000000000803F00000040",
      b0: "0x01000000010001"
    }
  }
#-}
"""


def test_ops_without_location_know_their_place():
    module = parse_module(EXP, new_context(), "m.mlir", first_line=10)
    found = {op.name: provenance(op) for op in module.walk()}
    assert found["tensor.empty"] == ("m.mlir:11",)
    assert found["linalg.map"] == ("m.mlir:12",)
    assert 'loc("m.mlir":12:3)' in print_module(module, locations=True)


def test_location_aliases_may_come_last_and_in_any_order():
    module = parse_module(WITH_ALIASES, new_context(), "here.mlir")
    found = {op.name: provenance(op) for op in module.walk()}
    assert found["linalg.map"] == ("m.mlir:7", "node_a")
    assert found["func.return"] == ("here.mlir:5",)


def test_printed_locations_read_back():
    module = parse_module(WITH_ALIASES, new_context())
    again = parse_module(print_module(module, locations=True), new_context())
    assert [provenance(op) for op in again.walk()][2:] == [provenance(op) for op in module.walk()][2:]


def test_resources_come_and_go_with_the_text():
    ctx = new_context()
    module = parse_module(RESOURCE, ctx)
    assert ctx.resources["w0"].tolist() == [1.0, 2.0] and ctx.resources["b0"].tolist() == [True, False, True]
    text = print_module(module, ctx)
    other = new_context()
    again = parse_module(text, other)
    assert other.resources["w0"].tolist() == [1.0, 2.0]
    assert [r.tolist() for r in evaluate_module(again, [], other.resources)] == [[1.0, 2.0], [True, False, True]]
    assert "dialect_resources" not in print_module(module, ctx, embed_limit=2)
    assert "dialect_resources" not in print_module(module)


def test_the_same_resource_name_in_two_texts_stays_what_it_is():
    for _ in range(2):
        module = parse_module(RESOURCE, new_context())
        names = [op.value.resource_handle.data for op in module.walk() if isinstance(op, ConstantOp)]  # pyright: ignore[reportAttributeAccessIssue]
        assert names == ["w0", "b0"]


def test_a_resource_of_the_wrong_size_is_refused():
    with pytest.raises(FuselineError, match=r"E0301 \[w0\].*has 4 bytes"):
        parse_module(RESOURCE.replace("0000803F00000040", "0000803F"), new_context())


def test_a_weight_without_data_cannot_be_evaluated():
    with pytest.raises(FuselineError, match=r"E0305.*no data for dense_resource<w0>"):
        evaluate_module(parse_module(RESOURCE.split("{-#")[0], new_context()), [])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("func.func @f() {\n  %a = nothing : f32\n}", 2, 0, "not registered"),
        ("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}", 3, 2, "not defined"),
        ("func.func @f(", 1, 14, ""),
        ("", 1, 1, "no op in the text"),
        ("?", 1, 1, ""),
        ("func.func @f() { %0 = arith.constant 1e99999 : f32\n return }", 1, 0, ""),
        ('func.func @f() attributes {a = "' + "x" * 60 + '\\q"} {\n  return\n}', 1, 32, "no end"),
        ('func.func @f() attributes {a = "' + "x" * 60 + "} {\n  return\n}", 1, 32, "no end"),
        ("func.func @f() {\n  %0 = arith.constant dense<[1, 2, 3]> : tensor<2xi32>\n  return\n}", 2, 0, ""),
        (
            (
                "func.func @f(%x: tensor<4xf32>) {\n  %0 = linalg.reduce { no.op } ins(%x : tensor<4xf32>) outs(%x : "
                "tensor<4xf32>) dimensions = [0]\n}"
            ),
            2,
            0,
            "no.op",
        ),
    ],
)
def test_what_does_not_parse_names_line_and_column(text: str, line: int, column: int, message: str):
    with pytest.raises(FuselineError) as caught:
        parse_module(text, new_context(), "bad.mlir")
    error = caught.value
    assert error.code == "E0301" and message in error.message
    assert error.node is not None and error.node.startswith(f"bad.mlir:{line}:")
    assert not column or error.node == f"bad.mlir:{line}:{column}"


def test_an_operation_of_another_dialect_is_not_supported():
    with pytest.raises(FuselineError, match=r"E0306 \[bad.mlir:2:21\].*test.nothing is not registered") as refused:
        parse_module("func.func @f() {\n  %a = test.nothing : f32\n}", new_context(), "bad.mlir")
    assert refused.value.hint is not None and "docs/mlir.md" in refused.value.hint


@pytest.mark.parametrize(
    "lines",
    [
        "%r = arith.addf %s, %s : f32\n  %s = arith.addf %x, %x : f32",
        "%r = arith.addf %r, %x : f32",
        (
            "%r = scf.if %k -> (f32) {\n    %s = arith.addf %x, %x : f32\n    scf.yield %s : f32\n  } else {\n    "
            "scf.yield %s : f32\n  }"
        ),
    ],
)
def test_a_value_that_is_not_there_yet_does_not_verify(lines: str):
    text = f"func.func @f(%x: f32, %k: i1) -> f32 {{\n  {lines}\n  return %r : f32\n}}"
    with pytest.raises(FuselineError, match=r"E030[12] \[bad.mlir:\d"):
        parse_module(text, new_context(), "bad.mlir")


def test_what_does_not_verify_names_the_op_and_its_place():
    text = (
        EXP.replace("tensor.empty() : tensor<4xf32>", "tensor.empty() : tensor<4xf32>")
        .replace(
            "linalg.map { math.exp } ins(%x : tensor<4xf32>)",
            "tensor.cast %x : tensor<4xf32> to tensor<5xf32>\n  %q = linalg.map { math.exp } ins(%x : tensor<4xf32>)",
        )
        .replace("return %r", "return %q")
    )
    with pytest.raises(FuselineError) as caught:
        parse_module(text, new_context(), "bad.mlir")
    assert caught.value.code == "E0302"
    assert caught.value.message == "tensor.cast: source and destination constant dimensions should match"
    assert caught.value.node == "bad.mlir:3:3"


def test_split_input_keeps_line_numbers():
    parts = list(split_input(f"{EXP}// -----\n{EXP}// ----- more\nlast"))
    assert [line for line, _ in parts] == [1, 6, 12]
    assert parts[1][1].strip() == EXP.strip() and parts[2][1].strip() == "last"


def test_several_result_types_of_a_generic_read_back():
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%x, %x : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    linalg.yield %a, %b : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}"""
    module = parse_module(text, new_context())
    assert parse_module(print_module(module), new_context()).is_structurally_equivalent(module)


@pytest.mark.iree
@pytest.mark.skipif(IREE_OPT is None, reason="needs iree-opt")
def test_iree_reads_and_writes_what_we_write_and_read():
    ctx = new_context()
    text = print_module(parse_module(RESOURCE, ctx), ctx, locations=True)
    assert IREE_OPT is not None
    run = subprocess.run(
        [IREE_OPT, "-", "--mlir-print-debuginfo"], input=text, capture_output=True, text=True, check=True
    )
    other = new_context()
    parse_module(run.stdout, other)
    np.testing.assert_array_equal(other.resources["w0"], ctx.resources["w0"])


@pytest.mark.parametrize("digits", ["0x0400000", "0x04000000", "0x040000000000803F0000"])
def test_a_resource_of_half_a_byte_or_of_other_sizes_is_refused(digits: str):
    with pytest.raises(FuselineError) as caught:
        parse_module(RESOURCE.replace("0x040000000000803F00000040", digits), new_context())
    assert caught.value.code == "E0301" and "w0" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "number"), [("f32", "-1.500000e+00"), ("bf16", "1.000000e+00"), ("i64", "-7"), ("i1", "true"), ("i4", "3")]
)
def test_one_number_for_a_large_tensor_is_kept_as_that_number(kind: str, number: str):
    text = f"builtin.module {{\n  %c = arith.constant dense<{number}> : tensor<1000000x1000000x{kind}>\n}}\n"
    assert print_module(parse_module(text, new_context())) == text


@pytest.mark.parametrize(
    "literal",
    ["dense<[1.0, 2.0]> : tensor<2xf32>", "dense<1> : tensor<3xi32>", "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>"],
)
def test_other_literals_are_read_as_ever(literal: str):
    parse_module(f"builtin.module {{\n  %c = arith.constant {literal}\n}}\n", new_context())


def test_a_number_that_a_large_tensor_cannot_hold_is_refused():
    with pytest.raises(FuselineError, match=r"E0301 \[<input>:1:"):
        parse_module("%c = arith.constant dense<1.5> : tensor<1000000x1000000xi32>", new_context())
