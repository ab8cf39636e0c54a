"""The roles of the loops of convolutions and poolings, and the window expressions that say so."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from fuseline.analysis.convolution_dims import ConvolutionDims, WindowExpr, convolution_dims, linear_terms, window_expr
from tests.unit.analysis.generics import view_of

PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"
D = [AffineExpr.dimension(i) for i in range(3)]


def _roles(maps: list[str], kinds: str, ins: list[str], out: str, body: str = PRODUCT) -> ConvolutionDims | None:
    return convolution_dims(
        view_of(maps, kinds, [f"tensor<{shape}xf32>" for shape in ins], [f"tensor<{out}xf32>"], body)
    )


@pytest.mark.parametrize(
    ("expr", "terms"),
    [
        (D[0] * 3 + D[1] * 2 + 5, ({0: 3, 1: 2}, 5)),
        (D[0] + D[0], ({0: 2}, 0)),
        ((D[0] + 4) * 3, ({0: 3}, 12)),
        (AffineExpr.constant(3) * (D[1] + 2), ({1: 3}, 6)),
        (AffineBinaryOpExpr(AffineBinaryOpKind.Mul, AffineExpr.constant(3), AffineExpr.constant(2)), ({}, 6)),
        (AffineBinaryOpExpr(AffineBinaryOpKind.Mul, D[0], D[1]), None),
        (D[0] // 2, None),
        (D[0] + D[1] // 2, None),
        (D[1] // 2 + D[0], None),
    ],
)
def test_linear_terms(expr: AffineExpr, terms: object):
    assert linear_terms(expr) == terms


def test_a_window_is_a_parallel_loop_and_a_reduction():
    kinds = ["parallel", "reduction", "parallel"]
    assert window_expr(D[0] * 3 + D[1] * 2 + 7, kinds) == WindowExpr(0, 1, 3, 2, 7)
    assert window_expr(D[1] + D[2] * 2, kinds) == WindowExpr(2, 1, 2, 1)
    assert window_expr(D[0] + D[2], kinds) is None
    assert window_expr(D[0] + D[1], ["reduction", "reduction"]) is None
    assert window_expr(D[0] + D[1] + D[2], kinds) is None
    assert window_expr(D[0] * 2, kinds) is None
    assert window_expr((D[0] + D[1]) // 2, kinds) is None


def test_a_convolution_of_two_dimensions():
    found = _roles(
        ["d0, d4, d1 * 2 + d5 * 3, d2 + d6", "d3, d4, d5, d6", "d0, d3, d1, d2"],
        "pppprrr",
        ["2x3x11x8", "4x3x2x3"],
        "2x4x4x6",
    )
    spatial = (WindowExpr(1, 5, 2, 3), WindowExpr(2, 6, 1, 1))
    assert found == ConvolutionDims((0,), spatial, (2, 3), (3,), (4,), (), 0, 1)
    assert found is not None and found.image_loops == (1, 2) and found.window_loops == (5, 6)


def test_the_image_may_come_second():
    swapped = PRODUCT.replace("%a0, %a1", "%a1, %a0")
    found = _roles(["d2, d1", "d0 + d2, d3", "d0, d1"], "pprr", ["3x4", "8x2"], "6x4", swapped)
    assert found == ConvolutionDims((), (WindowExpr(0, 2, 1, 1),), (0,), (1,), (3,), (), 1, 0)


def test_a_depthwise_convolution_has_channels_in_all_three():
    found = _roles(["d0 + d2, d1", "d2, d1", "d0, d1"], "ppr", ["8x3", "3x3"], "6x3")
    assert found == ConvolutionDims((), (WindowExpr(0, 2, 1, 1),), (0,), (), (), (1,), 0, 1)


def test_a_pooling_has_an_operand_of_the_windows_size():
    body = "%s = arith.maximumf %a2, %a0 : f32\n linalg.yield %s : f32"
    found = _roles(["d0, d1 * 2 + d2", "d2", "d0, d1"], "ppr", ["3x9", "3"], "3x4", body)
    assert found == ConvolutionDims((0,), (WindowExpr(1, 2, 2, 1),), (1,), (), (), (), 0, 1)


def test_a_dimension_of_size_one_is_no_window():
    found = _roles(["0, d0 + d2", "d2, d1", "d1, d0"], "ppr", ["1x8", "3x4"], "4x6")
    assert found == ConvolutionDims((), (WindowExpr(0, 2, 1, 1),), (1,), (1,), (), (), 0, 1)


def test_other_reductions_have_no_roles():
    assert _roles(["d0, d2", "d2, d1", "d0, d1"], "ppr", ["3x5", "5x4"], "3x4") is None
    assert _roles(["d0 + d1", "d2, d1", "d0"], "prr", ["8", "2x3"], "6") is None
