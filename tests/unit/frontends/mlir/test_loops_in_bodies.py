"""Loops and branches of `scf` in the body of a structured op: written out and chosen, as in the program around it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG

BODY = """func.func @main(%a: tensor<{type}>, %b: tensor<{type}>, %n: index) -> tensor<{type}> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %one = arith.constant 1 : i32
  %r = linalg.map ins(%a, %b : tensor<{type}>, tensor<{type}>) outs(%a : tensor<{type}>)
    (%x: i32, %y: i32, %o: i32) {{
{code}
      linalg.yield %v : i32
    }}
  return %r : tensor<{type}>
}}"""
POWER = """      %v:2 = scf.for %i = %c0 to %c5 step %c2 iter_args(%s = %one, %t = %x) -> (i32, i32) {
        %p = arith.muli %s, %t : i32
        %q = arith.addi %t, %y : i32
        scf.yield %p, %q : i32, i32
      }"""
COUNTER = """      %v = scf.for %i = %c1 to %c5 step %c1 iter_args(%s = %x) -> (i32) {
        %w = scf.for %j = %c0 to %c2 step %c1 iter_args(%t = %s) -> (i32) {
          %k = arith.addi %i, %j : index
          %m = arith.index_cast %k : index to i32
          %u = arith.addi %t, %m : i32
          scf.yield %u : i32
        }
        scf.yield %w : i32
      }"""
BRANCH = """      %c = arith.cmpi slt, %x, %y : i32
      %v = scf.if %c -> (i32) {
        %w = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %x) -> (i32) {
          %t = arith.addi %s, %s : i32
          scf.yield %t : i32
        }
        scf.yield %w : i32
      } else {
        scf.yield %y : i32
      }"""
COMPUTED = POWER.replace("to %c5", "to %n")
LONG = COUNTER.replace("%c5 step", "%many step")


def _compiled(code: str, shape: list[int], tmp_path: Path) -> fuseline.CompiledModel:
    path = tmp_path / "body.mlir"
    type_ = "x".join([*map(str, shape), "i32"])
    text = BODY.format(type=type_, code=code)
    if code in (POWER, COMPUTED):
        text = text.replace("linalg.yield %v :", "linalg.yield %v#0 :")
    path.write_text(text.replace("%c1 = ", "%many = arith.constant 100000 : index\n  %c1 = "))
    return fuseline.compile(path)


@pytest.mark.parametrize("code", [POWER, COUNTER, BRANCH], ids=["states", "nested", "branch"])
def test_bodies_are_straight(code: str, tmp_path: Path):
    shape = [int(n) for n in RNG.integers(1, 20, RNG.integers(1, 4))]
    x, y = (RNG.integers(-9, 9, shape).astype(np.int32) for _ in range(2))
    wanted = {
        POWER: x * (x + y) * (x + 2 * y),
        COUNTER: x + sum(i + j for i in range(1, 5) for j in range(2)),
        BRANCH: np.where(x < y, 4 * x, y),
    }[code]
    program = _compiled(code, shape, tmp_path)
    feeds = {"a": x, "b": y, "n": 3}
    (found,) = program.run({spec.name: feeds[spec.name] for spec in program.inputs}).values()
    np.testing.assert_array_equal(found, wanted)
    assert program.stats["dispatches"] == 1 and program.stats["host_ops"] == 0


@pytest.mark.parametrize("code", [COMPUTED, LONG], ids=["computed", "long"])
def test_a_loop_that_cannot_be_written_out_is_refused(code: str, tmp_path: Path):
    with pytest.raises(FuselineError) as caught:
        _compiled(code, [4], tmp_path)
    assert caught.value.code == "E0306" and "written out" in str(caught.value)
