"""The roles of a contraction's loops, whichever operand comes first, and what is none."""

from __future__ import annotations

import pytest

from fuseline.analysis.contraction_dims import ContractionDims, contraction_dims
from tests.unit.analysis.generics import view_of

PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"


def _roles(maps: list[str], kinds: str, ins: list[str], out: str, body: str = PRODUCT) -> ContractionDims | None:
    return contraction_dims(
        view_of(maps, kinds, [f"tensor<{shape}xf32>" for shape in ins], [f"tensor<{out}xf32>"], body)
    )


@pytest.mark.parametrize(
    ("maps", "kinds", "ins", "out", "roles"),
    [
        (["d0, d2", "d2, d1", "d0, d1"], "ppr", ["3x5", "5x4"], "3x4", ((), (0,), (1,), (2,))),
        (["d1, d3, d0", "d0, d3, d2", "d0, d1, d2"], "pppr", ["3x5x2", "2x5x4"], "2x3x4", ((0,), (1,), (2,), (3,))),
        (["d2, d0, d3", "d1, d3, d2", "d0, d1"], "pprr", ["6x3x5", "4x5x6"], "3x4", ((), (0,), (1,), (2, 3))),
        (["d0, d1, d3", "d3, d2", "d0, d1, d2"], "pppr", ["2x3x5", "5x4"], "2x3x4", ((), (0, 1), (2,), (3,))),
    ],
)
def test_roles(maps: list[str], kinds: str, ins: list[str], out: str, roles: tuple[tuple[int, ...], ...]):
    assert _roles(maps, kinds, ins, out) == ContractionDims(roles[0], roles[1], roles[2], roles[3], 0, 1)


def test_the_factors_of_the_product_say_which_operand_is_the_left_one():
    swapped = PRODUCT.replace("%a0, %a1", "%a1, %a0")
    assert _roles(["d2, d1", "d0, d2", "d0, d1"], "ppr", ["5x4", "3x5"], "3x4", swapped) == ContractionDims(
        (), (0,), (1,), (2,), 1, 0
    )


@pytest.mark.parametrize("side", [0, 1])
def test_a_loop_that_is_summed_in_one_operand_only_fits_no_role(side: int):
    maps = ["d0, d2, d3", "d2, d1", "d0, d1"] if side == 0 else ["d0, d2", "d2, d3, d1", "d0, d1"]
    assert _roles(maps, "pprr", ["3x5x2", "5x4"] if side == 0 else ["3x5", "5x2x4"], "3x4") is None


def test_a_reduction_is_no_contraction():
    body = "%s = arith.addf %a1, %a0 : f32\n linalg.yield %s : f32"
    assert _roles(["d0, d1", "d0"], "pr", ["3x5"], "3", body) is None
