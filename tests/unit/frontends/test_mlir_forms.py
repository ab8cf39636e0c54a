"""Forms that MLIR programs have besides structured ops: what is read, and gives the numbers that it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.draws import generator
from tests.unit.frontends.mlir.agreed import agreed

_HELD = generator(__name__)
A, B = _HELD.standard_normal((3, 5), dtype=np.float32), _HELD.standard_normal((3, 5), dtype=np.float32)
N = _HELD.integers(-9, 9, (3, 5)).astype(np.int32)

FORMS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "arithmetic on tensors": (
        """func.func @main(%a: tensor<3x?xf32>, %b: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %s = arith.subf %a, %b : tensor<3x?xf32>
  %m = arith.maximumf %s, %b : tensor<3x?xf32>
  %r = math.tanh %m : tensor<3x?xf32>
  return %r : tensor<3x?xf32>
}""",
        {"a": A, "b": B},
        np.tanh(np.maximum(A - B, B)),
    ),
    "casts and comparisons of tensors": (
        """func.func @main(%a: tensor<3x5xf32>, %n: tensor<3x5xi32>, %k: i1) -> tensor<3x5xf32> {
  %f = arith.sitofp %n : tensor<3x5xi32> to tensor<3x5xf32>
  %c = arith.select %k, %a, %f : tensor<3x5xf32>
  %z = arith.constant dense<0> : tensor<3x5xi32>
  %p = arith.cmpi sgt, %n, %z : tensor<3x5xi32>
  %q = arith.cmpf olt, %c, %a : tensor<3x5xf32>
  %pq = arith.andi %p, %q : tensor<3x5xi1>
  %w = arith.extui %pq : tensor<3x5xi1> to tensor<3x5xi32>
  %v = arith.uitofp %w : tensor<3x5xi32> to tensor<3x5xf32>
  %r = arith.addf %v, %c : tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}""",
        {"a": A, "n": N, "k": False},
        N + ((N > 0) & (N < A)).astype(np.float32),
    ),
    "a tensor made of where its elements are": (
        """func.func @main(%n: index, %t: tensor<4xf32>) -> tensor<?x4xf32> {
  %r = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %w = arith.index_cast %s : index to i32
    %f = arith.sitofp %w : i32 to f32
    %e = tensor.extract %t[%j] : tensor<4xf32>
    %g = arith.mulf %f, %e : f32
    tensor.yield %g : f32
  } : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}""",
        {"n": 3, "t": A[0, :4]},
        np.add.outer(np.arange(3), np.arange(4)).astype(np.float32) * A[0, :4],
    ),
    "an element replaced": (
        """func.func @main(%a: tensor<3x5xf32>, %s: f32, %i: index) -> tensor<3x5xf32> {
  %c1 = arith.constant 1 : index
  %r = tensor.insert %s into %a[%c1, %i] : tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}""",
        {"a": A, "s": 7.5, "i": 3},
        np.where((np.arange(3) == 1)[:, None] & (np.arange(5) == 3), np.float32(7.5), A),
    ),
    "elements side by side": (
        """func.func @main(%a: tensor<3x5xf32>, %s: f32) -> tensor<2x2xf32> {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.5 : f32
  %e = tensor.extract %a[%c1, %c4] : tensor<3x5xf32>
  %p = arith.mulf %e, %s : f32
  %r = tensor.from_elements %e, %p, %z, %s : tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}""",
        {"a": A, "s": 2.0},
        np.array([[A[1, 4], 2 * A[1, 4]], [0.5, 2]], np.float32),
    ),
    "one number everywhere": (
        """func.func @main(%s: f32, %n: index, %a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %e = tensor.splat %s[%n] : tensor<?x2xf32>
  %r = arith.addf %e, %a : tensor<?x2xf32>
  return %r : tensor<?x2xf32>
}""",
        {"s": 1.25, "n": 3, "a": A[:, :2]},
        A[:, :2] + np.float32(1.25),
    ),
    "a pad with a given number and widths": (
        """func.func @main(%a: tensor<3x5xf32>, %s: f32, %n: index) -> tensor<?x6xf32> {
  %r = tensor.pad %a low[%n, 0] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %s : f32
  } : tensor<3x5xf32> to tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}""",
        {"a": A, "s": -1.5, "n": 2},
        np.pad(A, ((2, 1), (0, 1)), constant_values=-1.5),
    ),
    "a pad with another number in each place": (
        """func.func @main(%a: tensor<3x5xf32>) -> tensor<4x7xf32> {
  %r = tensor.pad %a low[1, 0] high[0, 2] {
  ^bb0(%i: index, %j: index):
    %w = arith.index_cast %j : index to i32
    %f = arith.sitofp %w : i32 to f32
    tensor.yield %f : f32
  } : tensor<3x5xf32> to tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}""",
        {"a": A},
        np.concatenate(
            [
                np.arange(7, dtype=np.float32)[None],
                np.concatenate([A, np.tile(np.array([5, 6], np.float32), (3, 1))], 1),
            ]
        ),
    ),
    "slices that drop some of their units": (
        """func.func @main(%a: tensor<3x5xf32>, %i: index, %j: index) -> tensor<1x5xf32> {
  %w = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 3, 5] : tensor<3x5xf32> into tensor<1x3x5xf32>
  %x = arith.negf %w : tensor<1x3x5xf32>
  %s = tensor.extract_slice %x[0, %i, 0] [1, 1, 5] [1, 1, 1] : tensor<1x3x5xf32> to tensor<1x5xf32>
  %t = tensor.extract_slice %x[0, %j, 0] [1, 1, 5] [1, 1, 1] : tensor<1x3x5xf32> to tensor<5xf32>
  %u = tensor.insert_slice %t into %x[0, %i, 0] [1, 1, 5] [1, 1, 1] : tensor<5xf32> into tensor<1x3x5xf32>
  %v = tensor.extract_slice %u[0, %i, 0] [1, 1, 5] [1, 1, 1] : tensor<1x3x5xf32> to tensor<1x5xf32>
  %r = arith.addf %s, %v : tensor<1x5xf32>
  return %r : tensor<1x5xf32>
}""",
        {"a": A, "i": 2, "j": 1},
        -(A[2] + A[1])[None],
    ),
    "a slice put in with gaps": (
        """func.func @main(%a: tensor<3x5xf32>, %b: tensor<2x2xf32>, %i: index) -> tensor<3x5xf32> {
  %x = math.tanh %a : tensor<3x5xf32>
  %r = tensor.insert_slice %b into %x[0, %i] [2, 2] [2, 3] : tensor<2x2xf32> into tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}""",
        {"a": A, "b": B[:2, :2], "i": 1},
        np.where(
            np.isin(np.arange(15).reshape(3, 5), (1, 4, 11, 14)),
            np.kron(B[:2, :2], np.ones((2, 3), np.float32))[:3, [0, 0, 0, 3, 3]],
            np.tanh(A),
        ),
    ),
    "an affine map of sizes": (
        """#map = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0 mod 2)>
