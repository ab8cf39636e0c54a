"""Scales of dequantised constants behind moves that join their dimension with others, or read it in another order."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fuseline.evaluation import evaluate_module
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.multiply_in_integers import MultiplyInIntegersPass
from tests.draws import RNG

POINT = "affine_map<(a, b, c) -> (a, b, c)>"
PLANE = "affine_map<(a, b) -> (a, b)>"


def moved_product(sizes: tuple[int, int, int], axis: int, *, pad: int, rows: int, given: bool = False) -> str:
    """`x[n, (a, b)] * w[(c, b), a]` of an image and a filter `[a, b, c]` in 8 bits, whose scale follows `axis`: `a` is
    padded and read from its end, then `c` and what is left of it are one dimension. `given`: only the run has scales.

    The scales are powers of two: nothing rounds.
    """
    a, b, c = sizes
    image, moved, result = f"{rows}x{a + pad}", f"{b * c}x{a + pad}", f"{rows}x{b * c}"
    scales = f"tensor<{sizes[axis]}xf32>"
    scale = 2.0 ** (RNG.permutation(sizes[axis]) - 4)
    known = "" if given else f"%s = arith.constant dense<{scale.tolist()}> : {scales}"
    return f"""func.func @main(%x: tensor<{image}xi8>{f", %s: {scales}" if given else ""}) -> tensor<{result}xf32> {{
      {known}
      {_filter(sizes, axis)}
      {_moved(sizes, pad)}
      {_image(image)}
      {_product(image, moved, result)}
      return %y : tensor<{result}xf32>
    }}"""


def _filter(sizes: tuple[int, int, int], axis: int) -> str:
    """`%wf`: a constant of 8 bits, dequantised with the scales `%s` along `axis`."""
    shape, scales = "x".join(map(str, sizes)), f"tensor<{sizes[axis]}xf32>"
    stored = RNG.integers(-127, 128, sizes)
    return f"""%w = arith.constant dense<{stored.tolist()}> : tensor<{shape}xi8>
      %we = tensor.empty() : tensor<{shape}xf32>
      %wf = linalg.generic {{indexing_maps = [{POINT}, affine_map<(a, b, c) -> ({"abc"[axis]})>, {POINT}],
          iterator_types = ["parallel", "parallel", "parallel"]}}
          ins(%w, %s : tensor<{shape}xi8>, {scales}) outs(%we : tensor<{shape}xf32>) {{
      ^bb0(%q: i8, %f: f32, %o: f32):
        %n = arith.extsi %q : i8 to i32
        %z = arith.constant 1 : i32
        %d = arith.subi %n, %z : i32
        %g = arith.sitofp %d : i32 to f32
        %r = arith.mulf %g, %f : f32
        linalg.yield %r : f32
      }} -> tensor<{shape}xf32>"""


def _moved(sizes: tuple[int, int, int], pad: int) -> str:
    """`%m`: `%wf`, padded by `pad` behind its first dimension, turned, and its last two dimensions joined."""
    a, b, c = sizes
    whole = a + pad
    padded, turned = f"{whole}x{b}x{c}", f"{c}x{b}x{whole}"
    return f"""%zero = arith.constant 0.0 : f32
      %wp = tensor.pad %wf low[0, 0, 0] high[{pad}, 0, 0] {{
      ^bb0(%i: index, %j: index, %k: index):
        tensor.yield %zero : f32
      }} : tensor<{a}x{b}x{c}xf32> to tensor<{padded}xf32>
      %te = tensor.empty() : tensor<{turned}xf32>
      %t = linalg.generic {{indexing_maps = [{POINT}], iterator_types = ["parallel", "parallel", "parallel"]}}
          outs(%te : tensor<{turned}xf32>) {{
      ^bb0(%o: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %k = linalg.index 2 : index
        %last = arith.constant {whole - 1} : index
        %back = arith.subi %last, %k : index
        %e = tensor.extract %wp[%back, %j, %i] : tensor<{padded}xf32>
        linalg.yield %e : f32
      }} -> tensor<{turned}xf32>
      %m = tensor.collapse_shape %t [[0, 1], [2]] : tensor<{turned}xf32> into tensor<{b * c}x{whole}xf32>"""


def _image(shape: str) -> str:
    """`%xf`: the argument of 8 bits, dequantised."""
    return f"""%xe = tensor.empty() : tensor<{shape}xf32>
      %xf = linalg.generic {{indexing_maps = [{PLANE}, {PLANE}], iterator_types = ["parallel", "parallel"]}}
          ins(%x : tensor<{shape}xi8>) outs(%xe : tensor<{shape}xf32>) {{
      ^bb0(%q: i8, %o: f32):
        %n = arith.extsi %q : i8 to i32
        %g = arith.sitofp %n : i32 to f32
        %f = arith.constant 0.5 : f32
        %r = arith.mulf %g, %f : f32
        linalg.yield %r : f32
      }} -> tensor<{shape}xf32>"""


def _product(image: str, moved: str, result: str) -> str:
    """`%y`: each row of `%xf` with each row of `%m`."""
    return f"""%ye = tensor.empty() : tensor<{result}xf32>
      %start = linalg.fill ins(%zero : f32) outs(%ye : tensor<{result}xf32>) -> tensor<{result}xf32>
      %y = linalg.generic {{indexing_maps = [affine_map<(n, m, k) -> (n, k)>, affine_map<(n, m, k) -> (m, k)>,
          affine_map<(n, m, k) -> (n, m)>], iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%xf, %m : tensor<{image}xf32>, tensor<{moved}xf32>) outs(%start : tensor<{result}xf32>) {{
      ^bb0(%p: f32, %q: f32, %o: f32):
        %r = arith.mulf %p, %q : f32
        %t2 = arith.addf %o, %r : f32
        linalg.yield %t2 : f32
      }} -> tensor<{result}xf32> loc("product")"""


def multiplied(text: str, *more: np.ndarray) -> tuple[str, CompilerContext]:
    """The program after the pass; it computes what it did before."""
    ctx = new_context()
    ctx.target = TargetDescription("null")
    module = parse_module(text, ctx)
    (function,) = module.ops
    shape = function.function_type.inputs.data[0].get_shape()  # pyright: ignore[reportAttributeAccessIssue]
    args = [RNG.integers(-128, 128, shape).astype(np.int8), *more]
    expected = evaluate_module(module, args, ctx.resources)[0]
    MultiplyInIntegersPass().apply(ctx, module)
    module.verify()
    np.testing.assert_array_equal(evaluate_module(module, args, ctx.resources)[0], expected)
    return print_module(module), ctx


def drawn() -> tuple[int, int, int]:
    """Sizes of which none is 1, and no two are equal."""
    a, b, c = RNG.permutation(np.arange(2, 9))[:3].tolist()
    return a, b, c


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("pad", [0, 2])
def test_a_scale_of_columns_is_found_wherever_they_are_moved(axis: int, pad: int):
    text, ctx = multiplied(moved_product(drawn(), axis, pad=pad, rows=int(RNG.integers(1, 5))))
    assert "arith.muli" in text and not ctx.records.notes


def test_a_scale_along_the_sum_stays_in_it():
    text, ctx = multiplied(moved_product(drawn(), 0, pad=1, rows=3))
    assert "arith.muli" not in text
    assert "(scale-moved)" in ctx.records.notes[0]


def test_a_scale_that_only_the_run_has_is_not_moved():
    sizes = drawn()
    given = (2.0 ** RNG.integers(-3, 4, sizes[2])).astype(np.float32)
    text, ctx = multiplied(moved_product(sizes, 2, pad=0, rows=2, given=True), given)
    assert "arith.muli" not in text
    assert "(scale-moved)" in ctx.records.notes[0]


@pytest.mark.parametrize("number", ["0x7F800000", "0x7FC00000"])
def test_a_scale_that_is_infinite_or_no_number_is_not_moved(number: str):
    """In a pad there is no number either: the two could not be told apart."""
    text = re.sub(r"(%s = arith.constant dense<\[)[^,\]]+", rf"\g<1>{number}", moved_product(drawn(), 2, pad=1, rows=3))
    with np.errstate(invalid="ignore"):
        after, ctx = multiplied(text)
    assert "arith.muli" not in after
    assert "(scale-moved)" in ctx.records.notes[0]
