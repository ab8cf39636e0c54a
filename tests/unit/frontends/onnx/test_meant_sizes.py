"""Which two sizes are taken to be equal, and where one of them may be 1 alone."""

from __future__ import annotations

import pytest

from fuseline.frontends.onnx.meant_sizes import one_alone, taken_equal
from fuseline.ir.dim import Dim, add, ceil_div, mul, sub, symbol

H, OTHER = symbol("h", 1), symbol("other", 1)
WIDE, BROAD = symbol("wide", 2), symbol("broad", 2)
FROM_TWO, LIMITED = symbol("far", 2), symbol("limited", 2, 100)
EVEN = mul(ceil_div(H, 2), 2)


@pytest.mark.parametrize(
    ("left", "right", "meant"),
    [
        (WIDE, BROAD, True),  # neither can be 1
        (WIDE, add(WIDE, 1), False),  # never equal
        (add(WIDE, 1), WIDE, False),
        (H, OTHER, False),  # one may be 1, and nothing relates them
        (H, EVEN, True),  # equal for every even one
        (H, sub(mul(H, 2), 1), False),  # equal at 1 alone, which broadcasts as it is
    ],
)
def test_sizes_that_no_symbol_makes_equal_are_not_meant_to_be(left: Dim, right: Dim, meant: bool) -> None:
    assert taken_equal(left, right) is meant


def test_taken_literally_a_size_of_one_alone_broadcasts() -> None:
    assert taken_equal(H, EVEN) and not taken_equal(H, EVEN, literal=True)
    assert taken_equal(WIDE, BROAD, literal=True)


@pytest.mark.parametrize(
    ("left", "right", "alone"),
    [
        (WIDE, BROAD, False),
        (H, OTHER, True),
        (H, EVEN, True),
        (FROM_TWO, sub(FROM_TWO, 200), True),  # at 201, beyond what is tried
        (LIMITED, sub(LIMITED, 200), False),  # ends before
    ],
)
def test_one_of_two_sizes_may_be_one_alone(left: Dim, right: Dim, alone: bool) -> None:
    assert one_alone(left, right) is alone
    assert one_alone(right, left) is alone
