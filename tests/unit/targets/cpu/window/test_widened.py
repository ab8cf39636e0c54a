"""Windows over images of integers: which input is loaded as a float."""

from __future__ import annotations

import pytest
from xdsl.dialects import linalg

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.targets.cpu.families.window.widened import widened_image

PRODUCT = """%f = arith.sitofp %a : {0} to f32
    %p = arith.mulf %f, %b : f32
    %r = arith.addf %o, %p : f32"""
MAXIMUM = "%f = arith.sitofp %a : {0} to f32\n %r = arith.maximumf %o, %f : f32"


def _window(body: str, stored: str = "i16", turned: bool = False) -> StructuredOp:
    """A window along one axis of an image with channels, the filter first where it is `turned`."""
    maps = ["affine_map<(x, c, k) -> (x + k, c)>", "affine_map<(x, c, k) -> (k, c)>"]
    inputs = [("%image", f"tensor<9x4x{stored}>", f"%a: {stored}"), ("%filter", "tensor<3x4xf32>", "%b: f32")]
    if turned:
        maps, inputs = maps[::-1], inputs[::-1]
    names, types, arguments = zip(*inputs, strict=True)
    text = f"""func.func @main(%image: tensor<9x4x{stored}>, %filter: tensor<3x4xf32>, %e: tensor<7x4xf32>) {{
      %w = linalg.generic {{indexing_maps = [{maps[0]}, {maps[1]}, affine_map<(x, c, k) -> (x, c)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins({", ".join(names)} : {", ".join(types)}) outs(%e : tensor<7x4xf32>) {{
      ^bb0({", ".join(arguments)}, %o: f32):
        {body.format(stored)}
        linalg.yield %r : f32
      }} -> tensor<7x4xf32>
      return
    }}"""
    (op,) = [op for op in parse_module(text, new_context()).walk() if isinstance(op, linalg.ops.GenericOp)]
    return StructuredOp(op)


@pytest.mark.parametrize("body", [PRODUCT, MAXIMUM], ids=["product", "maximum"])
@pytest.mark.parametrize("stored", ["i8", "i16"])
@pytest.mark.parametrize("turned", [False, True])
def test_the_image_is_a_float_wherever_it_stands(body: str, stored: str, turned: bool):
    assert widened_image(_window(body, stored, turned)) == {int(turned)}


@pytest.mark.parametrize("body", [PRODUCT, MAXIMUM], ids=["product", "maximum"])
@pytest.mark.parametrize("stored", ["f16", "bf16"])
def test_16_bit_floats_are_widened_where_they_are_loaded(body: str, stored: str):
    assert widened_image(_window(body.replace("sitofp", "extf"), stored)) == {0}


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (PRODUCT, "i32"),
        (MAXIMUM, "i32"),
        (PRODUCT.replace("%f = arith.sitofp %a : {0} to f32", "%f = arith.negf %a : f32"), "f32"),
        ("%f = arith.sitofp %a : {0} to f32\n %n = arith.negf %f : f32\n %r = arith.maximumf %o, %n : f32", "i8"),
        (PRODUCT.replace("%f, %b", "%f, %f"), "i8"),
        (PRODUCT.replace("sitofp", "uitofp"), "i8"),
        (PRODUCT + "\n %s = arith.sitofp %a : {0} to f32", "i8"),
    ],
    ids=["wide", "wide maximum", "float", "more", "square", "unsigned", "twice"],
)
def test_a_body_that_does_more_or_other_numbers_are_not(body: str, stored: str):
    assert widened_image(_window(body, stored)) == set()
