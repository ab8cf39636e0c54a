"""What lies in memory by the time an op runs, though its rows are those of the op."""

from __future__ import annotations

import pytest
from xdsl.dialects import tensor
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.passes.layout.rewriting.row_component import made_before
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import scope_of


def _op(value: SSAValue) -> Operation:
    assert isinstance(value, OpResult)
    return value.op


def _before(p: Program, made: SSAValue) -> set[Operation]:
    assert isinstance(made, OpResult)
    return made_before(scope_of(p), made, [0])


def test_what_shares_rows_is_not_before() -> None:
    """Products, norms and residual connections in between included."""
    p = Program((6, 4), (4, 4), (4, 4))
    x = p.relu(p.x[0])
    y = p.softmax(p.add(p.matmul(x, p.x[1]), x))
    assert not _before(p, p.matmul(y, p.x[2]))


@pytest.mark.parametrize("reshaped", [False, True])
def test_what_lies_behind_a_reshape_is_before_and_so_is_what_that_is_made_from(reshaped: bool) -> None:
    p = Program((6, 4), (4, 4), (2, 2))
    x = p.relu(p.x[0])
    q = p.matmul(x, p.x[1])
    if reshaped:
        q = p.collapse(p.matmul(p.expand(p.collapse(q), 12, 2), p.x[2]))
        q = p.expand(q, 6, 4)
    y = p.matmul(p.add(q, x), p.x[1])
    before = _before(p, y)
    assert (_op(x) in before) == reshaped
    assert _op(y) not in before and not any(type(op) is tensor.EmptyOp and op.parent is None for op in before)


def test_what_a_root_needs_whole_is_before_and_a_factor_of_a_row_says_nothing() -> None:
    p = Program((6, 4), (4, 6))
    x = p.relu(p.x[0])
    keys = p.matmul(p.x[1], p.relu(x))  # 4 x 4, of all rows
    assert _op(x) in _before(p, p.matmul(x, keys))
    q = Program((6, 4), (4,))
    x = q.relu(q.x[0])
    assert not _before(q, q.bias(x, q.reduce(x, 0), 1))


def test_rows_that_are_read_as_other_loops_are_before() -> None:
    p = Program((6, 6))
    x = p.relu(p.x[0])
    assert _op(x) in _before(p, p.add(x, p.moved(x, [1, 0], 6, 6)))
