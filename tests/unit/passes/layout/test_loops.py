"""Loops split and merged, on the interpreter: the values stay, whatever the body asks for and whatever the sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.ops import GenericOp

from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation import evaluate_function
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.dim_json import to_name
from fuseline.ir.text import parse_module
from fuseline.passes.layout.rewriting.loops import MAX_LOOPS, can_collapse, can_expand, collapse_loops, expand_loops
from fuseline.passes.layout.rewriting.scope import Scope

# y[i] += sum over j of x[i, j] * (i + 3) + j: loops of both kinds, each asked for by the body
ROWS = """func.func @main(%x: tensor<ROWSx4xf32> {fuseline.dims = ["ROWNAME", "4"]},
    %y: tensor<ROWSxf32> {fuseline.dims = ["ROWNAME"]})
    -> tensor<ROWSxf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<ROWSx4xf32>) outs(%y : tensor<ROWSxf32>) {
  ^bb0(%p: f32, %acc: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %three = arith.constant 3 : index
    %k = arith.addi %i, %three : index
    %kk = arith.index_cast %k : index to i64
    %jj = arith.index_cast %j : index to i64
    %kf = arith.sitofp %kk : i64 to f32
    %jf = arith.sitofp %jj : i64 to f32
    %m = arith.mulf %p, %kf : f32
    %s = arith.addf %m, %jf : f32
    %t = arith.addf %acc, %s : f32
    linalg.yield %t : f32
  } -> tensor<ROWSxf32>
  return %r : tensor<ROWSxf32>
}"""
CUBE = """func.func @main(%x: tensor<2x3x4xf32>, %b: tensor<2xf32>, %e: tensor<4x2x3xf32>) -> tensor<4x2x3xf32> {
  %r = linalg.generic {indexing_maps = [
      affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>, affine_map<(i, j, k) -> (k, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %b : tensor<2x3x4xf32>, tensor<2xf32>)
          outs(%e : tensor<4x2x3xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %k = linalg.index 2 : index
    %kk = arith.index_cast %k : index to i64
    %kf = arith.sitofp %kk : i64 to f32
    %m = arith.mulf %p, %kf : f32
    %s = arith.addf %m, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}"""
WINDOW = """func.func @main(%x: tensor<9xf32>, %w: tensor<4xf32>, %e: tensor<6xf32>) -> tensor<6xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<9xf32>, tensor<4xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %s = arith.addf %p, %acc : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}"""
Rewrite = Callable[[Scope, GenericOp], GenericOp]


def _rows(size: int | str) -> str:
    return ROWS.replace("ROWNAME", str(size)).replace("ROWS", "?" if isinstance(size, str) else str(size))


def _scope(text: str, **symbols: d.Dim) -> tuple[Scope, FuncOp, GenericOp]:
    ctx = new_context()
    ctx.symbols |= symbols
    module = parse_module(text, ctx)
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    (op,) = [op for op in module.walk() if isinstance(op, GenericOp)]
    return Scope(function, ctx), function, op


def _run(function: FuncOp, shapes: list[tuple[int, ...]]) -> Any:
    rng = np.random.default_rng(7)
    return evaluate_function(function, [rng.standard_normal(shape, np.float32) for shape in shapes], {})


def _agrees(text: str, shapes: list[tuple[int, ...]], rewrite: Rewrite, **symbols: d.Dim) -> GenericOp:
    """The new op, once values before and after were compared."""
    expected = _run(_scope(text, **symbols)[1], shapes)
    scope, function, op = _scope(text, **symbols)
    new = rewrite(scope, op)
    function.verify()
    for one, two in zip(_run(function, shapes), expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)
    return new


SPLITS: dict[str, tuple[dict[int, list[d.Dim]], list[str]]] = {
    "rows": ({0: [2, 3]}, ["parallel", "parallel", "reduction"]),
    "columns": ({1: [2, 2]}, ["parallel", "reduction", "reduction"]),
    "both": ({0: [3, 2], 1: [2, 2]}, ["parallel", "parallel", "reduction", "reduction"]),
    "rows in three": ({0: [1, 3, 2]}, ["parallel", "parallel", "parallel", "reduction"]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_body_knows_where_it_is_after_loops_are_split(name: str) -> None:
    splits, iterators = SPLITS[name]
    new = _agrees(_rows(6), [(6, 4), (6,)], lambda scope, op: expand_loops(scope, op, splits))
    assert list(StructuredOp(new).iterators) == iterators


@pytest.mark.parametrize("inner_is_unknown", [False, True])
def test_sizes_of_the_run_are_split(inner_is_unknown: bool) -> None:
    n = d.symbol("n")
    text = _rows(to_name(d.mul(n, 2)).replace('"', '\\"'))
    text = text.replace("%x: tensor<?x4xf32>", '%z: tensor<?xf32> {fuseline.dims = ["n"]}, %x: tensor<?x4xf32>')
    parts = [2, n] if inner_is_unknown else [n, 2]
    scope, function, op = _scope(text, n=n)
    assert scope.dims(function.args[1])[0] == d.mul(n, 2)
    assert can_expand(scope, StructuredOp(op), {0: parts})
    _agrees(text, [(5,), (10, 4), (10,)], lambda scope, op: expand_loops(scope, op, {0: parts}), n=n)


def test_a_size_that_nobody_knows_cannot_be_split_off() -> None:
    scope, _, op = _scope(_rows(6))
    assert can_expand(scope, StructuredOp(op), {0: [2, 3]})
    assert not can_expand(scope, StructuredOp(op), {0: [d.symbol("gone"), d.symbol("lost")]})


def test_a_loop_of_a_window_is_not_split() -> None:
    scope, _, op = _scope(WINDOW)
    assert not can_expand(scope, StructuredOp(op), {0: [2, 3]})


def test_as_many_loops_as_kernels_have() -> None:
    scope, _, op = _scope(_rows(64))
    view = StructuredOp(op)
    assert can_expand(scope, view, {0: [64, *[1] * (MAX_LOOPS - 2)]})
    assert not can_expand(scope, view, {0: [64, *[1] * (MAX_LOOPS - 1)]})


def test_merged_loops_leave_the_others_where_they_are() -> None:
    """`i, j` lie side by side in two operands and in another place of the third."""
    text = CUBE.replace(", %b: tensor<2xf32>", "").replace("affine_map<(i, j, k) -> (i)>, ", "").replace("%x, %b", "%x")
    text = text.replace("tensor<2x3x4xf32>, tensor<2xf32>)", "tensor<2x3x4xf32>)").replace("%q: f32, ", "")
    scope, _, op = _scope(text)
    assert can_collapse(scope, StructuredOp(op), [0, 1])
    new = _agrees(text, [(2, 3, 4), (4, 2, 3)], lambda scope, op: collapse_loops(scope, op, [0, 1]))
    assert [str(map_) for map_ in StructuredOp(new).maps] == ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1, d0)"]


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ([0, 1], "an operand has one of them alone"),
        ([1, 2], "the result has them apart, and the body asks for one"),
        ([1, 0], "they are the other way round"),
        ([0, 2], "they are not neighbours"),
    ],
)
def test_loops_that_cannot_merge(group: list[int], why: str) -> None:
    scope, _, op = _scope(CUBE)
    assert not can_collapse(scope, StructuredOp(op), group), why


def test_loops_of_two_kinds_cannot_merge() -> None:
    text = _rows(6)
    start, end = text.index("    %i ="), text.index("    %m =")
    scope, _, op = _scope((text[:start] + text[end:]).replace("%p, %kf", "%p, %p").replace("%m, %jf", "%m, %p"))
    assert not can_collapse(scope, StructuredOp(op), [0, 1])
