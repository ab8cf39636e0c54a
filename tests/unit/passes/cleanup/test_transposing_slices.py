"""Slices that a concat puts together as a transposition would: the forms that fold, with the same values, and those
that stay."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import tensor
from xdsl.dialects.linalg.ops import TransposeOp

from fuseline.analysis.structured import producer_of
from fuseline.ir.build import shape_of
from fuseline.ir.fast import attributes
from fuseline.passes.cleanup.folds.transposing_slices import fold_transposing_slices
from tests.unit.passes.cleanup.test_slice_folds import same

Places = tuple[int, int, int]
"""Offset, size and stride."""


def _concat(places: list[Places], size: int, sources: str = "", axis: int = 1) -> Any:
    """What becomes of a concat, along `axis`, of slices of `%x`, or of the arguments that `sources` names by a
    letter each: of 3 elements, 2 along the innermost dimension, where it is not sliced."""
    sources = sources or "x" * len(places)
    shape = [3, 3, 2]
    text, types = "", list[str]()
    for i, ((offset, count, stride), source) in enumerate(zip(places, sources, strict=True)):
        boxes = {"o": [0, 0, 0], "n": list(shape), "s": [1, 1, 1]}
        boxes["o"][axis], boxes["n"][axis], boxes["s"][axis] = offset, count, stride
        types.append(_type(boxes["n"]))
        whole = _type(_with(shape, axis, size))
        text += (
            f"%p{i} = tensor.extract_slice %{source}{boxes['o']} {boxes['n']} {boxes['s']} : {whole} to {types[-1]}\n  "
        )
    result = _type(_with(shape, axis, sum(count for _, count, _ in places)))
    names = ", ".join(f"%p{i}" for i in range(len(places)))
    text += f"%r = tensor.concat dim({axis}) {names} : ({', '.join(types)}) -> {result}"
    arguments = ", ".join(f"%{name}: {_type(_with(shape, axis, size))}" for name in sorted(set(sources)))
    return same(fold_transposing_slices, text, arguments, result)


def _with(shape: list[int], axis: int, size: int) -> list[int]:
    return [size if i == axis else extent for i, extent in enumerate(shape)]


def _type(shape: list[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def _order(found: Any) -> tuple[int, ...]:
    """How the axes are turned below the reshape `found`."""
    assert isinstance(found, tensor.CollapseShapeOp)
    moved = producer_of(found.src)
    assert isinstance(moved, TransposeOp)
    return attributes.values(moved.permutation)


@pytest.mark.parametrize(("step", "count"), [(2, 3), (3, 2), (4, 5), (12, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_every_so_many_elements(step: int, count: int, axis: int) -> None:
    found = _concat([(first, count, step) for first in range(step)], step * count, axis=axis)
    assert _order(found) == ((1, 0, 2, 3) if axis == 0 else (0, 2, 1, 3))
    wide = shape_of(found.src)
    assert wide[axis : axis + 2] == (step, count)


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 2), (2, 6)])
def test_single_elements(rows: int, columns: int) -> None:
    places = [(row * columns + column, 1, 1) for column in range(columns) for row in range(rows)]
    assert _order(_concat(places, rows * columns)) == (0, 2, 1, 3)


def test_elements_of_several_tensors_in_turn() -> None:
    found = _concat([(0, 1, 1), (0, 1, 1), (1, 1, 1), (1, 1, 1), (2, 1, 1), (2, 1, 1)], 3, sources="xyxyxy")
    assert _order(found) == (0, 2, 1, 3)
    moved = producer_of(found.src)
    assert isinstance(moved, TransposeOp)
    opened = producer_of(moved.inputs[0])
    assert isinstance(opened, tensor.ExpandShapeOp)
    assert isinstance(producer_of(opened.src), tensor.ConcatOp)


@pytest.mark.parametrize(
    ("places", "size"),
    [
        ([(1, 3, 2), (0, 3, 2)], 6),
        ([(0, 2, 3), (1, 2, 3)], 6),
        ([(0, 3, 2), (1, 2, 2)], 5),
        ([(0, 3, 1), (3, 3, 1)], 6),
        ([(0, 3, 2), (0, 3, 2)], 6),
        ([(5, 3, -2), (4, 3, -2)], 6),
        ([(0, 1, 1), (2, 1, 1), (1, 1, 1)], 3),
        ([(0, 3, 2)], 6),
    ],
    ids=["other order", "not all", "uneven", "as it was", "twice", "backwards", "no rows", "one slice"],
)
def test_other_orders_stay(places: list[Places], size: int) -> None:
    assert _concat(places, size) is None


def test_parts_of_other_dimensions_stay() -> None:
    slices = "\n  ".join(
        f"%p{i} = tensor.extract_slice %x[0, {i}, 0] [2, 3, 2] [1, 2, 1] : tensor<4x6x2xf32> to tensor<2x3x2xf32>"
        for i in range(2)
    )
    joined = "%r = tensor.concat dim(1) %p0, %p1 : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x6x2xf32>"
    assert same(fold_transposing_slices, f"{slices}\n  {joined}", "%x: tensor<4x6x2xf32>", "tensor<2x6x2xf32>") is None


def test_a_part_that_is_no_slice_stays() -> None:
    body = """%p = tensor.extract_slice %x[0, 0, 0] [3, 3, 2] [1, 2, 1] : tensor<3x6x2xf32> to tensor<3x3x2xf32>
  %r = tensor.concat dim(1) %p, %y : (tensor<3x3x2xf32>, tensor<3x3x2xf32>) -> tensor<3x6x2xf32>"""
    arguments = "%x: tensor<3x6x2xf32>, %y: tensor<3x3x2xf32>"
    assert same(fold_transposing_slices, body, arguments, "tensor<3x6x2xf32>") is None


def _unknown_rows(whole: str) -> Any:
    slices = "\n  ".join(
        f"%p{i} = tensor.extract_slice %x[0, {i}, 0] [{whole}, 3, 2] [1, 2, 1] : tensor<?x6x2xf32> to tensor<?x3x2xf32>"
        for i in range(2)
    )
    body = f"""%zero = arith.constant 0 : index
  %rows = tensor.dim %x, %zero : tensor<?x6x2xf32>
  {slices}
  %r = tensor.concat dim(1) %p0, %p1 : (tensor<?x3x2xf32>, tensor<?x3x2xf32>) -> tensor<?x6x2xf32>"""
    return same(fold_transposing_slices, body, "%x: tensor<?x6x2xf32>, %n: index", "tensor<?x6x2xf32>")


def test_unknown_sizes_elsewhere() -> None:
    assert _order(_unknown_rows("%rows")) == (0, 2, 1, 3)


def test_a_part_of_unknown_size_stays() -> None:
    assert _unknown_rows("%n") is None


@pytest.mark.parametrize("axis", [1, 2])
def test_the_innermost_dimension_stays(axis: int) -> None:
    shape = _with([3, 1, 1], axis, 6)
    parts = ""
    for i in range(2):
        at, step = _with([0, 0, 0], axis, i), _with([1, 1, 1], axis, 2)
        part = _with([3, 1, 1], axis, 3)
        parts += f"%p{i} = tensor.extract_slice %x{at} {part} {step} : {_type(shape)} to {_type(part)}\n  "
    part = _type(_with([3, 1, 1], axis, 3))
    body = f"{parts}%r = tensor.concat dim({axis}) %p0, %p1 : ({part}, {part}) -> {_type(shape)}"
    assert same(fold_transposing_slices, body, f"%x: {_type(shape)}", _type(shape)) is None
