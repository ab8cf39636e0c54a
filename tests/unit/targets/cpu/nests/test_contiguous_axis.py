"""The axis along which an operand lies in memory."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineExpr

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.targets.cpu.families.nests.contiguous_axis import contiguous_axis
from tests.graphs.program import Program

D0, D1, D2 = (AffineExpr.dimension(number) for number in range(3))
LOOPS = [10, 20, None]


@pytest.mark.parametrize(
    ("shape", "at", "axis"),
    [
        ((4, 6), [D0, D1], 20),
        ((4, 6), [D1, D0], 10),
        ((4, 1), [D0, D1], 10),
        ((4, 1, 1), [D1, D0, D0], 20),
        ((4, 6), [D0, D1 + 1], None),
        ((4, 6), [D0, AffineExpr.constant(2)], None),
        ((4, 1), [D0, D1 + 1], 10),
        ((4, 6), [D0, D2], None),
        (("n", "m"), [D0, D1], 20),
        ((1, 1), [D0, D1], None),
        ((), [], None),
    ],
)
def test_it_is_that_of_the_last_dimension_longer_than_one(
    shape: tuple[int | str, ...], at: list[AffineExpr], axis: int | None
):
    view = (p := Program(shape)).dispatch(p.x[0])
    assert contiguous_axis(view.shapes, p.x[0], at, LOOPS) == axis


def test_a_coordinate_for_each_dimension_is_asked_for():
    p = Program((4, 6))
    with pytest.raises(ValueError, match="zip"):
        contiguous_axis(ShapeAnalysis({}), p.x[0], [], LOOPS)
