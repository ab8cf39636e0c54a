"""Ops that make several products at once are taken apart; others with several results stay as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import fuseline
from fuseline.frontends.mlir.joint_products import separate_products
from tests.draws import RNG
from tests.kernels import assert_close
from tests.unit.frontends.mlir.steps import computed, function, ops_after


def _separate(module: ModuleOp, main: FuncOp) -> None:
    separate_products(main)


A, B, C = "tensor<5x7xf32>", "tensor<7x3xf32>", "tensor<5x3xf32>"
X, Y, Z = "affine_map<(i, j, k) -> (i, k)>", "affine_map<(i, j, k) -> (k, j)>", "affine_map<(i, j, k) -> (i, j)>"


def _joint(second: str, *, inputs: str = f"{X}, {Y}, {Y}") -> str:
    """`a @ b` beside a sum of what `second` makes: of `%y` or of `%z`, two results."""
    lines = f"""%r:2 = linalg.generic {{indexing_maps = [{inputs}, {Z}, {Z}],
    iterator_types = ["parallel", "parallel", "reduction"]}}
  ins(%a, %b, %c : {A}, {B}, {B}) outs(%o, %p : {C}, {C}) {{
^bb0(%x: f32, %y: f32, %z: f32, %s: f32, %t: f32):
  %xy = arith.mulf %x, %y : f32
  %s1 = arith.addf %s, %xy : f32
  {second}
  linalg.yield %s1, %t1 : f32, f32
}} -> ({C}, {C})"""
    return function(f"%a: {A}, %b: {B}, %c: {B}, %o: {C}, %p: {C}", lines, [C, C], "%r#0, %r#1")


PRODUCT = "%xz = arith.mulf %z, %x : f32\n  %t1 = arith.addf %xz, %t : f32"


def test_products_become_ops_of_their_own():
    text = _joint(PRODUCT)
    assert ops_after(text, _separate).count("linalg.generic") == 2
    a, b, c = (RNG.standard_normal(s).astype(np.float32) for s in ((5, 7), (7, 3), (7, 3)))
    o, p = (RNG.standard_normal((5, 3)).astype(np.float32) for _ in range(2))
    found = computed(text, _separate, a, b, c, o, p)
    np.testing.assert_allclose(found[0], o + a @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], p + a @ c, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "second",
    [
        "%t1 = arith.addf %t, %z : f32",  # a sum
        "%m = arith.mulf %x, %z : f32\n  %t1 = arith.maximumf %t, %m : f32",  # another fold
        "%m = arith.mulf %x, %s : f32\n  %t1 = arith.addf %t, %m : f32",  # of the other sum
        "%m = arith.mulf %x, %xy : f32\n  %t0 = arith.addf %m, %z : f32\n  %t1 = arith.addf %t, %t0 : f32",
        "%m = arith.mulf %y, %z : f32\n  %t1 = arith.addf %t, %m : f32",  # no loop of the rows
        "%m = arith.mulf %x, %x : f32\n  %t1 = arith.addf %t, %m : f32",  # of one input
    ],
)
def test_what_is_no_product_stays_beside_one(second: str):
    assert ops_after(_joint(second), _separate).count("linalg.generic") == 1


HEADS = """func.func @main(%x: tensor<?x?xf16>, %q: tensor<?x?xf16>, %k: tensor<?x?xf16>)
    -> (tensor<?x?xf32>, tensor<?x?xf16>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf16>
  %n = tensor.dim %q, %c0 : tensor<?x?xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
      affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %q, %k : tensor<?x?xf16>, tensor<?x?xf16>, tensor<?x?xf16>)
      outs(%f, %f : tensor<?x?xf32>, tensor<?x?xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %s: f32, %t: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %ab = arith.mulf %aw, %bw : f32
    %s1 = arith.addf %s, %ab : f32
    %cw = arith.extf %c : f16 to f32
    %ac = arith.mulf %aw, %cw : f32
    %t1 = arith.addf %t, %ac : f32
    linalg.yield %s1, %t1 : f32, f32
  } -> (tensor<?x?xf32>, tensor<?x?xf32>)
  %g = tensor.empty(%m, %n) : tensor<?x?xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%r#1 : tensor<?x?xf32>) outs(%g : tensor<?x?xf16>) {
  ^bb0(%a: f32, %o: f16):
    %v = arith.truncf %a : f32 to f16
    linalg.yield %v : f16
  } -> tensor<?x?xf16>
  return %r#0, %h : tensor<?x?xf32>, tensor<?x?xf16>
}"""  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_they_are_made_by_kernels_for_products(tmp_path: Path, threads: int):
    (tmp_path / "heads.mlir").write_text(HEADS)
    program = fuseline.compile(tmp_path / "heads.mlir", threads=threads)
    assert any(dispatch.family == "contraction" for dispatch in program.record.dispatches)
    assert not any(dispatch.family == "loop-nest" for dispatch in program.record.dispatches)
    for m, n, k in ((1, 1, 1), *(RNG.integers(1, 90, 3) for _ in range(3))):
        x, q, w = (RNG.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k), (n, k)))
        first, second = program.run({"x": x, "q": q, "k": w}).values()
        assert_close(first, x.astype(np.float64) @ q.T.astype(np.float64))
        wanted = x.astype(np.float64) @ w.T.astype(np.float64)
        np.testing.assert_allclose(second.astype(np.float64), wanted, rtol=2e-3, atol=2e-3)
