"""Convolutions of dequantised tensors: which are summed in integers, which in f32, and that they compute the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fuseline.evaluation import evaluate_module
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.multiply_in_integers import EXACT_IN_F32, LEAST_GROUP_COLUMNS, MultiplyInIntegersPass

IDENTITY = "affine_map<(a, b, c, d) -> (a, b, c, d)>"


def centred(name: str, shape: str, element: str) -> str:
    """`(name - 3)`, times 0.5 where the element is a float, as `%name_q`."""
    wide = f"%r = arith.subi %n, %z : i32\n linalg.yield %r : {element}"
    scaled = """%d = arith.subi %n, %z : i32
        %f = arith.sitofp %d : i32 to f32
        %s = arith.constant 0.5 : f32
        %r = arith.mulf %f, %s : f32
        linalg.yield %r : f32"""
    return f"""%{name}_e = tensor.empty() : tensor<{shape}x{element}>
      %{name}_q = linalg.generic {{indexing_maps = [{IDENTITY}, {IDENTITY}],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
          ins(%{name} : tensor<{shape}xi8>) outs(%{name}_e : tensor<{shape}x{element}>) {{
      ^bb0(%a: i8, %o: {element}):
        %n = arith.extsi %a : i8 to i32
        %z = arith.constant 3 : i32
        {scaled if element == "f32" else wide}
      }} -> tensor<{shape}x{element}>
    """


def convolution(groups: int, filters: int, channels: int = 2, element: str = "f32", turned: bool = False) -> str:
    """`out[g, f, y, x] = sum over k, c of image[g, x + k, c, y] * filter[g, f, k, c]`; `turned`: the filter first."""
    image, filter_ = f"{groups}x5x{channels}x3", f"{groups}x{filters}x2x{channels}"
    result = f"tensor<{groups}x{filters}x3x4x{element}>"
    maps = ["affine_map<(g, f, y, x, k, c) -> (g, x + k, c, y)>", "affine_map<(g, f, y, x, k, c) -> (g, f, k, c)>"]
    sides = [("x", image), ("w", filter_)]
    if turned:
        maps, sides = maps[::-1], sides[::-1]
    kind = "f" if element == "f32" else "i"
    zero = "0.0" if element == "f32" else "0"
    return f"""func.func @main(%x: tensor<{image}xi8>, %w: tensor<{filter_}xi8>) -> {result} {{
      {centred("x", image, element)} {centred("w", filter_, element)}
      %zero = arith.constant {zero} : {element}
      %e = tensor.empty() : {result}
      %i = linalg.fill ins(%zero : {element}) outs(%e : {result}) -> {result}
      %r = linalg.generic {{
          indexing_maps = [{maps[0]}, {maps[1]}, affine_map<(g, f, y, x, k, c) -> (g, f, y, x)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}}
          ins(%{sides[0][0]}_q, %{sides[1][0]}_q : tensor<{sides[0][1]}x{element}>, tensor<{sides[1][1]}x{element}>)
          outs(%i : {result}) {{
      ^bb0(%a: {element}, %b: {element}, %o: {element}):
        %p = arith.mul{kind} %a, %b : {element}
        %s = arith.add{kind} %o, %p : {element}
        linalg.yield %s : {element}
      }} -> {result} loc("conv")
      return %r : {result}
    }}"""


def summed_in(text: str) -> tuple[str, CompilerContext]:
    """The types that the convolution multiplies and sums in, after the pass; it computes what it did before."""
    ctx = new_context()
    ctx.target = TargetDescription("null")
    module = parse_module(text, ctx)
    rng = np.random.default_rng(5)
    (function,) = module.ops
    shapes = [type_.get_shape() for type_ in function.function_type.inputs]  # pyright: ignore[reportAttributeAccessIssue]
    args = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
    expected = evaluate_module(module, args)[0]
    MultiplyInIntegersPass().apply(ctx, module)
    module.verify()
    np.testing.assert_array_equal(evaluate_module(module, args, ctx.resources)[0], expected)
    (line,) = [line for line in print_module(module).splitlines() if '"reduction"' in line]
    multiplied, summed = re.findall(r"(?:ins|outs)\([^:]*: tensor<[\dx]*x(\w+)>", line)
    return f"{multiplied} {summed}", ctx


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("groups", "filters", "types"),
    [
        (1, 2, "i16 i32"),
        (3, LEAST_GROUP_COLUMNS, "i16 i32"),
        (3, LEAST_GROUP_COLUMNS - 1, "f32 f32"),
        (1, LEAST_GROUP_COLUMNS - 1, "i16 i32"),
    ],
    ids=["one group", "wide groups", "narrow groups", "narrow"],
)
def test_a_convolution_is_rows_times_columns_where_a_group_has_enough(
    groups: int, filters: int, types: str, turned: bool
):
    found, ctx = summed_in(convolution(groups, filters, turned=turned))
    assert found == types
    why = f"fewer than {LEAST_GROUP_COLUMNS} output channels read the same input channels"
    refused = f"conv: not computed in integers of 16 bits (narrow-groups): {why}"
    assert ctx.records.notes == ([] if types == "i16 i32" else [refused])


@pytest.mark.parametrize(("groups", "filters", "types"), [(1, 2, "i16 i32"), (3, 2, "f32 f32")])
def test_integers_are_summed_in_integers_or_exactly_in_f32(groups: int, filters: int, types: str):
    found, ctx = summed_in(convolution(groups, filters, element="i32"))
    assert found == types and not ctx.records.notes


def test_sums_that_f32_may_round_stay_integers():
    """The largest product is 131 times 131."""
    channels = EXACT_IN_F32 // (131 * 131 * 2)
    for more, types in ((0, "f32 f32"), (1, "i32 i32")):
        found, ctx = summed_in(convolution(3, 1, channels + more, "i32"))
        assert found == types
        assert len(ctx.records.notes) == more
