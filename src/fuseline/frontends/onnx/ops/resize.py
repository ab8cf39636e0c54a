"""Resizing: each output position reads the input at places computed while reading the model.

Places and weights per axis are tables of constants: nearest reads one place, linear two. An axis that grows by a whole factor under nearest is a
view instead: the element repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float
from fuseline.frontends.onnx.emission import broadcast_to, mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, mul

Table = NDArray[np.int64]


@onnx_op("Upsample", since=7)
def upsample(node: OnnxNode) -> Tensor:
    """Before version 10: nearest or linear, asymmetric coordinates."""
    scales = [float(v) for v in (node.attributes["scales"].value if node.has("scales") else node[1].numbers())]
    return _resized(node, scales, None, node.text("mode", "nearest"), "asymmetric", "floor")


@onnx_op("Resize", since=10)
def resize_v10(node: OnnxNode) -> Tensor:
    """Version 10: scales only, asymmetric coordinates."""
    scales = [float(v) for v in node[1].numbers()]
    return _resized(node, scales, None, node.text("mode", "nearest"), "asymmetric", "floor")


@onnx_op("Resize", since=11)
def resize(node: OnnxNode) -> Tensor:
    """Scales or sizes, over all axes or those given."""
    x = node[0]
    if node.integer("antialias") or node.integer("exclude_outside"):
        raise NoNativeLowering("resize-option", "antialias or exclude_outside")
    axes = [normal_axis(a, x.rank) for a in node.integers("axes")] or list(range(x.rank))
    given, sizes_input = node.get(2), node.get(3)
    scales: list[float] = [1.0] * x.rank
    sizes: list[int] | None = None
    if sizes_input is not None and sizes_input.dims != (0,):
        scales, sizes = _from_sizes(node, x, axes, sizes_input)
    elif given is not None:
        for axis, scale in zip(axes, given.numbers().reshape(-1), strict=True):
            scales[axis] = float(scale)
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    return _resized(node, scales, sizes, node.text("mode", "nearest"), coordinates, node.text("nearest_mode", "round_prefer_floor"))


def _from_sizes(node: OnnxNode, x: Tensor, axes: Sequence[int], wanted: Tensor) -> tuple[list[float], list[int]]:
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NoNativeLowering("resize-option", "keep_aspect_ratio_policy")
    sizes = [_number(size) for size in x.dims]
    scales = [1.0] * x.rank
    for axis, size in zip(axes, wanted.sizes(), strict=True):
        scales[axis] = _number(size) / sizes[axis]
        sizes[axis] = _number(size)
    return scales, sizes


def _number(size: Dim) -> int:
    if not isinstance(size, int):
        raise NoNativeLowering("symbolic-resize", "a symbolic size is resized")
    return size


def _resized(node: OnnxNode, scales: list[float], sizes: list[int] | None, mode: str, coordinates: str, nearest: str) -> Tensor:
    x = node[0]
    changed = [axis for axis, scale in enumerate(scales) if scale != 1.0 or (sizes is not None and sizes[axis] != x.dims[axis])]
    if mode not in ("nearest", "linear") or coordinates == "tf_crop_and_resize":
        raise NoNativeLowering("resize-mode", f"{mode}, {coordinates}")
    if not changed:
        return x
    old = {axis: _number(x.dims[axis]) for axis in changed}
    new = {axis: sizes[axis] if sizes is not None else int(np.floor(old[axis] * scales[axis])) for axis in changed}
    factors = {axis: new[axis] // old[axis] for axis in changed}
    at = {axis: _coordinates(old[axis], new[axis], scales[axis], coordinates) for axis in changed}
    if mode == "nearest":
        tables = {axis: np.clip(_nearest(at[axis], nearest), 0, old[axis] - 1) for axis in changed}
        repeats = all(np.array_equal(tables[a], np.repeat(np.arange(old[a]), factors[a])) for a in changed if factors[a] * old[a] == new[a])
        if repeats and all(factors[a] * old[a] == new[a] for a in changed):
            return _repeated(node, x, factors)
        return _read_nearest(node, x, tables)
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    for axis in changed:
        x = _read_linear(node, x, axis, at[axis], old[axis])
    return x


def _coordinates(old: int, new: int, scale: float, mode: str) -> NDArray[np.float64]:
    """Where in the input each output position lies (ONNX, Resize, coordinate_transformation_mode)."""
    place = np.arange(new, dtype=np.float64)
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        resized = old * scale  # not rounded: the standard's formula
        return place * (old - 1) / (resized - 1) if resized != 1 else np.zeros(new)
    if mode == "pytorch_half_pixel" and new == 1:
        return np.zeros(1)
    if mode == "half_pixel_symmetric":
        adjustment = new / (scale * old)
        return (old / 2) * (1 - adjustment) + (place + 0.5) / scale - 0.5
    return (place + 0.5) / scale - 0.5


def _nearest(at: NDArray[np.float64], mode: str) -> Table:
    rounded = {
        "round_prefer_floor": lambda: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda: np.floor(at + 0.5),
        "floor": lambda: np.floor(at),
        "ceil": lambda: np.ceil(at),
    }[mode]()
    return rounded.astype(np.int64)


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


def _table(axis: int, values: NDArray[np.generic]) -> tuple[Tensor, list[int]]:
    return known(np.ascontiguousarray(values), name="resize_table"), [axis]


def _read_nearest(node: OnnxNode, x: Tensor, tables: dict[int, Table]) -> Tensor:
    from fuseline.frontends.onnx.ops.indexing import gather_at

    axes = list(tables)
    dims = [len(tables[axis]) if axis in tables else size for axis, size in enumerate(x.dims)]

    def place(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(axes, elements, strict=True))
        return [s.as_index(b, found[axis]) if axis in found else s.loop_index(b, axis) for axis in range(x.rank)]

    return gather_at(node, x, [_table(axis, tables[axis]) for axis in axes], dims, place)


def _read_linear(node: OnnxNode, x: Tensor, axis: int, at: NDArray[np.float64], old: int) -> Tensor:
    """Between two places along one axis: `a + (b - a) * weight`."""
    from xdsl.dialects import tensor

    from fuseline.ir.build import element_of

    low = np.floor(at).astype(np.int64)
    weight = (at - low).astype(x.dtype)
    first, second = np.clip(low, 0, old - 1), np.clip(low + 1, 0, old - 1)
    value = node.ssa(x)
    dims = [len(at) if i == axis else size for i, size in enumerate(x.dims)]

    def body(b: Body, left: SSAValue, right: SSAValue, share: SSAValue) -> SSAValue:
        def read(index: SSAValue) -> SSAValue:
            places = [s.as_index(b, index) if i == axis else s.loop_index(b, i) for i in range(x.rank)]
            return b.op(tensor.ExtractOp, value, places, element_of(value))

        a, c = read(left), read(right)
        return b.op(arith.AddfOp, a, b.op(arith.MulfOp, b.op(arith.SubfOp, c, a), share))

    return mapped(node, [_table(axis, first), _table(axis, second), _table(axis, weight)], dims, x.dtype, body)
