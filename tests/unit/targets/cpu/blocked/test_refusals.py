"""What the blocked family leaves to others, and how it cuts what it takes."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.families.blocked.dispatch import blocked_dispatch
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.blocked.sub_kernels import sub_kernels_of
from fuseline.targets.cpu.families.family import Plan, Policy, Refusal
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program

from .programs import attention, gate_and_up, product_and_norm, row_norm
from .run import check


def refusal(view: DispatchView, threads: int = 2) -> str:
    answer = BlockedFamily(Policy(threads=threads)).accepts(view, machine())
    assert isinstance(answer, Refusal), answer
    return answer.code


def test_no_root():
    p = Program((4, 9))
    assert refusal(p.dispatch(p.softmax(p.x[0]))) == "no-root"


def test_one_unit():
    p = Program((4, 9), (9, 8), (8,))
    assert refusal(p.dispatch(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1))) == "one-unit"


def test_scratch():
    """One row of the product is more than the scratch holds."""
    n = 3_000_000
    assert refusal(product_and_norm(3, n, 2, constant=False)) == "scratch"
    p = Program(("m", 8), (8, "n"))
    y = p.matmul(p.x[0], p.x[1])
    assert refusal(p.dispatch(row_norm(p, y, 64))) == "scratch"


def test_more_than_the_scratch_should_hold_is_better_than_nothing():
    """A single row of 4.8 MB: rows one by one."""
    plan = BlockedFamily(Policy(threads=1)).accepts(product_and_norm(3, 1_200_000, 2, constant=False), machine())
    assert isinstance(plan, Plan) and plan.notes["block"] == "1"


def test_empty():
    assert refusal(product_and_norm(0, 8, 4, constant=False)) == "empty"


def test_result_moved():
    p = Program((6, 9), (9, 8))
    normed = row_norm(p, p.matmul(p.x[0], p.x[1]), 8)
    assert refusal(p.dispatch(normed, p.slice(normed, [1, 0], [2, 8]))) == "result-moved"


@pytest.mark.parametrize(("view", "members"), [
    (product_and_norm(6, 8, 4, constant=False), [3, 3]),
    (attention([2], 5, 6, 4, heads_last=True, masked=True), [2, 4, 1]),
    (gate_and_up(6, 8, 4, constant=False), [2, 2]),
])  # fmt: skip
def test_units(view: DispatchView, members: list[int]):
    assert [len(sub_kernel.members) for sub_kernel in sub_kernels_of(blocked_dispatch(view))] == members


def test_a_loop_that_some_op_reduces_is_no_part_of_the_grid():
    p = Program((6, 9), (9, 8))
    y = p.matmul(p.x[0], p.x[1])
    dispatch = blocked_dispatch(p.dispatch(p.reduce(y), y))
    assert [dispatch.axes.extents[axis] for axis in dispatch.grid] == [6]


def test_a_value_that_is_read_out_of_step_keeps_its_loops_whole():
    """`y + y^T` needs other rows than its own: one block."""
    p = Program((8, 9), (9, 8))
    y = p.matmul(p.x[0], p.x[1])
    turned = p.add(y, p.moved(y, [1, 0], 8, 8))
    (plan, *_) = check(p.dispatch(row_norm(p, turned, 8)), lambda a, b: [_turned(a, b)])
    assert plan.notes["block"] == "all"


def _turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    y = a.astype(np.float64) @ b
    y = y + y.T
    return y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)
