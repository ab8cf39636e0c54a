"""Resizing: each output position reads the input at places computed while reading the model.

Places and weights per axis are tables of constants: nearest reads one place, linear two, cubic four. An axis that grows
by a whole factor under nearest is a view instead: the element repeats. For symbolic sizes the tables are computed when
the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.resampling import Positions, Resampling, coordinates_of, nearest_positions, taps
from fuseline.frontends.onnx.ops.symbolic_resampling import SymbolicAxis, scaled_size
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim, floor_div, mul

MOST_TAPS = 16
"""Wider filters (strong antialiased shrinking) would make bodies of hundreds of ops; they run on the host."""


Table = tuple[Tensor, list[int | None]]
"""Numbers along one axis of the result, and the loop that they follow."""


@onnx_op("Upsample", since=7, in_f32=True)
def upsample(node: OnnxNode) -> Tensor:
    """Before version 10: nearest or linear, asymmetric coordinates. Raises FuselineError: E0107 for a scale that is not
    positive, and an unknown mode."""
    scales = [float(v) for v in (node.attributes["scales"].value if node.has("scales") else node[1].numbers())]
    return _resized(node, scales, None, Resampling(node.text("mode", "nearest"), "asymmetric"))


@onnx_op("Resize", since=10, in_f32=True)
def resize_v10(node: OnnxNode) -> Tensor:
    """Version 10: scales only, asymmetric coordinates. Raises FuselineError: E0107 as `upsample` does."""
    return _resized(
        node, [float(v) for v in node[1].numbers()], None, Resampling(node.text("mode", "nearest"), "asymmetric")
    )


@onnx_op("Resize", since=11, in_f32=True)
def resize(node: OnnxNode) -> Tensor:
    """Scales or sizes, over all axes or those given. Raises FuselineError: E0107 as `upsample` does."""
    x = node[0]
    axes = [normal_axis(a, x.rank) for a in node.integers("axes")] or list(range(x.rank))
    given, sizes_input = node.get(2), node.get(3)
    scales: list[float | None] = [1.0] * x.rank
    sizes: list[Dim] | None = None
    if sizes_input is not None and sizes_input.dims != (0,):
        scales, sizes = _from_sizes(node, x, axes, sizes_input)
    elif given is not None:
        for axis, scale in zip(axes, given.numbers().reshape(-1), strict=True):
            scales[axis] = float(scale)
    return _resized(node, scales, sizes, _resampling(node, axes))


def _resampling(node: OnnxNode, axes: Sequence[int]) -> Resampling:
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    roi = None
    if coordinates == "tf_crop_and_resize":
        bounds = [float(v) for v in node[1].numbers().reshape(-1)]
        roi = {axis: (bounds[i], bounds[i + len(axes)]) for i, axis in enumerate(axes)}
    return Resampling(
        node.text("mode", "nearest"),
        coordinates,
        node.text("nearest_mode", "round_prefer_floor"),
        node.number("cubic_coeff_a", -0.75),
        bool(node.integer("exclude_outside")),
        bool(node.integer("antialias")),
        node.number("extrapolation_value", 0.0),
        roi,
    )


def _from_sizes(node: OnnxNode, x: Tensor, axes: Sequence[int], wanted: Tensor) -> tuple[list[float | None], list[Dim]]:
    """The scale of each axis, None where only the run tells, and its new size."""
    sizes, scales = list(x.dims), cast("list[float | None]", [1.0] * x.rank)
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    ratios = [_ratio(size, x.dims[axis]) for axis, size in zip(axes, wanted.sizes(), strict=True)]
    if policy == "stretch":
        for axis, size, ratio in zip(axes, wanted.sizes(), ratios, strict=True):
            scales[axis], sizes[axis] = ratio, size
        return scales, sizes
    known_ratios = [ratio for ratio in ratios if ratio is not None]
    if len(known_ratios) < len(ratios):
        raise NoNativeLowering("symbolic-resize", f"symbolic sizes, {policy}")
    ratio = {"not_larger": min, "not_smaller": max}[policy](known_ratios)
    for axis in axes:
        scales[axis], sizes[axis] = ratio, int(np.floor(ratio * static_size(sizes[axis]) + 0.5))
    return scales, sizes


def _ratio(new: Dim, old: Dim) -> float | None:
    """How many times larger `new` is, None where that depends on symbols."""
    if isinstance(new, int) and isinstance(old, int):
        return new / old
    whole = floor_div(new, old) if old != 0 else 0
    return float(whole) if isinstance(whole, int) and mul(old, whole) == new else None


def _resized(node: OnnxNode, scales: Sequence[float | None], sizes: list[Dim] | None, how: Resampling) -> Tensor:
    x = node[0]
    filled = 0 not in x.dims and 0 not in (sizes or ())
    if any(scale is not None and (not isfinite(scale) or (scale <= 0 and filled)) for scale in scales):
        raise FuselineError("E0107", f"scales {list(scales)} are not all positive", node=node.label)
    crop = how.roi or {}
    changed = [
        a
        for a, scale in enumerate(scales)
        if scale != 1.0 or (sizes is not None and sizes[a] != x.dims[a]) or crop.get(a, (0, 1)) != (0, 1)
    ]
    if how.mode not in ("nearest", "linear", "cubic"):
        raise FuselineError("E0107", f"resize mode {how.mode!r} is unknown", hint="nearest, linear or cubic")
    if not changed:
        return x
    ends = {axis: sizes[axis] if sizes is not None else _scaled(x.dims[axis], scales[axis]) for axis in changed}
    if any(not isinstance(size, int) for axis in changed for size in (x.dims[axis], ends[axis])):
        return _resized_symbolic(
            node, x, [SymbolicAxis(node, how, axis, x.dims[axis], ends[axis], scales[axis]) for axis in changed], how
        )
    old, new = ({axis: static_size(size[axis]) for axis in changed} for size in (x.dims, ends))
    ratios = {axis: scale for axis, scale in enumerate(scales) if axis in new and scale is not None}
    return _resized_static(node, x, how, old, new, ratios)


def _scaled(size: Dim, scale: float | None) -> Dim:
    assert scale is not None
    return int(np.floor(size * scale)) if isinstance(size, int) else scaled_size(size, scale)


def _resized_static(
    node: OnnxNode, x: Tensor, how: Resampling, old: dict[int, int], new: dict[int, int], scales: dict[int, float]
) -> Tensor:
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


# -- nearest -----------------------------------------------------------------------------------------------------------


def _nearest(node: OnnxNode, x: Tensor, tables: dict[int, Positions]) -> Tensor:
    factors = {axis: _factor(table, static_size(x.dims[axis])) for axis, table in tables.items()}
    if all(factors.values()):
        return _repeated(node, x, factors)
    return _read_nearest(node, x, tables)


def _factor(table: Positions, old: int) -> int:
    """How often each of `old` elements repeats, 0 where the table is no repetition."""
    factor = len(table) // old if old else 0
    return factor if np.array_equal(table, np.repeat(np.arange(old), factor)) else 0


def _repeated(node: OnnxNode, x: Tensor, factors: dict[int, int]) -> Tensor:
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
    return _read_at(node, x, {axis: _table(axis, positions) for axis, positions in tables.items()})


def _read_at(node: OnnxNode, x: Tensor, tables: dict[int, Table]) -> Tensor:
    axes = list(tables)
    dims = [tables[axis][0].dims[0] if axis in tables else size for axis, size in enumerate(x.dims)]

    def position(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(axes, elements, strict=True))
        return [s.as_index(b, found[axis]) if axis in found else s.loop_index(b, axis) for axis in range(x.rank)]

    return gather_at(node, x, list(tables.values()), dims, position)


# -- linear and cubic --------------------------------------------------------------------------------------------------


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
    return _between(node, x, axis, tables)


def _between(node: OnnxNode, x: Tensor, axis: int, tables: Sequence[Table]) -> Tensor:
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
    return _weighted(node, x, axis, tables)


def _weighted(node: OnnxNode, x: Tensor, axis: int, tables: Sequence[Table]) -> Tensor:
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


# -- symbolic sizes ----------------------------------------------------------------------------------------------------


def _resized_symbolic(node: OnnxNode, x: Tensor, axes: Sequence[SymbolicAxis], how: Resampling) -> Tensor:
    if how.exclude_outside or how.antialias:
        raise NoNativeLowering("symbolic-resize", "weights that sum up to one only with their neighbours")
    if how.mode == "nearest":
        factors = {item.axis: _whole_factor(item, how) for item in axes}
        if all(factors.values()):
            return _repeated(node, x, factors)
        return _read_at(node, x, {item.axis: (item.nearest(), [item.axis]) for item in axes})
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    for item in axes:
        if how.mode == "linear":
            x = _between(node, x, item.axis, [(table, [item.axis]) for table in item.linear(x.dtype)])
        else:
            positions, weights = item.cubic(x.dtype)
            x = _weighted(node, x, item.axis, [(table, [item.axis]) for table in (*positions, *weights)])
    return x


def _whole_factor(item: SymbolicAxis, how: Resampling) -> int:
    """How often each element repeats whatever the size is, 0 where that depends on it."""
    if item.scale is None or not item.scale.is_integer() or how.coordinates in ("align_corners", "tf_crop_and_resize"):
        return 0
    sample = 8
    at = coordinates_of(how, item.axis, sample, int(sample * item.scale), item.scale)
    return _factor(nearest_positions(at, sample, how.rounding(item.scale)), sample)
