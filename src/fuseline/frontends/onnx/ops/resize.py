"""Resizing: each output position reads the input at places computed while reading the model.

Places and weights per axis are tables of constants: nearest reads one place, linear two, cubic four. An axis that grows by a whole factor under
nearest is a view instead: the element repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.resampling import Places, Resampling, coordinates_of, nearest_places, taps
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim, mul

MOST_TAPS = 16
"""Wider filters (strong antialiased shrinking) would make bodies of hundreds of ops; they run on the host."""


@onnx_op("Upsample", since=7)
def upsample(node: OnnxNode) -> Tensor:
    """Before version 10: nearest or linear, asymmetric coordinates."""
    scales = [float(v) for v in (node.attributes["scales"].value if node.has("scales") else node[1].numbers())]
    return _resized(node, scales, None, Resampling(node.text("mode", "nearest"), "asymmetric"))


@onnx_op("Resize", since=10)
def resize_v10(node: OnnxNode) -> Tensor:
    """Version 10: scales only, asymmetric coordinates."""
    return _resized(node, [float(v) for v in node[1].numbers()], None, Resampling(node.text("mode", "nearest"), "asymmetric"))


@onnx_op("Resize", since=11)
def resize(node: OnnxNode) -> Tensor:
    """Scales or sizes, over all axes or those given."""
    x = node[0]
    axes = [normal_axis(a, x.rank) for a in node.integers("axes")] or list(range(x.rank))
    given, sizes_input = node.get(2), node.get(3)
    scales: list[float] = [1.0] * x.rank
    sizes: list[int] | None = None
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


def _from_sizes(node: OnnxNode, x: Tensor, axes: Sequence[int], wanted: Tensor) -> tuple[list[float], list[int]]:
    sizes, scales = [_number(size) for size in x.dims], [1.0] * x.rank
    ratios = [_number(size) / sizes[axis] for axis, size in zip(axes, wanted.sizes(), strict=True)]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    for axis, size, ratio in zip(axes, wanted.sizes(), ratios, strict=True):
        scales[axis] = {"stretch": ratio, "not_larger": min(ratios), "not_smaller": max(ratios)}[policy]
        sizes[axis] = _number(size) if policy == "stretch" else int(np.floor(scales[axis] * sizes[axis] + 0.5))
    return scales, sizes


def _number(size: Dim) -> int:
    if not isinstance(size, int):
        raise NoNativeLowering("symbolic-resize", "a symbolic size is resized")
    return size


def _resized(node: OnnxNode, scales: list[float], sizes: list[int] | None, how: Resampling) -> Tensor:
    x = node[0]
    crop = how.roi or {}
    changed = [a for a, scale in enumerate(scales) if scale != 1.0 or (sizes is not None and sizes[a] != x.dims[a]) or crop.get(a, (0, 1)) != (0, 1)]
    if how.mode not in ("nearest", "linear", "cubic"):
        raise FuselineError("E0107", f"resize mode {how.mode!r} is unknown", hint="nearest, linear or cubic")
    if not changed:
        return x
    if any(not isinstance(x.dims[axis], int) for axis in changed):
        return _repeated_symbolic(node, x, {axis: scales[axis] for axis in changed}, sizes, how)
    old = {axis: static_size(x.dims[axis]) for axis in changed}
    new = {axis: sizes[axis] if sizes is not None else int(np.floor(old[axis] * scales[axis])) for axis in changed}
    at = {axis: coordinates_of(how, axis, old[axis], new[axis], scales[axis]) for axis in changed}
    if how.mode == "nearest":
        out = _nearest(node, x, {axis: nearest_places(at[axis], old[axis], how.nearest) for axis in changed})
    elif is_float(x.dtype):
        out = _interpolated(node, x, how, at, {axis: scales[axis] for axis in changed})
    else:
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    if how.coordinates != "tf_crop_and_resize":
        return out
    return _outside_replaced(node, out, {axis: (at[axis] >= 0) & (at[axis] <= old[axis] - 1) for axis in changed}, how.extrapolation)


# -- nearest ----------------------------------------------------------------------------------------------------------------------


def _nearest(node: OnnxNode, x: Tensor, tables: dict[int, Places]) -> Tensor:
    factors = {axis: _factor(table, static_size(x.dims[axis])) for axis, table in tables.items()}
    if all(factors.values()):
        return _repeated(node, x, factors)
    return _read_nearest(node, x, tables)


def _factor(table: Places, old: int) -> int:
    """How often each of `old` elements repeats, 0 where the table is no repetition."""
    factor = len(table) // old if old else 0
    return factor if np.array_equal(table, np.repeat(np.arange(old), factor)) else 0


def _repeated_symbolic(node: OnnxNode, x: Tensor, scales: dict[int, float], sizes: list[int] | None, how: Resampling) -> Tensor:
    """Whole factors under nearest repeat elements whatever the size is; other ways to resize a symbolic size have no table."""
    if how.mode != "nearest" or sizes is not None or how.coordinates in ("align_corners", "tf_crop_and_resize"):
        raise NoNativeLowering("symbolic-resize", f"{how.mode}, {how.coordinates}")
    sample = 8
    factors: dict[int, int] = {}
    for axis, scale in scales.items():
        at = coordinates_of(how, axis, sample, int(sample * scale), scale)
        factors[axis] = _factor(nearest_places(at, sample, how.nearest), sample) if scale.is_integer() else 0
    if not all(factors.values()):
        raise NoNativeLowering("symbolic-resize", f"scales {sorted(set(scales.values()))}")
    return _repeated(node, x, factors)


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


def _table(axis: int, values: NDArray[np.generic]) -> tuple[Tensor, list[int | None]]:
    return known(np.ascontiguousarray(values), name="resize_table"), [axis]


def _read_nearest(node: OnnxNode, x: Tensor, tables: dict[int, Places]) -> Tensor:
    axes = list(tables)
    dims = [len(tables[axis]) if axis in tables else size for axis, size in enumerate(x.dims)]

    def place(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(axes, elements, strict=True))
        return [s.as_index(b, found[axis]) if axis in found else s.loop_index(b, axis) for axis in range(x.rank)]

    return gather_at(node, x, [_table(axis, tables[axis]) for axis in axes], dims, place)


# -- linear and cubic -------------------------------------------------------------------------------------------------------------


def _interpolated(node: OnnxNode, x: Tensor, how: Resampling, at: dict[int, NDArray[np.float64]], scales: dict[int, float]) -> Tensor:
    """One axis after the other: the weights are products of weights per axis."""
    for axis, coordinates in at.items():
        places, weights = taps(how, coordinates, static_size(x.dims[axis]), scales[axis])
        if x.dims[axis] == 1 and np.allclose(weights.sum(axis=1), 1):
            x = _spread(node, x, axis, len(places))
            continue
        if places.shape[1] > MOST_TAPS:
            raise NoNativeLowering("resize-taps", f"{places.shape[1]} elements for each output")
        between = places.shape[1] == 2 and not how.exclude_outside
        x = _read_linear(node, x, axis, places, weights[:, 1]) if between else _read_weighted(node, x, axis, places, weights)
    return x


def _spread(node: OnnxNode, x: Tensor, axis: int, size: int) -> Tensor:
    """An only element along one axis, `size` times: there is nothing to weigh it against."""
    wide = _with_size(x, axis, size)
    return result(node.ssa(broadcast_to(x, wide)), wide, x.dtype)


def _read_linear(node: OnnxNode, x: Tensor, axis: int, places: Places, share: NDArray[np.float64]) -> Tensor:
    """Between two places along one axis: `a + (b - a) * share`."""
    value = node.ssa(x)

    def body(b: Body, left: SSAValue, right: SSAValue, weight: SSAValue) -> SSAValue:
        first, second = (_element(b, value, axis, x.rank, index) for index in (left, right))
        return b.op(arith.AddfOp, first, b.op(arith.MulfOp, b.op(arith.SubfOp, second, first), weight))

    tables = [_table(axis, places[:, 0]), _table(axis, places[:, 1]), _table(axis, share.astype(x.dtype))]
    return mapped(node, tables, _with_size(x, axis, len(places)), x.dtype, body)


def _read_weighted(node: OnnxNode, x: Tensor, axis: int, places: Places, weights: NDArray[np.float64]) -> Tensor:
    """The weighted sum of several places along one axis."""
    value, count = node.ssa(x), places.shape[1]

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        terms = [b.op(arith.MulfOp, _element(b, value, axis, x.rank, elements[i]), elements[count + i]) for i in range(count)]
        total = terms[0]
        for term in terms[1:]:
            total = b.op(arith.AddfOp, total, term)
        return total

    tables = [_table(axis, places[:, i]) for i in range(count)] + [_table(axis, weights[:, i].astype(x.dtype)) for i in range(count)]
    return mapped(node, tables, _with_size(x, axis, len(places)), x.dtype, body)


def _with_size(x: Tensor, axis: int, size: int) -> list[Dim]:
    return [size if i == axis else dim for i, dim in enumerate(x.dims)]


def _element(b: Body, value: SSAValue, axis: int, rank: int, index: SSAValue) -> SSAValue:
    places = [s.as_index(b, index) if i == axis else s.loop_index(b, i) for i in range(rank)]
    return b.op(tensor.ExtractOp, value, places, element_of(value))


def _outside_replaced(node: OnnxNode, x: Tensor, inside: dict[int, NDArray[np.bool_]], value: float) -> Tensor:
    """`value` where any axis was read outside the input."""
    partial = [axis for axis, flags in inside.items() if not flags.all()]
    if not partial:
        return x

    def body(b: Body, element: SSAValue, *flags: SSAValue) -> SSAValue:
        for flag in flags:
            element = s.select(b, flag, element, b.constant(value, mlir_element(x.dtype)))
        return element

    return mapped(node, [(x, list(range(x.rank))), *(_table(axis, inside[axis]) for axis in partial)], x.dims, x.dtype, body)
