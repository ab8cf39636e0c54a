"""How the evaluator reads arrays through maps: as views where a map is linear, element by element where it divides."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, TensorType, f32, i64
from xdsl.ir.affine import AffineMap

from fuseline.analysis.evaluation.access import loop_view
from fuseline.analysis.evaluation.constants import integers_of
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
