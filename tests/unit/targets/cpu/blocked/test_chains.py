"""Chains of products and row reductions as one kernel, against NumPy: static and symbolic sizes, odd ones above all."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import SSAValue

from fuseline.ir.build import Body, identity_map
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.family import Policy
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Array, Runner, arrays_for, assert_close

from .programs import (
    attention,
    expected_attention,
    expected_gate_and_up,
    expected_row_norm,
    expected_softmax,
    gate_and_up,
    product_and_norm,
    row_norm,
)
from .run import check


def normed(a: Array, b: Array, bias: Array, residual: Array) -> tuple[Array, Array]:
    total = a.astype(np.float64) @ b + bias + residual
    return expected_row_norm(total), total


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 3), (7, 33, 9), (13, 16, 8), (197, 192, 64), (128, 96, 40)])
def test_a_product_and_a_row_norm(m: int, n: int, k: int, constant: bool):
    check(product_and_norm(m, n, k, constant=constant), lambda *a: normed(*a)[:1])


def test_a_value_that_is_a_result_too_is_read_back():
    plans = check(product_and_norm(37, 24, 9, constant=True, keeps_sum=True), normed)
    assert all(plan.notes["scratch"] == 0 or "scratch" in plan.notes for plan in plans)


@pytest.mark.parametrize("m", [1, 5, 64, 130])
def test_rows_known_at_run_time(m: int):
    check(product_and_norm("m", 24, 9, constant=True, keeps_sum=True), normed, {"m": m}, threads=(2,))


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("heads_last", [True, False])
@pytest.mark.parametrize(
    ("heads", "queries", "keys", "depth"), [([3], 7, 11, 5), ([2], 65, 64, 32), ([1], 1, 40, 16), ([3, 2], 21, 35, 8)]
)
def test_attention(heads: list[int], queries: int, keys: int, depth: int, heads_last: bool, masked: bool):
    view = attention(heads, queries, keys, depth, heads_last=heads_last, masked=masked)
    check(view, lambda *a: [expected_attention(a, heads_last=heads_last)])


@pytest.mark.parametrize("queries", [1, 13, 70])
@pytest.mark.parametrize("heads_last", [True, False])
def test_attention_with_queries_and_heads_known_at_run_time(queries: int, heads_last: bool):
    view = attention(["h"], "s", 19, 8, heads_last=heads_last, masked=True)
    check(view, lambda *a: [expected_attention(a, heads_last=heads_last)], {"s": queries, "h": 3}, threads=(1, 8))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 40, 9), (19, 48, 17), (70, 200, 12)])
def test_gate_and_up(m: int, n: int, k: int, constant: bool):
    check(gate_and_up(m, n, k, constant=constant), lambda *a: [expected_gate_and_up(*a)])


@pytest.mark.parametrize("m", [1, 7, 100])
def test_gate_and_up_of_rows_known_at_run_time(m: int):
    check(gate_and_up("m", 40, 16, constant=True), lambda *a: [expected_gate_and_up(*a)], {"m": m}, threads=(2,))


@pytest.mark.parametrize("m", [37, "m"])
def test_loops_keep_their_numbers_inside_a_block(m: int | str):
    """A causal mask made of the loops themselves: row and column count from the start of the tensor, not of the
    block."""
    n, k = 41, 6
    p = Program((m, k), (k, n))

    def causal(b: Body) -> SSAValue:
        row, column = (b.op(linalg.ops.IndexOp, loop) for loop in (0, 1))
        later = b.op(arith.CmpiOp, column, row, "sgt")
        return b.op(arith.SelectOp, later, b.constant(-1e30, p.element), b.args[0])

    masked = p.elementwise([p.matmul(p.x[0], p.x[1])], p.empty(m, n), causal, [identity_map(2)] * 2)

    def expected(a: Array, b: Array) -> list[Array]:
        later = np.arange(n) > np.arange(37)[:, None]
        return [expected_softmax(np.where(later, -1e30, a.astype(np.float64) @ b))]

    plans = check(p.dispatch(p.softmax(masked)), expected, {"m": 37} if m == "m" else None)
    assert plans[-1].notes["block"] != "all"


def test_a_gather_from_an_argument_is_read_whole():
    """Rows of a table chosen by the loop's own number, in the middle of a chain."""
    m, n, k = 23, 12, 5
    p = Program((m, k), (k, n), (m, n))

    def picked(b: Body) -> SSAValue:
        row, column = (b.op(linalg.ops.IndexOp, loop) for loop in (0, 1))
        last = b.op(arith.ConstantOp, IntegerAttr(m - 1, IndexType()))
        turned = b.op(arith.SubiOp, last, row)
        return b.op(arith.AddfOp, b.args[0], b.op(tensor.ExtractOp, p.x[2], [turned, column], p.element))

    y = p.elementwise([p.matmul(p.x[0], p.x[1])], p.empty(m, n), picked, [identity_map(2)] * 2)
    plans = check(
        p.dispatch(row_norm(p, y, n)), lambda a, b, table: [expected_row_norm(a.astype(np.float64) @ b + table[::-1])]
    )
    assert plans[-1].notes["block"] != "all"


@pytest.mark.parametrize("m", [23, 61, "m"])
def test_elements_of_a_row_that_the_block_made_are_picked_by_its_own_number(m: int | str):
    """The row's number counts from the start of the block there, and of the tensor in an argument."""
    n, k, rows = (*(int(size) for size in RNG.integers(3, 40, 2)), 61 if m == "m" else int(m))
    p = Program((m, k), (k, n), (m, n))
    product = p.matmul(p.x[0], p.x[1])

    def picked(b: Body) -> SSAValue:
        row, column = (b.op(linalg.ops.IndexOp, loop) for loop in (0, 1))
        last = b.op(arith.ConstantOp, IntegerAttr(n - 1, IndexType()))
        turned = b.op(arith.SubiOp, last, column)
        mine, other = (b.op(tensor.ExtractOp, table, [row, turned], p.element) for table in (product, p.x[2]))
        return b.op(arith.AddfOp, mine, other)

    y = p.elementwise([product], p.empty(m, n), picked, [identity_map(2)] * 2)
    plans = check(
        p.dispatch(row_norm(p, y, n)),
        lambda a, b, table: [expected_row_norm((a.astype(np.float64) @ b)[:, ::-1] + table[:, ::-1])],
        {"m": rows} if m == "m" else None,
    )
    assert plans[-1].notes["block"] != "all"


def test_no_access_leaves_its_buffer():
    """By the kernel IR's evaluator, which checks each."""
    view = attention([2], 9, 13, 5, heads_last=True, masked=True)
    run = Runner(BlockedFamily(Policy(threads=8)), view)
    arrays = arrays_for(view)
    assert_close(run.evaluated(*arrays)[0], expected_attention(arrays, heads_last=True), bits=15)


def test_rows_read_back_from_a_result_are_reduced_along_memory():
    """The sum of every row, of a value that is a result: lanes run along the row, not across rows."""
    m, n, k = 197, 192, 8
    p = Program((m, k), (k, n))
    y = p.matmul(p.x[0], p.x[1])
    plans = check(
        p.dispatch(p.reduce(y), y),
        lambda a, b: [(a.astype(np.float64) @ b).sum(1), a.astype(np.float64) @ b],
        threads=(2, 8),
    )
    assert [plan.notes["units"] for plan in plans] == ["contraction+rows"] * 2
