"""Which values are in memory by the time an op reads them."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.passes.layout.rewriting.stored_values import MOST_OPS_BACK, is_stored_before
from tests.unit.passes.fusion.programs import Program


def _op(value: SSAValue) -> Operation:
    assert isinstance(value, OpResult)
    return value.op


@pytest.mark.parametrize("links", [0, 5, MOST_OPS_BACK + 1])
def test_a_residual_connection_over_a_root(links: int) -> None:
    """Found through elementwise ops on both sides of the root, a bounded number of them."""
    p = Program((4, 8), (8, 8))
    x = p.unary(p.x[0])
    y = p.matmul(p.unary(x), p.x[1])
    for _ in range(links):
        y = p.unary(y)
    assert is_stored_before(x, _op(p.binary(y, x))) == (links <= MOST_OPS_BACK)


def test_a_diamond_without_a_root_may_be_one_dispatch() -> None:
    p = Program((4, 8))
    x = p.unary(p.x[0])
    assert not is_stored_before(x, _op(p.binary(p.unary(x), x)))


def test_the_root_must_lie_between() -> None:
    p = Program((4, 8), (8, 8))
    x = p.matmul(p.x[0], p.x[1])
    assert not is_stored_before(x, _op(p.binary(p.unary(x), x)))
    other = p.matmul(p.x[0], p.x[1])
    assert not is_stored_before(x, _op(p.binary(other, x)))
