"""Operands of integers stored in 8 bits behind pads, reshapes and transposes; where their scales lie; products of them,
by before and after."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from fuseline.analysis.structured import is_generic
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.multiply_in_integers import MultiplyInIntegersPass
from fuseline.passes.cleanup.quantized_operands import IntegerMaker, quantized_operand, scale_axes
from fuseline.passes.cleanup.result_scales import Scale, result_scale
from fuseline.targets.target import Refusal

ROWS = "affine_map<(i, j) -> (i)>"


def stored(name: str, source: str, shape: str, *, scale: str = "affine_map<(i, j) -> (j)>", zero: int = 3) -> str:
    """`(x - zero) * scale` as f32; the scale is `%scale`."""
    whole = "affine_map<(i, j) -> (i, j)>"
    return f"""%{name}_e = tensor.empty() : tensor<{shape}xf32>
      %{name} = linalg.generic {{indexing_maps = [{whole}, {scale}, {whole}],
          iterator_types = ["parallel", "parallel"]}}
          ins(%{source}, %scale : tensor<{shape}xi8>, tensor<4xf32>) outs(%{name}_e : tensor<{shape}xf32>) {{
      ^bb0(%a: i8, %s: f32, %o: f32):
        %n = arith.extsi %a : i8 to i32
        %z = arith.constant {zero} : i32
        %c = arith.subi %n, %z : i32
        %f = arith.sitofp %c : i32 to f32
        %r = arith.mulf %f, %s : f32
        linalg.yield %r : f32
      }} -> tensor<{shape}xf32>
    """


def _last(body: str) -> SSAValue:
    """The last value of a function over `%x: tensor<4x4xi8>`."""
    text = (
        f"func.func @main(%x: tensor<4x4xi8>, %scale: tensor<4xf32>, %y: tensor<4x4xf32>) {{ %zero = "
        f"arith.constant 0.0 : f32\n{body}\n return }}"
    )
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    end = function.body.block.last_op
    assert end is not None and end.prev_op is not None
    return end.prev_op.results[0]


TRANSPOSE = """%e = tensor.empty() : tensor<4x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>"""
PAD = """%p = tensor.pad %q low[{0}] high[{1}] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %{2} : f32
  }} : tensor<4x4xf32> to tensor<{3}xf32>"""


@pytest.mark.parametrize(
    ("scale", "move", "axes"),
    [
        ("affine_map<(i, j) -> (j)>", "", (1,)),
        ("affine_map<(i, j) -> (i)>", "", (0,)),
        ("affine_map<(i, j) -> (j)>", TRANSPOSE, (0,)),
        ("affine_map<(i, j) -> (i)>", TRANSPOSE, (1,)),
        ("affine_map<(i, j) -> (i)>", PAD.format("0, 1", "0, 2", "zero", "4x7"), (0,)),
        ("affine_map<(i, j) -> (j)>", PAD.format("0, 1", "0, 2", "zero", "4x7"), None),
        ("affine_map<(i, j) -> (j)>", PAD.format("0, 0", "0, 2", "zero", "4x6"), None),
        (
            "affine_map<(i, j) -> (j)>",
            "%c = tensor.collapse_shape %q [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>",
            None,
        ),
    ],
)
def test_where_a_scale_lies(scale: str, move: str, axes: tuple[int | None, ...] | None):
    found = quantized_operand(_last(stored("q", "x", "4x4", scale=scale) + move))
    assert found is not None and scale_axes(found) == axes
    assert len(found.moves) == bool(move) and not found.is_constant and found.stored.range == (-131, 124)


@pytest.mark.parametrize(("scale", "axes"), [(ROWS, (0,)), ("affine_map<(i, j) -> (j)>", None)])
def test_where_a_scale_lies_in_the_result(scale: str, axes: tuple[int | None, ...] | None):
    product = _last(stored("l", "x", "4x4", scale=scale) + MATMUL.format("l", "y").rsplit("return", 1)[0])
    root = product.owner
    assert is_generic(root)
    operand = quantized_operand(root.inputs[0])
    assert operand is not None
    found = result_scale(IntegerMaker(new_context()), root, 0, operand)
    if axes is None:
        assert isinstance(found, Refusal) and found.code == "scale-in-sum"
    else:
        assert isinstance(found, Scale) and found.axes == axes and found.factor is operand.stored.op.inputs[1]


def test_other_operands_are_not_quantised():
    padded = PAD.format("0, 1", "0, 2", "one", "4x7")
    assert quantized_operand(_last(stored("q", "x", "4x4") + "%one = arith.constant 1.0 : f32\n" + padded)) is None
    assert quantized_operand(_last(TRANSPOSE.replace("%q", "%y"))) is None
    negated = TRANSPOSE.replace("linalg.yield %a", "%n = arith.negf %a : f32\n linalg.yield %n")
    assert quantized_operand(_last(stored("q", "x", "4x4") + negated)) is None
    assert quantized_operand(_last(stored("q", "x", "4x4")).owner.operands[0]) is None  # pyright: ignore[reportAttributeAccessIssue]


MATMUL = """%out = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}} ins(%{0}, %{1} : tensor<4x4xf32>, tensor<4x4xf32>)
          outs(%init : tensor<4x4xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>"""
WEIGHT = (
    "%weight = arith.constant dense<[[1, -2, 3, -128], [127, 0, 5, 6], [7, 8, 9, -10], [11, 12, -13, 14]]> : "
    "tensor<4x4xi8>\n"
)


def _compare(body: str, numerics: str = "default") -> tuple[str, CompilerContext]:
    """The program after the pass; it computes what it did before."""
    ctx = new_context()
    ctx.target = TargetDescription("null", numerics=numerics)
    arguments = "%x: tensor<4x4xi8>, %w: tensor<4x4xi8>, %scale: tensor<4xf32>, %y: tensor<4x4xf32>"
    module: ModuleOp = parse_module(
        f"func.func @main({arguments}) -> tensor<4x4xf32> {{ %zero = arith.constant 0.0 : f32\n{body} }}", ctx
    )
    rng = np.random.default_rng(5)
    x, w = rng.integers(-128, 128, (2, 4, 4)).astype(np.int8)
    args = [x, w, rng.standard_normal(4).astype("f4"), rng.standard_normal((4, 4)).astype("f4")]
    expected = evaluate_module(module, args)[0]
    MultiplyInIntegersPass().apply(ctx, module)
    module.verify()
    np.testing.assert_allclose(evaluate_module(module, args, ctx.resources)[0], expected, rtol=1e-4, atol=1e-4)
    return print_module(module), ctx


@pytest.mark.parametrize("right", ["w", "weight"])
def test_scales_by_row_and_by_column_follow_the_sum(right: str):
    sides = stored("l", "x", "4x4", scale=ROWS, zero=-5) + WEIGHT + stored("r", right, "4x4", zero=0)
    text, ctx = _compare(sides + MATMUL.format("l", "r"))
    assert "arith.muli" in text and not ctx.records.notes
    assert ("tensor<4x4xi16>, tensor<4x4xi8>" in text) == (right == "weight")


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_scale_along_the_sum_stays_inside(side: str):
    left = stored("l", "x", "4x4", scale=ROWS if side == "right" else "affine_map<(i, j) -> (j)>")
    right = stored("r", "w", "4x4", scale=ROWS if side == "right" else "affine_map<(i, j) -> (j)>")
    text, ctx = _compare(left + right + MATMUL.format("l", "r"))
    assert "arith.muli" not in text
    assert ["(scale-in-sum)" in note for note in ctx.records.notes] == [True]


def test_a_product_and_its_own_transpose():
    text, _ = _compare(stored("q", "x", "4x4", scale=ROWS) + TRANSPOSE + MATMUL.format("q", "t"))
    assert "arith.muli" in text


@pytest.mark.parametrize(("numerics", "narrow"), [("default", True), ("strict", False)])
def test_a_constant_operand_alone_stays_in_8_bits(numerics: str, narrow: bool):
    text, _ = _compare(WEIGHT + stored("r", "weight", "4x4", zero=0) + MATMUL.format("y", "r"), numerics)
    assert (
        "ins(%y, %r" not in text and "arith.sitofp %" in text and "tensor<4x4xf32>, tensor<4x4xi8>" in text
    ) == narrow


@pytest.mark.parametrize(("zero", "narrow"), [(0, True), (-1, False), (1, False)])
def test_only_integers_of_8_bits_are_kept_in_them(zero: int, narrow: bool):
    """Less its zero point a weight of -128 is -129, and one of 127 is 128."""
    text, _ = _compare(
        stored("l", "x", "4x4", scale=ROWS) + WEIGHT + stored("r", "weight", "4x4", zero=zero) + MATMUL.format("l", "r")
    )
    assert ("tensor<4x4xi16>, tensor<4x4xi8>" in text) == narrow
    assert ("tensor<4x4xi16>, tensor<4x4xi16>" in text) != narrow


def test_an_operand_that_is_given_does_not():
    text, _ = _compare(stored("r", "w", "4x4", zero=0) + MATMUL.format("y", "r"))
    assert "ins(%y, %r" in text
