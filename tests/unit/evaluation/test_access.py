"""How the evaluator reads arrays through maps: as views where a map is linear, element by element where it divides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, TensorType, f32, i64
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.evaluation.access import (
    LoopIndices,
    OutOfBounds,
    evaluate_expression,
    from_loops,
    loop_sizes,
    loop_view,
)
from fuseline.evaluation.constants import integers_of
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

ARRAY = np.arange(24).reshape(4, 6)


@pytest.mark.parametrize(
    ("map_", "sizes", "expected"),
    [
        (AffineMap.from_callable(lambda i, j: (i, j)), (4, 6), ARRAY),
        (AffineMap.from_callable(lambda i, j: (j, i)), (6, 4), ARRAY.T),
        (AffineMap.from_callable(lambda i, j: (i + 1, 2 * j)), (3, 3), ARRAY[1:, ::2]),
        (AffineMap.from_callable(lambda i, j: (i * -1 + 3, j)), (4, 6), ARRAY[::-1]),
        (AffineMap.from_callable(lambda i, j: (0 * i + 2, j)), (5, 6), ARRAY[2:3]),
    ],
)
def test_no_data_moves_for_linear_maps(
    map_: AffineMap, sizes: tuple[int, int], expected: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> None:
    view = loop_view(ARRAY, map_, sizes)
    np.testing.assert_array_equal(view, expected)
    assert np.shares_memory(view, ARRAY)


def test_a_map_that_divides_gathers() -> None:
    view = loop_view(ARRAY, AffineMap.from_callable(lambda i, j: (i // 2, j)), (8, 6))
    np.testing.assert_array_equal(view, ARRAY.repeat(2, 0))


def test_integers_of_constants() -> None:
    numbers = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [2, 2]), [3, -1, 4, 1])
    found = integers_of(numbers, {})
    assert found is not None and sorted(found.reshape(-1).tolist()) == [-1, 1, 3, 4]
    assert integers_of(DenseIntOrFPElementsAttr.from_list(TensorType(f32, [2]), [3.0, 1.0]), {}) is None
    assert integers_of(FloatAttr(1.0, f32), {}) is None


def test_the_resource_that_a_constant_is() -> None:
    constants = "%w = arith.constant dense_resource<held> : tensor<2xi8>\n %c = arith.constant dense<1> : tensor<2xi8>"
    module = parse_module(f"func.func @main() {{\n {constants}\n return\n}}", new_context())
    resource, _ = [op for op in module.walk() if isinstance(op, ConstantOp)]
    held = np.array([5, 7], np.int8)
    assert integers_of(resource.value, {"held": held}) is held
    assert integers_of(resource.value, {}) is None
    assert integers_of(resource.value, {"held": held.astype(np.float32)}) is None


@pytest.mark.parametrize(
    ("map_", "sizes", "places"),
    [
        (AffineMap.from_callable(lambda i, j: (i + 1, j)), (4, 6), "dimension 0 of size 4 is read at 1..4"),
        (AffineMap.from_callable(lambda i, j: (i * -1 + 2, j)), (4, 6), "dimension 0 of size 4 is read at -1..2"),
        (AffineMap.from_callable(lambda i, j: (i, i + j * 2)), (4, 3), "dimension 1 of size 6 is read at 0..7"),
        (AffineMap.from_callable(lambda i, j: (i, j * 2 - i)), (4, 3), "dimension 1 of size 6 is read at -3..4"),
        (AffineMap.from_callable(lambda i, j: (i, 6 + 0 * j)), (4, 3), "dimension 1 of size 6 is read at 6..6"),
        (AffineMap.from_callable(lambda i, j: (i // 2 + 2, j)), (6, 6), "dimension 0 of size 4 is read at 2..4"),
        (AffineMap.from_callable(lambda i, j: (i // 2 - 1, j)), (6, 6), "dimension 0 of size 4 is read at -1..1"),
    ],
)
def test_what_leaves_the_array_is_refused_with_its_places(map_: AffineMap, sizes: tuple[int, int], places: str) -> None:
    with pytest.raises(OutOfBounds, match=places):
        loop_view(ARRAY, map_, sizes)


def test_no_steps_read_nothing_wherever_they_would() -> None:
    assert loop_view(ARRAY, AffineMap.from_callable(lambda i, j: (i + 9, j)), (0, 6)).shape == (0, 6)


def test_a_step_that_is_not_taken_may_be_any() -> None:
    view = loop_view(ARRAY, AffineMap.from_callable(lambda i, j: (i * 2**62 + 1, j)), (1, 6))
    np.testing.assert_array_equal(view, ARRAY[1:2])


D0, D1, S0 = AffineExpr.dimension(0), AffineExpr.dimension(1), AffineExpr.symbol(0)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (D0 + D1 * 3, -7 + 6),
        ((D0 + S0) * 3, -6),
        (D0 // 5, -2),
        (D0.ceil_div(5), -1),
        ((D0 + S0 * 2) % 5, 3),
        (AffineExpr.constant(4) + S0, 9),
    ],
)
def test_expressions_round_down(expression: AffineExpr, expected: int) -> None:
    assert evaluate_expression(expression, [-7, 2], [5]) == expected


@pytest.mark.parametrize(
    ("map_", "expected"),
    [
        (AffineMap.from_callable(lambda i, j: (j, i)), [[1, 3], [2, 4]]),
        (AffineMap.from_callable(lambda i, j: (i * 2, j)), [[1, 2], [0, 0], [3, 4]]),
        (AffineMap.from_callable(lambda i, j: (i * -1 + 1, j)), [[3, 4], [1, 2]]),
        (AffineMap.from_callable(lambda i, j: (i, j + 1)), [[0, 1, 2], [0, 3, 4]]),
        (AffineMap.from_callable(lambda i, j: (i + j,)), [1, 3, 4]),
    ],
)
def test_a_result_lies_where_its_map_says(map_: AffineMap, expected: list[Any]) -> None:
    out = np.zeros_like(np.array(expected))
    np.testing.assert_array_equal(from_loops(np.array([[1, 2], [3, 4]]), map_, (2, 2), out), expected)


@pytest.mark.parametrize(
    ("map_", "places"),
    [
        (AffineMap.from_callable(lambda i, j: (i + 1, j)), "dimension 0 of size 2 is written at 1..2"),
        (AffineMap.from_callable(lambda i, j: (i, j - 1)), "dimension 1 of size 2 is written at -1..0"),
    ],
)
def test_a_result_that_leaves_the_array_is_refused(map_: AffineMap, places: str) -> None:
    with pytest.raises(OutOfBounds, match=places):
        from_loops(np.ones((2, 2)), map_, (2, 2), np.zeros((2, 2)))


def test_operands_agree_on_their_loops() -> None:
    row, both = AffineMap.from_callable(lambda i, j: (j,)), AffineMap.from_callable(lambda i, j: (i, j + 1))
    assert loop_sizes([row, AffineMap.from_callable(lambda i, j: (j, i))], [[5], [5, 3]], 2) == [3, 5]
    with pytest.raises(ValueError, match="loop d1 is 5 by one operand and 4 by another"):
        loop_sizes([row, row], [[5], [4]], 2)
    with pytest.raises(ValueError, match="no operand says how long loop d1 is"):
        loop_sizes([both], [[5, 4]], 2)


def test_coordinates_along_loops() -> None:
    indices = LoopIndices((2, 3))
    assert len(indices) == 2
    assert [part.tolist() for part in indices] == [[[0], [1]], [[0, 1, 2]]]
    assert [part.shape for part in indices[1:]] == [(1, 3)]
