"""Sizes that must be equal get one name, and a program in which they have one is the same program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.require_equal_sizes import RequireEqualSizesPass
from fuseline.passes.cleanup.unify_equal_sizes import UnifyEqualSizesPass
from fuseline.size_requirement import SizeRequirement
from tests.draws import RNG

JOIN = """func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]},
    %y: tensor<?x?xf32> {fuseline.dims = ["m", "k"]}, %z: tensor<?x4xf32> {fuseline.dims = ["p", "4"]})
    -> tensor<?x?xf32> {
  %r = tensor.concat dim(1) %x, %y, %z : (tensor<?x4xf32>, tensor<?x?xf32>, tensor<?x4xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


def unified(made_up: str, **bounds: d.Dim) -> tuple[CompilerContext, str]:
    """The context and the program after the pass ran twice."""
    ctx = new_context()
    module = parse_module(JOIN, ctx)
    ctx.symbols |= {name: d.symbol(name) for name in ("n", "m", "k", "p")} | bounds
    ctx.made_up_sizes |= set(made_up)
    RequireEqualSizesPass().apply(ctx, module)
    UnifyEqualSizesPass().apply(ctx, module)
    text = print_module(module)
    UnifyEqualSizesPass().apply(ctx, module)
    assert print_module(module) == text
    return ctx, text


def test_one_name_is_left_of_sizes_that_must_be_equal():
    ctx, text = unified("nmkp")
    assert '["n", "k"]' in text and text.count('["n", "4"]') == 2
    assert sorted(ctx.symbols) == ["k", "n"] and not ctx.requirements


def test_names_that_the_model_gives_stay():
    ctx, text = unified("n")
    assert '["n", ' not in text and '["p", "4"]' in text
    assert [(str(r.left), str(r.right)) for r in ctx.requirements.values()] == [
        (str(d.symbol("m")), str(d.symbol("p")))
    ]
    ctx, text = unified("")
    assert '["n", "4"]' in text and len(ctx.requirements) == 2


def test_what_is_left_has_the_bounds_of_all():
    ctx, _ = unified("nmkp", n=d.symbol("n", 2), m=d.symbol("m", 0, 9), p=d.symbol("p", 1, 7))
    assert ctx.symbols["n"] == d.symbol("n", 2, 7)


def test_other_requirements_speak_of_the_new_names():
    ctx = new_context()
    module = parse_module(JOIN, ctx)
    ctx.symbols |= {name: d.symbol(name) for name in ("n", "m", "k", "p")}
    ctx.made_up_sizes |= {"m"}
    n, m, k = (d.symbol(name) for name in "nmk")
    ctx.require(SizeRequirement(n, m, "join"))
    ctx.require(SizeRequirement(k, d.mul(2, m), "join", "at_least"))
    ctx.require(SizeRequirement(m, n, "join", "at_least"))
    ctx.require(SizeRequirement(k, m, "join", "differ"))
    UnifyEqualSizesPass().apply(ctx, module)
    assert [(r.left, r.right, r.relation) for r in ctx.requirements.values()] == [
        (k, d.mul(2, n), "at_least"),
        (k, n, "differ"),
    ]


DOUBLED = """func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %b, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %b, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%fill : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%m, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%empty : tensor<?x?xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_reads_a_product_in_other_names_is_its_epilogue(tmp_path: Path, threads: int):
    path = tmp_path / "doubled.mlir"
    path.write_text(DOUBLED)
    program = fuseline.compile(path, threads=threads)
    assert len(program.record.dispatches) == 1
    for rows, columns in ((1, 1), (3, 17), (37, 5), (64, 33)):
        a, b = RNG.standard_normal((rows, rows), np.float32), RNG.standard_normal((rows, columns), np.float32)
        (found,) = program.session.run({"a": a, "b": b}).values()
        np.testing.assert_allclose(found, a.astype(np.float64) @ b + b, rtol=1e-4, atol=1e-4)
    with pytest.raises(FuselineError, match="E0203"):
        program.session.run({"a": np.zeros((4, 3), np.float32), "b": np.zeros((3, 2), np.float32)})
    with pytest.raises(FuselineError, match="E0203"):
        program.session.run({"a": np.zeros((3, 3), np.float32), "b": np.zeros((4, 2), np.float32)})
