"""Slices that drop dimensions and slices put in with gaps, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import tensor

from fuseline.passes.cleanup.tensor_ops.slices import expand_extract_slice, expand_insert_slice, groups_of
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run


@given(st.lists(st.tuples(st.sampled_from([1, 1, 2, 3]), st.booleans()), max_size=6))
def test_groups_make_the_slice_the_result(axes: list[tuple[int, bool]]) -> None:
    """Whichever units are dropped: groups are all axes in order, and their products are the sizes that are left."""
    sizes = [size for size, _ in axes]
    reduced = [size for size, kept in axes if kept or size != 1]
    groups = groups_of(sizes, reduced)
    assert [math.prod(sizes[axis] for axis in group) for group in groups] == reduced
    if groups:
        assert [axis for group in groups for axis in group] == list(range(len(sizes)))


EXTRACT = """func.func @main(%x: tensor<4x6x5xf32>, %i: index) -> RESULT {
  %r = tensor.extract_slice %x[%i, 1, 0] [1, 2, 1] [1, 3, 1] : tensor<4x6x5xf32> to RESULT
  return %r : RESULT
}"""


@pytest.mark.parametrize("shape", [(1, 2, 1), (2, 1), (1, 2), (2,)])
def test_a_slice_that_drops_dimensions(shape: tuple[int, ...]) -> None:
    text = EXTRACT.replace("RESULT", f"tensor<{'x'.join(map(str, shape))}xf32>")
    x = numbers(4, 6, 5)
    module = expanded(text, tensor.ExtractSliceOp, expand_extract_slice)
    np.testing.assert_array_equal(run(module, x, 2), x[2:3, 1:7:3, :1].reshape(shape))
    assert ("tensor.collapse_shape" in names(module)) == (len(shape) < 3)


def _insert(source: str, dest: str, where: str) -> str:
    return f"""func.func @main(%s: {source}, %d: {dest}, %i: index) -> {dest} {{
  %r = tensor.insert_slice %s into %d{where} : {source} into {dest}
  return %r : {dest}
}}"""


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_slice_put_in_with_gaps(offset: int, stride: int) -> None:
    text = _insert("tensor<3x2xf32>", "tensor<9x4xf32>", f"[%i, 1] [3, 2] [{stride}, 1]")
    source, dest = numbers(3, 2), numbers(9, 4, seed=4)
    module = expanded(text, tensor.InsertSliceOp, expand_insert_slice)
    expected = dest.copy()
    expected[offset : offset + 3 * stride : stride, 1:3] = source
    np.testing.assert_array_equal(run(module, source, dest, offset), expected)
    assert ("linalg.generic" in names(module)) == (stride != 1)


@pytest.mark.parametrize("size", [1, 4])
def test_a_slice_of_unknown_size_with_gaps(size: int) -> None:
    text = """func.func @main(%s: tensor<?xf32>, %d: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %s, %zero : tensor<?xf32>
  %r = tensor.insert_slice %s into %d[1] [%n] [2] : tensor<?xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}"""
    source, dest = numbers(size), numbers(9, seed=4)
    expected = dest.copy()
    expected[1 : 1 + 2 * size : 2] = source
    module = expanded(text, tensor.InsertSliceOp, expand_insert_slice)
    np.testing.assert_array_equal(run(module, source, dest), expected)


def test_nothing_put_in_leaves_the_destination() -> None:
    text = _insert("tensor<0xf32>", "tensor<4xf32>", "[1] [0] [2]")
    module = expanded(text, tensor.InsertSliceOp, expand_insert_slice)
    dest = numbers(4)
    np.testing.assert_array_equal(run(module, numbers(0), dest, 0), dest)


def test_a_source_of_fewer_dimensions() -> None:
    text = _insert("tensor<2xf32>", "tensor<3x4x2xf32>", "[%i, 3, 0] [1, 1, 2] [1, 1, 1]")
    source, dest = numbers(2), numbers(3, 4, 2, seed=4)
    module = expanded(text, tensor.InsertSliceOp, expand_insert_slice)
    expected = dest.copy()
    expected[1, 3] = source
    np.testing.assert_array_equal(run(module, source, dest, 1), expected)


def test_an_insert_that_nobody_reads_stays() -> None:
    text = """func.func @main(%s: tensor<2xf32>, %d: tensor<8xf32>) -> tensor<8xf32> {
  %r = tensor.insert_slice %s into %d[0] [2] [3] : tensor<2xf32> into tensor<8xf32>
  return %d : tensor<8xf32>
}"""
    assert "linalg.generic" not in names(expanded(text, tensor.InsertSliceOp, expand_insert_slice))
