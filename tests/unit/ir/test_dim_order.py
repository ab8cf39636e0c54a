"""`never_less` is right about every pair it is sure of, and sure of windows, quotients and extremes."""

from __future__ import annotations

import itertools

import pytest

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.dim_order import never_less

H, W = d.symbol("h"), d.symbol("w", 0)
VALUES = [{"h": h, "w": w} for h, w in itertools.product(range(1, 14), range(9))]
HALF, THIRD = d.floor_div(H, 2), d.floor_div(d.add(W, 1), 3)

SURE: list[tuple[Dim, Dim]] = [
    (H, d.mul(2, HALF)),
    (d.add(d.mul(2, HALF), 1), H),
    (d.add(H, 2), d.add(d.mul(2, d.floor_div(d.sub(H, 1), 2)), 3)),
    (d.add(d.mul(4, HALF), d.mul(3, THIRD)), d.sub(d.add(d.mul(2, H), W), 3)),
    (d.maximum(H, W), W),
    (W, d.minimum(H, W)),
    (d.add(H, W), d.maximum(H, W)),
    (d.minimum(d.add(H, 3), d.add(W, 4)), 4),
]
NOT_SO: list[tuple[Dim, Dim]] = [
    (d.mul(2, HALF), H),
    (H, d.add(d.mul(2, HALF), 1)),
    (d.mul(3, HALF), H),
    (d.minimum(H, W), W),
    (H, W),
]


@pytest.mark.parametrize(("left", "right"), SURE)
def test_it_is_found_out(left: Dim, right: Dim):
    assert never_less(left, right)
    assert all(d.evaluate(left, values) >= d.evaluate(right, values) for values in VALUES)


@pytest.mark.parametrize(("left", "right"), NOT_SO)
def test_it_does_not_hold(left: Dim, right: Dim):
    assert not never_less(left, right)
    assert any(d.evaluate(left, values) < d.evaluate(right, values) for values in VALUES)


def _found(count: int, kind: str) -> Dim:
    """How many a detector finds in `count` classes, at most 300 in each (or at least 2)."""
    numbers = [d.symbol(f"n{i}", 0) for i in range(count)]
    one = (lambda n: d.minimum(n, 300)) if kind == "min" else (lambda n: d.maximum(n, d.add(W, 2)))
    total: Dim = 0
    for number in numbers:
        total = d.add(total, one(number))
    return total


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("count", [3, 91, 200])
def test_sums_of_many_extremes_are_answered(count: int, kind: str):
    total = _found(count, kind)
    assert never_less(d.add(total, H), d.mul(2, HALF))  # one term replaced among all of them
    assert not never_less(d.minimum(total, d.sub(H, 9)), d.sub(1, d.minimum(0, d.sub(total, H))))
