"""What structured ops are: kinds, extents of their loops, and the factors of their products."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.indexing_maps import (
    dims_of,
    is_identity,
    is_permutation,
    is_projected_permutation,
    loops_of,
    used_dims,
)
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands, splat_value
from fuseline.analysis.structured_op import extents_of, input_count
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.unit.analysis.generics import generic, op_of, view_of

MATMUL = ["d0, d2", "d2, d1", "d0, d1"]
PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"
T = "tensor<4x4xf32>"


def _named(dims: tuple[str, str]) -> tuple[ShapeAnalysis, StructuredOp]:
    """A product whose summed loop is spelled by both operands."""
    text = f"""func.func @main(%x: tensor<4x?xf32> {{fuseline.dims = ["4", "{dims[0]}"]}},
        %w: tensor<{dims[1]}x5xf32> {{fuseline.dims = ["k", "5"]}},
        %e: tensor<4x5xf32>) -> tensor<4x5xf32> {{
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (l, j)>,
          affine_map<(i, j, l) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x, %w : tensor<4x?xf32>, tensor<{dims[1]}x5xf32>) outs(%e : tensor<4x5xf32>) {{
      ^bb0(%a0: f32, %a1: f32, %a2: f32):
        {PRODUCT}
      }} -> tensor<4x5xf32>
      return %r : tensor<4x5xf32>
    }}"""
    module = parse_module(text, new_context())
    (op,) = [op for op in module.walk() if isinstance(op, GenericOp)]
    return ShapeAnalysis({}), StructuredOp(op)


@pytest.mark.parametrize(
    ("dims", "expected"), [(("n", "8"), 8), (("n", "?"), d.symbol("n"))], ids=["a number behind a name", "names alone"]
)
def test_a_summed_loop_is_a_number_where_an_operand_says_so(dims: tuple[str, str], expected: d.Dim) -> None:
    shapes, view = _named(dims)
    assert view.loops(shapes) == (4, 5, expected)
    assert view.loops(shapes) is view.loops(shapes)


def test_a_loop_that_no_operand_spells_has_no_extent() -> None:
    view = view_of(["d0 * 2", "d0"], "p", ["tensor<8xf32>"], ["tensor<4xf32>"], "linalg.yield %a0 : f32")
    assert view.loops(ShapeAnalysis()) == (4,)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PRODUCT, (0, 1)),
        ("%m = arith.mulf %a1, %a0 : f32\n %s = arith.addf %m, %a2 : f32\n linalg.yield %s : f32", (1, 0)),
        ("%m = arith.mulf %a0, %a0 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32", (0, 0)),
        ("%m = arith.mulf %a0, %a2 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32", None),
        ("%m = arith.mulf %a2, %a2 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32", None),
        ("%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %m, %m : f32\n linalg.yield %s : f32", None),
        ("%m = arith.mulf %a0, %a1 : f32\n %s = arith.subf %a2, %m : f32\n linalg.yield %s : f32", None),
        ("%m = arith.divf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32", None),
        (
            (
                "%n = math.exp %a0 : f32\n %m = arith.mulf %n, %a1 : f32\n %s = arith.addf %a2, %m : f32\n "
                "linalg.yield "
                "%s : f32"
            ),
            None,
        ),
        ("%s = arith.addf %a2, %a0 : f32\n linalg.yield %s : f32", None),
        ("linalg.yield %a0 : f32", None),
    ],
)
def test_the_factors_of_a_product_are_inputs(body: str, expected: tuple[int, int] | None) -> None:
    op = op_of(generic(MATMUL, "ppr", [T, T], [T], body))
    assert multiply_add_operands(op) == expected
    assert (kind(op) is Kind.CONTRACTION) == (expected in ((0, 1), (1, 0)))


def test_a_number_from_outside_is_no_factor() -> None:
    """It is an argument, but of no body."""
    text = f"""func.func @main(%a: {T}, %e: {T}, %n: f32) -> {T} {{
      %r = linalg.generic {{indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (i, j)>],
          iterator_types = ["parallel", "parallel", "reduction"]}} ins(%a : {T}) outs(%e : {T}) {{
      ^bb0(%p: f32, %acc: f32):
        %m = arith.mulf %p, %n : f32
        %s = arith.addf %acc, %m : f32
        linalg.yield %s : f32
      }} -> {T}
      return %r : {T}
    }}"""
    (op,) = [op for op in parse_module(text, new_context()).walk() if isinstance(op, GenericOp)]
    assert multiply_add_operands(op) is None
    assert kind(op) is Kind.REDUCTION
    assert input_count(op) == 1


@pytest.mark.parametrize(
    ("maps", "body", "expected"),
    [
        (["d0, d1", "d0, d1"], "linalg.yield %a0 : f32", Kind.COPY),
        (["d1, d0", "d0, d1"], "linalg.yield %a0 : f32", Kind.TRANSPOSE),
        (["d0, d1", "d0, d1"], "linalg.yield %a1 : f32", Kind.ELEMENTWISE),
        (["d0, d1", "d0, d1"], "%s = arith.negf %a0 : f32\n linalg.yield %s : f32", Kind.ELEMENTWISE),
        (["d0, 0", "d0, d1"], "linalg.yield %a0 : f32", Kind.BROADCAST),
        (
            ["d0, d1", "d0, d1"],
            "%i = linalg.index 0 : index\n %s = tensor.extract %x0[%i, %i] : tensor<4x4xf32>\n linalg.yield %s : f32",
            Kind.GATHER,
        ),
    ],
)
def test_kinds_of_ops_that_sum_nothing(maps: list[str], body: str, expected: Kind) -> None:
    assert kind(op_of(generic(maps, "pp", [T], [T], body))) is expected


SPLATS = """func.func @main(%x: tensor<2x3xf32>, %n: f32) {{
  %c = arith.constant 2.5 : f32
  %whole = arith.constant dense<1.5> : tensor<2x3xf32>
  %mixed = arith.constant dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]> : tensor<2x3xf32>
  %three = arith.constant dense<3> : tensor<2x3xi32>
  %e = tensor.empty() : tensor<2x3xf32>
  {}
  return
}}"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%r = arith.constant 7 : i64", 7),
        ("%r = tensor.collapse_shape %whole [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>", 1.5),
        ("%r = tensor.collapse_shape %three [[0, 1]] : tensor<2x3xi32> into tensor<6xi32>", 3),
        ("%r = tensor.collapse_shape %mixed [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>", None),
        ("%r = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>", None),
        (
            (
                "%r = tensor.expand_shape %whole [[0, 1], [2]] output_shape [2, 1, 3] : tensor<2x3xf32> into "
                "tensor<2x1x3xf32>"
            ),
            1.5,
        ),
        ("%r = linalg.fill ins(%c : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>", 2.5),
        ("%r = linalg.fill ins(%n : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>", None),
        ("%r = tensor.extract_slice %whole[0, 0] [1, 3] [1, 1] : tensor<2x3xf32> to tensor<1x3xf32>", None),
    ],
)
def test_one_number_everywhere(line: str, expected: float | None) -> None:
    function = next(iter(parse_module(SPLATS.format(line), new_context()).ops))
    assert isinstance(function, FuncOp) and function.body.block.last_op is not None
    made = function.body.block.last_op.prev_op
    assert made is not None and splat_value(made.results[0]) == expected


