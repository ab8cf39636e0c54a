"""A `while` of StableHLO that the host repeats: elements of every kind, loops inside, what it reads from outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fuseline
from tests.draws import RNG
from tests.unit.frontends.stablehlo.programs import program

GCD = """    %zero = stablehlo.constant dense<0> : tensor<ui32>
    %r:2 = stablehlo.while(%a = %x, %b = %y) : tensor<ui32>, tensor<ui32>
    cond {
      %t = stablehlo.compare NE, %b, %zero, UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %m = stablehlo.remainder %a, %b : tensor<ui32>
      stablehlo.return %b, %m : tensor<ui32>, tensor<ui32>
    }"""


def test_elements_without_a_sign(tmp_path: Path):
    path = tmp_path / "gcd.mlir"
    path.write_text(program(GCD, "%x: tensor<ui32>, %y: tensor<ui32>", "tensor<ui32>", "%r#0"))
    model = fuseline.compile(path)
    for _ in range(4):
        a, b = RNG.integers(1, 1 << 32, 2).astype(np.uint32)
        (found,) = model.run(dict(zip((one.name for one in model.inputs), (a, b), strict=True))).values()
        assert found.dtype == np.uint32 and int(found) == np.gcd(int(a), int(b))
    assert [host.op_type for host in model.record.host_ops] == ["While"]


OUTSIDE = """    %p = stablehlo.exponential %x : tensor<4xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %k:2 = stablehlo.while(%j = %zero, %u = %s) : tensor<i32>, tensor<4xf32>
      cond {
        %v = stablehlo.compare LT, %j, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %v : tensor<i1>
      } do {
        %w = stablehlo.add %u, %p : tensor<4xf32>
        %l = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %l, %w : tensor<i32>, tensor<4xf32>
      }
      %m = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %m, %k#1 : tensor<i32>, tensor<4xf32>
    }"""


def test_loops_inside_and_what_they_read_from_outside(tmp_path: Path):
    path, x = tmp_path / "loops.mlir", RNG.standard_normal(4).astype(np.float32)
    path.write_text(program(OUTSIDE, "%x: tensor<4xf32>, %n: tensor<i32>", "tensor<4xf32>", "%r#1"))
    model = fuseline.compile(path)
    for trips in (0, 1, 4):
        found = model(x, np.array(trips, np.int32))
        np.testing.assert_allclose(found, x + np.exp(x) * sum(range(trips)), rtol=1e-5, atol=1e-6)
