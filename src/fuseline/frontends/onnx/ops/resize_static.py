"""Resizing by factors that are known: each axis is read through tables of positions and weights that are constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.resampling import Positions, Resampling, coordinates_of, nearest_positions, taps
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim, mul

MOST_TAPS = 16
"""Wider filters (strong antialiased shrinking) would make bodies of hundreds of ops; they run on the host."""


Table = tuple[Tensor, list[int | None]]
"""Numbers along one axis of the result, and the loop that they follow."""


def resized_static(
    node: OnnxNode, x: Tensor, how: Resampling, old: dict[int, int], new: dict[int, int], scales: dict[int, float]
) -> Tensor:
    """`x` with `new` sizes for the `old` ones of some axes; `scales` are the factors of those."""
    changed = list(new)
    at = {axis: coordinates_of(how, axis, old[axis], new[axis], scales[axis]) for axis in changed}
    if how.mode == "nearest":
        out = _nearest(
            node, x, {axis: nearest_positions(at[axis], old[axis], how.rounding(scales[axis])) for axis in changed}
        )
    elif is_float(x.dtype):
        out = _interpolated(node, x, how, at, {axis: scales[axis] for axis in changed})
    else:
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    if how.coordinates != "tf_crop_and_resize":
        return out
    return _outside_replaced(
        node, out, {axis: (at[axis] >= 0) & (at[axis] <= old[axis] - 1) for axis in changed}, how.extrapolation
    )


def _nearest(node: OnnxNode, x: Tensor, tables: dict[int, Positions]) -> Tensor:
    factors = {axis: repeat_factor(table, static_size(x.dims[axis])) for axis, table in tables.items()}
    if all(factors.values()):
        return repeated(node, x, factors)
    return _read_nearest(node, x, tables)


def repeat_factor(table: Positions, old: int) -> int:
    """How often each of `old` elements repeats, 0 where the table is no repetition."""
    factor = len(table) // old if old else 0
    return factor if np.array_equal(table, np.repeat(np.arange(old), factor)) else 0


def repeated(node: OnnxNode, x: Tensor, factors: dict[int, int]) -> Tensor:
    """Each element `factor` times: opened with unit axes, broadcast, closed."""
    opened: list[Dim] = []
    wide: list[Dim] = []
    closed: list[Dim] = []
    for axis, size in enumerate(x.dims):
        factor = factors.get(axis, 1)
        opened += [size, 1] if factor > 1 else [size]
        wide += [size, factor] if factor > 1 else [size]
        closed.append(mul(size, factor))
    spread = broadcast_to(reshape(node, x, opened), wide)
    return reshape(node, result(node.ssa(spread), spread.dims, x.dtype), closed)


def _table(axis: int, values: NDArray[np.generic]) -> Table:
    return known(np.ascontiguousarray(values), name="resize_table"), [axis]


def _read_nearest(node: OnnxNode, x: Tensor, tables: dict[int, Positions]) -> Tensor:
    return read_at(node, x, {axis: _table(axis, positions) for axis, positions in tables.items()})


def read_at(node: OnnxNode, x: Tensor, tables: dict[int, Table]) -> Tensor:
    """The element at the position that the table of each axis gives; axes without one stay."""
    axes = list(tables)
    dims = [tables[axis][0].dims[0] if axis in tables else size for axis, size in enumerate(x.dims)]

    def position(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(axes, elements, strict=True))
        return [s.as_index(b, found[axis]) if axis in found else s.loop_index(b, axis) for axis in range(x.rank)]

    return gather_at(node, x, list(tables.values()), dims, position)


def _interpolated(
    node: OnnxNode, x: Tensor, how: Resampling, at: dict[int, NDArray[np.float64]], scales: dict[int, float]
) -> Tensor:
    """One axis after the other: the weights are products of weights per axis."""
    for axis, coordinates in at.items():
        positions, weights = taps(how, coordinates, static_size(x.dims[axis]), scales[axis])
        if x.dims[axis] == 1 and np.allclose(weights.sum(axis=1), 1):
            x = _spread(node, x, axis, len(positions))
            continue
        if positions.shape[1] > MOST_TAPS:
            raise NoNativeLowering("resize-taps", f"{positions.shape[1]} elements for each output")
        between = positions.shape[1] == 2 and not how.exclude_outside
        x = (
            _read_linear(node, x, axis, positions, weights[:, 1])
            if between
            else _read_weighted(node, x, axis, positions, weights)
        )
    return x


def _spread(node: OnnxNode, x: Tensor, axis: int, size: int) -> Tensor:
    """An only element along one axis, `size` times: there is nothing to weigh it against."""
    wide = _with_size(x, axis, size)
    return result(node.ssa(broadcast_to(x, wide)), wide, x.dtype)


def _read_linear(node: OnnxNode, x: Tensor, axis: int, positions: Positions, share: NDArray[np.float64]) -> Tensor:
    """Between two places along one axis: `a + (b - a) * share`."""
    tables = [_table(axis, positions[:, 0]), _table(axis, positions[:, 1]), _table(axis, share.astype(x.dtype))]
    return interpolated_between(node, x, axis, tables)


def interpolated_between(node: OnnxNode, x: Tensor, axis: int, tables: Sequence[Table]) -> Tensor:
    """Between the elements at the first two positions of `tables`: the share of the second is the third table."""
    value = node.ssa(x)

    def body(b: Body, left: SSAValue, right: SSAValue, weight: SSAValue) -> SSAValue:
        first, second = (_element(b, value, axis, x.rank, index) for index in (left, right))
        return b.op(arith.AddfOp, first, b.op(arith.MulfOp, b.op(arith.SubfOp, second, first), weight))

    return mapped(node, tables, _with_size(x, axis, tables[0][0].dims[0]), x.dtype, body)


def _read_weighted(node: OnnxNode, x: Tensor, axis: int, positions: Positions, weights: NDArray[np.float64]) -> Tensor:
    """The weighted sum of several places along one axis."""
    count = positions.shape[1]
    tables = [_table(axis, positions[:, i]) for i in range(count)] + [
        _table(axis, weights[:, i].astype(x.dtype)) for i in range(count)
    ]
    return weighted_sum(node, x, axis, tables)


def weighted_sum(node: OnnxNode, x: Tensor, axis: int, tables: Sequence[Table]) -> Tensor:
    """The first half of `tables` are places, the second their weights."""
    value, count = node.ssa(x), len(tables) // 2

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        terms = [
            b.op(arith.MulfOp, _element(b, value, axis, x.rank, elements[i]), elements[count + i]) for i in range(count)
        ]
        total = terms[0]
        for term in terms[1:]:
            total = b.op(arith.AddfOp, total, term)
        return total

    return mapped(node, tables, _with_size(x, axis, tables[0][0].dims[0]), x.dtype, body)


def _with_size(x: Tensor, axis: int, size: Dim) -> list[Dim]:
    return [size if i == axis else dim for i, dim in enumerate(x.dims)]


def _element(b: Body, value: SSAValue, axis: int, rank: int, index: SSAValue) -> SSAValue:
    positions = [s.as_index(b, index) if i == axis else s.loop_index(b, i) for i in range(rank)]
    return b.op(tensor.ExtractOp, value, positions, element_of(value))


def _outside_replaced(node: OnnxNode, x: Tensor, inside: dict[int, NDArray[np.bool_]], value: float) -> Tensor:
    """`value` where any axis was read outside the input."""
    partial = [axis for axis, flags in inside.items() if not flags.all()]
    if not partial:
        return x

    def body(b: Body, element: SSAValue, *flags: SSAValue) -> SSAValue:
        for flag in flags:
            element = s.select(b, flag, element, b.constant(value, mlir_element(x.dtype)))
        return element

    return mapped(
        node, [(x, list(range(x.rank))), *(_table(axis, inside[axis]) for axis in partial)], x.dims, x.dtype, body
    )
