"""Named ops that are evaluated directly, and what each refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module, named
from fuseline.evaluation.program import is_evaluable
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.draws import RNG, generator

X = generator(__name__).standard_normal((5, 7)).astype("f4")


def run(body: str, arguments: str, result: str, *args: Any) -> Any:
    text = f"func.func @main({arguments}) -> {result} {{ {body}\n return %r : {result} }}"
    module = parse_module(text, new_context())
    assert all(
        is_evaluable(op)
        for op in module.walk()
        if op.name.startswith("linalg.") and op.name.removeprefix("linalg.") in vars(named)
    )
    return evaluate_module(module, list(args))[0]


def test_fill():
    body = "%r = linalg.fill ins(%v : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>"
    got = run(body, "%v: f32, %e: tensor<?x2xf32>", "tensor<?x2xf32>", np.float32(2.5), np.zeros((3, 2), "f4"))
    np.testing.assert_array_equal(got, np.full((3, 2), 2.5))


def test_transpose():
    x = RNG.standard_normal((2, 3, 5)).astype("f4")
    body = """%e = tensor.empty() : tensor<5x2x3xf32>
      %r = linalg.transpose ins(%x : tensor<2x3x5xf32>) outs(%e : tensor<5x2x3xf32>) permutation = [2, 0, 1]"""
    np.testing.assert_array_equal(run(body, "%x: tensor<2x3x5xf32>", "tensor<5x2x3xf32>", x), x.transpose(2, 0, 1))


BROADCAST = "%r = linalg.broadcast ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x4x?xf32>) dimensions = [1]"


def test_broadcast():
    arguments = "%x: tensor<?x?xf32>, %e: tensor<?x4x?xf32>"
    got = run(BROADCAST, arguments, "tensor<?x4x?xf32>", X, np.zeros((5, 4, 7), "f4"))
    np.testing.assert_array_equal(got, np.repeat(X[:, None], 4, 1))
    with pytest.raises(FuselineError, match=r"E0305.*shape \(5, 7\) cannot be broadcast to \(7, 4, 5\)"):
        run(BROADCAST, arguments, "tensor<?x4x?xf32>", X, np.zeros((7, 4, 5), "f4"))


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_is_shifted_by_the_maximum(axis: int):
    body = f"""%e = tensor.empty() : tensor<5x7xf32>
      %r = linalg.softmax dimension({axis}) ins(%x : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>"""
    powers = np.exp(X.astype("f8"))
    got = run(body, "%x: tensor<5x7xf32>", "tensor<5x7xf32>", X + np.float32(200))
    np.testing.assert_allclose(got, powers / powers.sum(axis, keepdims=True), rtol=2e-5)


MAP = """%r = linalg.map ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>)
    outs(%x : tensor<?x?xf32>) (%a: f32, %b: f32, %o: f32) {
  %s = arith.subf %a, %b : f32
  linalg.yield %s : f32
}"""


def test_map():
    arguments, y = "%x: tensor<?x?xf32>, %y: tensor<?x?xf32>", RNG.standard_normal((5, 7)).astype("f4")
    np.testing.assert_array_equal(run(MAP, arguments, "tensor<?x?xf32>", X, y), X - y)
    with pytest.raises(FuselineError, match=r"E0305.*linalg\.map"):
        run(MAP, arguments, "tensor<?x?xf32>", X, y[:4])


PACK = """%r = linalg.pack %x padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
  inner_tiles = [3, 2] into %e : tensor<5x7xf32> -> tensor<3x3x3x2xf32>"""


def _packed(x: Any, tile: int, value: float) -> Any:
    wide = np.full((6, -(-7 // tile) * tile), value, "f4")
    wide[:5, :7] = x
    return wide.reshape(3, 2, -1, tile).transpose(2, 0, 3, 1)


def test_pack_and_unpack():
    arguments = "%x: tensor<5x7xf32>, %z: f32, %e: tensor<3x3x3x2xf32>"
    empty = np.zeros((3, 3, 3, 2), "f4")
    got = run(PACK, arguments, "tensor<3x3x3x2xf32>", X, np.float32(-1), empty)
    np.testing.assert_array_equal(got, _packed(X, 3, -1))
    back = """%o = tensor.empty() : tensor<5x7xf32>
      %r = linalg.unpack %e outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [3, 2]
          into %o : tensor<3x3x3x2xf32> -> tensor<5x7xf32>"""
    np.testing.assert_array_equal(run(back, "%e: tensor<3x3x3x2xf32>", "tensor<5x7xf32>", got), X)


def test_one_tiled_dimension_of_three():
    x = RNG.standard_normal((4, 6, 3)).astype("f4")
    body = """%e = tensor.empty() : tensor<4x3x3x2xf32>
      %r = linalg.pack %x inner_dims_pos = [1] inner_tiles = [2] into %e : tensor<4x6x3xf32> -> tensor<4x3x3x2xf32>"""
    got = run(body, "%x: tensor<4x6x3xf32>", "tensor<4x3x3x2xf32>", x)
    np.testing.assert_array_equal(got, x.reshape(4, 3, 2, 3).transpose(0, 1, 3, 2))
    back = """%o = tensor.empty() : tensor<4x6x3xf32>
      %r = linalg.unpack %e inner_dims_pos = [1] inner_tiles = [2] into %o : tensor<4x3x3x2xf32> -> tensor<4x6x3xf32>"""
    np.testing.assert_array_equal(run(back, "%e: tensor<4x3x3x2xf32>", "tensor<4x6x3xf32>", got), x)