func.func @main(%a: tensor<?x5xf32>, %n: index) -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a, %c0 : tensor<?x5xf32>
  %k = affine.apply #map(%d)[%n]
  %f = tensor.extract_slice %a[%n, 0] [%k, 5] [1, 1] : tensor<?x5xf32> to tensor<?x5xf32>
  %r = arith.negf %f : tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}""",
        {"a": A, "n": 1},
        -A[1:3],
    ),
    "blocks in a row, calls and barriers": (
        """util.func public @main(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = util.optimization_barrier %a : tensor<3x5xf32>
  cf.br ^bb1(%0 : tensor<3x5xf32>)
^bb1(%x: tensor<3x5xf32>):
  %1 = util.call @twice(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %2 = util.call @twice(%1) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %3 = iree_tensor_ext.compute_barrier.end %2 : tensor<3x5xf32> -> tensor<3x5xf32>
  util.return %3 : tensor<3x5xf32>
}
util.func private @twice(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %r = arith.addf %a, %a : tensor<3x5xf32>
  util.return %r : tensor<3x5xf32>
}""",
        {"a": A},
        4 * A,
    ),
    "globals and constants": (
        """util.global private @w = dense<2.0> : tensor<3x5xf32>
util.global private @v {noinline} = dense<3.0> : tensor<3x5xf32>
util.func public @main(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %w = util.global.load @w : tensor<3x5xf32>
  %p = util.global.address @v : !util.ptr<tensor<3x5xf32>>
  %v = util.global.load.indirect %p : !util.ptr<tensor<3x5xf32>> -> tensor<3x5xf32>
  %c = util.unfoldable_constant dense<5.0> : tensor<3x5xf32>
  %0 = arith.mulf %a, %w : tensor<3x5xf32>
  %1 = arith.addf %0, %v : tensor<3x5xf32>
  %2 = arith.addf %1, %c : tensor<3x5xf32>
  util.return %2 : tensor<3x5xf32>
}""",
        {"a": A},
        A * 2 + 8,
    ),
    "a loop of so many iterations": (
        """func.func @main(%a: tensor<3x5xf32>, %k: i1) -> (tensor<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : i32
  %c2 = arith.constant 2 : i32
  %e = arith.constant dense<0.0> : tensor<5xf32>
  %r, %o = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %e, %other = %e) -> (tensor<5xf32>, tensor<5xf32>) {
    %x = tensor.extract_slice %a[%i, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<5xf32>
    %y = arith.addf %x, %s : tensor<5xf32>
    %z = scf.if %k -> (tensor<5xf32>) {
      %w = scf.for %j = %c2 to %c7 step %c2 iter_args(%v = %y) -> (tensor<5xf32>) : i32 {
        %t = math.tanh %v : tensor<5xf32>
        scf.yield %t : tensor<5xf32>
      }
      scf.yield %w : tensor<5xf32>
    } else {
      scf.yield %other : tensor<5xf32>
    }
    scf.yield %z, %s : tensor<5xf32>, tensor<5xf32>
  }
  return %r : tensor<5xf32>
}""",
        {"a": A, "k": True},
        np.tanh(np.tanh(np.tanh(A[2] + np.tanh(np.tanh(np.tanh(A[1] + np.tanh(np.tanh(np.tanh(A[0]))))))))),
    ),
    "a loop of no iteration": (
        """func.func @main(%a: tensor<3x5xf32>) -> (tensor<3x5xf32>) {
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c1 to %c1 step %c1 iter_args(%s = %a) -> (tensor<3x5xf32>) {
    %z = math.tanh %s : tensor<3x5xf32>
    scf.yield %z : tensor<3x5xf32>
  }
  %n = arith.negf %r : tensor<3x5xf32>
  return %n : tensor<3x5xf32>
}""",
        {"a": A},
        -A,
    ),
    "regions that somebody formed": (
        """util.func public @main(%a: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %a, %c1 : tensor<3x?xf32>
  %0 = flow.dispatch.region[%d] -> (tensor<3x?xf32>{%d}) {
    %1 = math.exp %a : tensor<3x?xf32>
    flow.return %1 : tensor<3x?xf32>
  } count(%w: index) -> (index, index, index) {
    %c2 = arith.constant 2 : index
    flow.return %w, %c2, %c2 : index, index, index
  }
  util.return %0 : tensor<3x?xf32>
}""",
        {"a": A},
        np.exp(A),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_the_numbers_that_it_says(name: str, tmp_path: Path):
    text, feeds, expected = FORMS[name]
    np.testing.assert_allclose(agreed(text, feeds, tmp_path), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("taken", [True, False])
def test_either_side_of_a_branch(taken: bool, tmp_path: Path):
    text = """func.func @main(%a: tensor<3x5xf32>, %k: i1) -> (tensor<3x5xf32>, f32) {
  %c0 = arith.constant 0 : index
  %r:2 = scf.if %k -> (tensor<3x5xf32>, f32) {
    %e = tensor.extract %a[%c0, %c0] : tensor<3x5xf32>
    scf.yield %a, %e : tensor<3x5xf32>, f32
  } else {
    %x = math.exp %a : tensor<3x5xf32>
    %y = scf.if %k -> tensor<3x5xf32> {
      scf.yield %a : tensor<3x5xf32>
    } else {
      scf.yield %x : tensor<3x5xf32>
    }
    %e = tensor.extract %x[%c0, %c0] : tensor<3x5xf32>
    scf.yield %y, %e : tensor<3x5xf32>, f32
  }
  return %r#0, %r#1 : tensor<3x5xf32>, f32
}"""
    np.testing.assert_allclose(agreed(text, {"a": A, "k": taken}, tmp_path), A if taken else np.exp(A), rtol=1e-5)
