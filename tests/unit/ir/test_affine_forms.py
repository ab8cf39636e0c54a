"""Maps mean the same with safe divisions, and nothing that they divide is negative."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from fuseline.analysis.map_ranges import position_range
from fuseline.evaluation.access import evaluate_expression
from fuseline.ir import dim as d
from fuseline.ir.affine_forms import affine_form, with_safe_divisions

LOOPS = 2
KINDS = [kind for kind in AffineBinaryOpKind if kind is not AffineBinaryOpKind.Mul]


def random_place(rng: np.random.Generator, depth: int) -> AffineExpr:
    """A random affine expression of two loops."""
    if depth == 0:
        number = AffineConstantExpr(int(rng.integers(-5, 6)))
        return number if rng.random() < 0.3 else AffineDimExpr(int(rng.integers(LOOPS)))
    if rng.random() < 0.3:
        return AffineBinaryOpExpr(
            AffineBinaryOpKind.Mul, random_place(rng, depth - 1), AffineConstantExpr(int(rng.integers(-3, 4)))
        )
    kind = KINDS[int(rng.integers(len(KINDS)))]
    right = (
        random_place(rng, depth - 1) if kind is AffineBinaryOpKind.Add else AffineConstantExpr(int(rng.integers(1, 5)))
    )
    return AffineBinaryOpExpr(kind, random_place(rng, depth - 1), right)


def numerators(expression: AffineExpr) -> list[AffineExpr]:
    if not isinstance(expression, AffineBinaryOpExpr):
        return []
    linear = expression.kind in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)
    return [*([] if linear else [expression.lhs]), *numerators(expression.lhs), *numerators(expression.rhs)]


@pytest.mark.parametrize("seed", range(100))
def test_random_places(seed: int):
    rng = np.random.default_rng(seed)
    position, extents = random_place(rng, 3), [int(rng.integers(1, 6)) for _ in range(LOOPS)]
    loops = list(np.indices(extents))
    wanted = np.broadcast_to(evaluate_expression(position, loops), extents)
    (safe,) = with_safe_divisions(AffineMap(LOOPS, 0, (position,))).results
    np.testing.assert_array_equal(np.broadcast_to(evaluate_expression(safe, loops), extents), wanted)
    assert all(np.min(evaluate_expression(part, loops)) >= 0 for part in numerators(safe))
    assert position_range(position, extents) == (wanted.min(), wanted.max(), True)
    sizes = [d.symbol(f"n{i}") for i in range(LOOPS)]
    found = position_range(position, sizes)
    assert found is not None
    ends = [d.evaluate(end, {f"n{i}": extent for i, extent in enumerate(extents)}) for end in (found.low, found.high)]
    assert ends[0] <= wanted.min() and ends[1] >= wanted.max()
    if found.met:
        assert ends == [wanted.min(), wanted.max()]


def test_what_divides_nothing_stays():
    plain = AffineMap(2, 0, (AffineDimExpr(0), AffineDimExpr(1) + 5))
    assert with_safe_divisions(plain) is plain


@pytest.mark.parametrize(
    "position",
    [
        AffineSymExpr(0),
        AffineBinaryOpExpr(AffineBinaryOpKind.Mul, AffineDimExpr(0), AffineDimExpr(1)),
        AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, AffineDimExpr(0), AffineConstantExpr(0)),
        AffineBinaryOpExpr(AffineBinaryOpKind.Mod, AffineDimExpr(0), AffineConstantExpr(-2)),
        AffineBinaryOpExpr(AffineBinaryOpKind.Mod, AffineDimExpr(0), AffineDimExpr(1)),
    ],
)
def test_what_has_no_form(position: AffineExpr):
    assert affine_form(position) is None
    assert position_range(position, [3, 3]) is None