D = [AffineExpr.dimension(i) for i in range(3)]
ZERO, ONE = AffineExpr.constant(0), AffineExpr.constant(1)


@pytest.mark.parametrize(
    ("results", "once", "or_zero", "permutation", "identity"),
    [
        ((D[0], D[1], D[2]), True, True, True, True),
        ((D[2], D[0], D[1]), True, True, True, False),
        ((D[0], D[1]), True, True, False, False),
        ((), True, True, False, False),
        ((D[0], D[1], D[1]), False, False, False, False),
        ((D[0], ZERO, D[2]), False, True, False, False),
        ((ZERO, ZERO, ZERO), False, True, False, False),
        ((D[0], ONE, D[2]), False, False, False, False),
        ((D[0], D[1], D[2] + 1), False, False, False, False),
        ((D[0], D[1], D[2], ZERO), False, True, False, False),
    ],
)
def test_maps_that_name_loops(
    results: tuple[AffineExpr, ...], once: bool, or_zero: bool, permutation: bool, identity: bool
) -> None:
    map_ = AffineMap(3, 0, results)
    assert (is_projected_permutation(map_, allow_zero=False), is_projected_permutation(map_)) == (once, or_zero)
    assert (is_permutation(map_), is_identity(map_)) == (permutation, identity)


def test_the_loops_in_a_map() -> None:
    assert used_dims(AffineMap(3, 0, (D[2] * 2 + D[0], ONE))) == {0, 2}
    assert dims_of(D[1] // 3) == {1} and dims_of(ONE) == set()
    assert loops_of([D[1], D[0] + 1, ZERO, D[2]]) == [1, None, None, 2]


def test_the_first_operand_that_spells_a_loop_says_its_extent() -> None:
    n = d.symbol("n")
    maps = [AffineMap(3, 0, (D[1], D[0] + D[2])), AffineMap(3, 0, (D[0], D[1]))]
    assert extents_of(maps, [(5, 9), (n, 7)], 3) == [n, 5, None]
