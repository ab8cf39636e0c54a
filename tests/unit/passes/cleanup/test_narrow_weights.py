"""A constant of 8 bits stays in them where it alone is quantised, its scale behind the sum; else the product stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import linalg

from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.narrow_weights import keep_weights_narrow
from fuseline.passes.cleanup.quantized_operands import IntegerMaker

M, K, N = 3, 5, 4
MAPS = {"x": "affine_map<(m, n, k) -> (m, k)>", "w": "affine_map<(m, n, k) -> (k, n)>"}


def _text(weights: NDArray[np.int8], *, order: str = "xw", scale: str = "j", zero: int = 0, start: float = 0.0,
          also: str = "") -> str:  # fmt: skip
    """`start + sum over k of x[m, k] * w[k, n]`, w dequantised with a scale along the axis of that letter."""
    types = {"x": f"tensor<{M}x{K}xf32>", "w": f"tensor<{K}x{N}xf32>"}
    length = K if scale == "i" else N
    return f"""func.func @main(%x: {types["x"]}, %s: tensor<{length}xf32>) -> tensor<{M}x{N}xf32> {{
      %wi = arith.constant dense<{weights.tolist()}> : tensor<{K}x{N}xi8>
      %we = tensor.empty() : {types["w"]}
      %w = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({scale})>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
          ins(%wi, %s : tensor<{K}x{N}xi8>, tensor<{length}xf32>) outs(%we : {types["w"]}) {{
      ^bb0(%a: i8, %f: f32, %o: f32):
        %n = arith.extsi %a : i8 to i32
        %z = arith.constant {zero} : i32
        %c = arith.subi %n, %z : i32
        %g = arith.sitofp %c : i32 to f32
        %r = arith.mulf %g, %f : f32
        linalg.yield %r : f32
      }} -> {types["w"]}
      %first = arith.constant {start} : f32
      %e = tensor.empty() : tensor<{M}x{N}xf32>
      %i = linalg.fill ins(%first : f32) outs(%e : tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32>
      %r = linalg.generic {{indexing_maps = [{", ".join(MAPS[one] for one in order)}, affine_map<(m, n, k) -> (m, n)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%{order[0]}, %{order[1]} : {types[order[0]]}, {types[order[1]]}) outs(%i : tensor<{M}x{N}xf32>) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        {also or "%q = arith.addf %o, %p : f32"}
        linalg.yield %q : f32
      }} -> tensor<{M}x{N}xf32> loc("product")
      return %r : tensor<{M}x{N}xf32>
    }}"""


def _weights(low: int = -128, high: int = 127) -> NDArray[np.int8]:
    """Random ones, the ends of the range among them."""
    found = np.random.default_rng().integers(low, high + 1, (K, N))
    found[0, 0], found[K - 1, N - 1] = low, high
    return found.astype(np.int8)


def _kept(text: str, numerics: str = "default", scales: int = N, more: Sequence[NDArray[Any]] = ()) -> list[str]:
    """The element types of what the product reads, after `keep_weights_narrow`; it computes what it did before."""
    ctx = new_context()
    ctx.target = TargetDescription("null", numerics=numerics)
    module = parse_module(text, ctx)
    rng = np.random.default_rng()
    feeds = [rng.standard_normal((M, K)).astype("f4"), rng.uniform(0.5, 2.0, scales).astype("f4"), *more]
    (expected,) = evaluate_module(module, feeds)
    roots = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp) and StructuredOp(op).reduction]
    before = list(module.walk())
    keep_weights_narrow(IntegerMaker(ctx), roots[0])
    module.verify()
    np.testing.assert_allclose(evaluate_module(module, feeds, ctx.resources)[0], expected, rtol=1e-3, atol=1e-2)
    (root,) = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp) and StructuredOp(op).reduction]
    found = [str(value.type.get_element_type()) for value in root.inputs]  # pyright: ignore[reportAttributeAccessIssue]
    assert ("i8" in found) == (root is not roots[0])
    assert root is not roots[0] or list(module.walk()) == before  # nothing is left behind
    return found


@pytest.mark.parametrize(("order", "types"), [("xw", ["f32", "i8"]), ("wx", ["i8", "f32"])])
@pytest.mark.parametrize("zero", [0, 5])
def test_weights_on_either_side_are_read_in_8_bits(order: str, types: list[str], zero: int):
    assert _kept(_text(_weights(-100, 100), order=order, zero=zero)) == types


def test_the_ends_of_the_range_fit():
    assert _kept(_text(_weights())) == ["f32", "i8"]


@pytest.mark.parametrize("zero", [1, -1])
def test_what_is_centred_outside_of_8_bits_stays(zero: int):
    assert _kept(_text(_weights(), zero=zero)) == ["f32", "f32"]


def test_weights_that_are_fed_stay():
    weights = _weights()
    text = _text(weights).replace(f"%wi = arith.constant dense<{weights.tolist()}> : tensor<{K}x{N}xi8>", "")
    fed = text.replace("(%x:", f"(%x: tensor<{M}x{K}xf32>, %s: tensor<{N}xf32>, %wi: tensor<{K}x{N}xi8>, %rest:")
    fed = fed.replace(f", %rest: tensor<{M}x{K}xf32>, %s: tensor<{N}xf32>)", ")")
    assert _kept(fed, more=[weights]) == ["f32", "f32"]


def test_strict_numerics_stay():
    assert _kept(_text(_weights()), "strict") == ["f32", "f32"]


def test_a_scale_along_the_sum_stays():
    assert _kept(_text(_weights(), scale="i"), scales=K) == ["f32", "f32"]


def test_a_sum_that_starts_elsewhere_stays():
    assert _kept(_text(_weights(), start=1.5)) == ["f32", "f32"]


@pytest.mark.parametrize(
    "body", ["%q = arith.maximumf %o, %p : f32", "%h = arith.negf %p : f32\n %q = arith.addf %o, %h : f32"]
)
def test_another_body_stays(body: str):
    assert _kept(_text(_weights(), also=body)) == ["f32", "f32"]
