"""Flattened operands of contractions: the weight takes the permutation of the dimensions below them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import linalg, tensor
from xdsl.ir import SSAValue

from fuseline.passes.layout.rewriting.flattened import permute_flattened_contraction
from fuseline.passes.layout.rewriting.scope import Scope
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import constant, refuses, same_results, transposed


def _product(p: Program) -> linalg.ops.GenericOp:
    """The last generic."""
    return [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp)][-1]


def _flattened_rows(order: Sequence[int] = (0, 2, 1), groups: Sequence[Sequence[int]] = ((0,), (1, 2))) -> Program:
    p = Program((4, 2, 3))
    flat = p.collapse(transposed(p, p.x[0], *order), groups)
    columns = p.shape(flat)[1]
    assert isinstance(columns, int)
    return p.done(p.matmul(flat, constant(p, columns, 5)))


def _is_flat_argument(value: SSAValue, p: Program) -> bool:
    return isinstance(value.owner, tensor.CollapseShapeOp) and value.owner.src is p.x[0]


def test_the_operand_is_read_as_it_lies() -> None:
    p = _flattened_rows()
    with same_results(p) as scope:
        assert permute_flattened_contraction(scope, _product(p))
    assert _is_flat_argument(_product(p).inputs[0], p)


def test_the_second_operand_may_be_the_flattened_one() -> None:
    p = Program((2, 3, 4))
    flat = p.collapse(transposed(p, p.x[0], 1, 0, 2), [[0, 1], [2]])
    p.done(p.matmul(constant(p, 5, 6), flat))
    with same_results(p) as scope:
        assert permute_flattened_contraction(scope, _product(p))
    assert _is_flat_argument(_product(p).inputs[1], p)


@given(st.permutations([1, 2, 3]))
def test_any_order_inside_the_group(order: list[int]) -> None:
    p = Program((3, 2, 3, 4))
    flat = p.collapse(transposed(p, p.x[0], 0, *order), [[0], [1, 2, 3]])
    p.done(p.matmul(flat, constant(p, 24, 2)))
    with same_results(p) as scope:
        assert permute_flattened_contraction(scope, _product(p)) == (order != [1, 2, 3])


def test_rows_of_unknown_number() -> None:
    p = Program(("n", 2, 3))
    flat = p.collapse(transposed(p, p.x[0], 0, 2, 1), [[0], [1, 2]])
    emit, maps = p.emit, _product(_flattened_rows()).indexing_maps
    init = p.zeros("n", 5, emit=emit)
    p.done(p.multiply_add(flat, constant(p, 6, 5), init, [entry.data for entry in maps], "ppr"))
    with same_results(p) as scope:
        assert permute_flattened_contraction(scope, _product(p))


def _refused(p: Program) -> bool:
    def rewrite(scope: Scope) -> bool:
        return permute_flattened_contraction(scope, _product(p))

    return refuses(p, rewrite)


def test_a_weight_that_the_run_makes_is_left_alone() -> None:
    p = Program((4, 2, 3), (6, 5))
    assert _refused(p.done(p.matmul(p.collapse(transposed(p, p.x[0], 0, 2, 1), [[0], [1, 2]]), p.x[1])))


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_dimensions_that_leave_their_group_are_left_alone(order: tuple[int, int, int]) -> None:
    assert _refused(_flattened_rows(order))


def test_flattened_rows_of_the_result_are_left_alone() -> None:
    """What would move is the result."""
    assert _refused(_flattened_rows((1, 0, 2), ((0, 1), (2,))))


def test_what_is_no_contraction_is_left_alone() -> None:
    p = Program((4, 2, 3))
    flat = p.collapse(transposed(p, p.x[0], 0, 2, 1), [[0], [1, 2]])
    assert _refused(p.done(p.add(flat, constant(p, 4, 6))))
