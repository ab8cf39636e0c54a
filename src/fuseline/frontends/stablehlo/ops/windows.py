"""Reductions over windows: poolings in any layout, and running totals, which are windows as long as the axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator, is_half, mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, cast, filled, result
from fuseline.frontends.onnx.scalars import convert
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.ops.padding import padded
from fuseline.frontends.stablehlo.regions import Region, region_of
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import PARALLEL, REDUCTION, Body
from fuseline.ir.dim import Dim, add, floor_div, sub


@dataclass(frozen=True)
class Windows:
    """A window over every axis: extents, steps, steps inside, what is padded, and how the image is spread."""

    sizes: list[int]
    strides: list[int]
    dilations: list[int]
    spread: list[int]
    pads: list[tuple[int, int]]


def windows_of(hlo: Hlo, rank: int) -> Windows:
    """What the attributes say. Raises FuselineError (E0302) for lists of another length."""
    ones = [1] * rank
    found = Windows(
        hlo.integers("window_dimensions"),
        hlo.integers("window_strides", ones),
        hlo.integers("window_dilations", ones),
        hlo.integers("base_dilations", ones),
        hlo.paddings("padding", rank),
    )
    if any(len(item) != rank for item in (found.sizes, found.strides, found.dilations, found.spread, found.pads)):
        raise FuselineError("E0302", f"{hlo.op.name}: a window of another rank than {rank}", node=hlo.location)
    return found


@hlo_op("reduce_window")
def reduce_window(hlo: Hlo) -> Tensor:
    """The elements of each window reduced. Raises FuselineError (E0306) for several operands at once."""
    if len(hlo.inputs) != 2:
        raise hlo.refusal("several operands in one window")
    x, start, windows, region = hlo[0], hlo[1], windows_of(hlo, hlo[0].rank), region_of(hlo, 0)
    axis = _running_axis(x, windows)
    if axis is not None and region.single == "stablehlo.add" and scalar_number(start) == 0:
        return _running_sum(hlo, x, axis[0], backwards=axis[1])
    low, high = [pair[0] for pair in windows.pads], [pair[1] for pair in windows.pads]
    image = padded(hlo, x, start, low, high, [step - 1 for step in windows.spread])
    return reduced_windows(hlo, image, start, windows, region)


def _running_axis(x: Tensor, windows: Windows) -> tuple[int, bool] | None:
    """The only axis with a window, where that is the axis up to (or from) each element; and whether it is from
    there on."""
    if max([*windows.strides, *windows.dilations, *windows.spread], default=1) > 1:
        return None
    wide = [axis for axis, size in enumerate(windows.sizes) if size != 1 or windows.pads[axis] != (0, 0)]
    if len(wide) != 1 or windows.sizes[wide[0]] != x.dims[wide[0]]:
        return None
    before = windows.sizes[wide[0]] - 1
    pads = windows.pads[wide[0]]
    return (wide[0], pads[0] == 0) if pads in ((before, 0), (0, before)) and before > 0 else None


def _running_sum(hlo: Hlo, x: Tensor, axis: int, *, backwards: bool) -> Tensor:
    import numpy as np

    from fuseline.frontends.onnx.tensors import known

    at = known(np.asarray(axis, np.int64))
    return hlo.onnx("CumSum", [x, at], reverse=int(backwards))[0]


def reduced_windows(hlo: Hlo, image: Tensor, start: Tensor, windows: Windows, region: Region) -> Tensor:
    """Loops: the axes of the result, then those axes of the window that have more than one element."""
    rank, node = image.rank, hlo.node
    wide = [axis for axis, size in enumerate(windows.sizes) if size != 1]
    out = [positions_of(image.dims[axis], windows, axis) for axis in range(rank)]
    reads = [read_of(axis, windows, wide, rank) for axis in range(rank)]
    dtype = accumulator(image.dtype) if region.single == "stablehlo.add" else image.dtype
    number = scalar_number(start)
    init = (
        filled(node, number, out, dtype)
        if number is not None
        else node.ssa(broadcast_to(cast(node, start, dtype), out))
    )
    loops = rank + len(wide)
    shape = node.emit.empty(mlir_element(image.dtype), [windows.sizes[axis] for axis in wide])
    maps = [
        AffineMap(loops, 0, tuple(reads)),
        AffineMap(loops, 0, tuple(AffineExpr.dimension(rank + i) for i in range(len(wide)))),
        AffineMap(loops, 0, tuple(AffineExpr.dimension(axis) for axis in range(rank))),
    ]

    def body(b: Body) -> Sequence[SSAValue]:
        element = convert(b, b.args[0], image.dtype, dtype)
        return region.emit(b, [b.args[2], element], dtype if is_half(image.dtype) else None)

    iterators = [PARALLEL] * rank + [REDUCTION] * len(wide)
    op = node.emit.generic([node.ssa(image), shape], [init], maps, iterators, body)
    return cast(node, result(op.results[0], out, dtype), image.dtype)


def positions_of(size: Dim, windows: Windows, axis: int) -> Dim:
    """How many positions a window has along an axis of a padded image."""
    span = (windows.sizes[axis] - 1) * windows.dilations[axis] + 1
    return add(floor_div(sub(size, span), windows.strides[axis]), 1)


def read_of(axis: int, windows: Windows, wide: Sequence[int], rank: int) -> AffineExpr:
    """Where an axis of the image is read: loops of the result first, then those of `wide` axes of the window."""
    start = AffineExpr.dimension(axis) * windows.strides[axis]
    if axis not in wide:
        return start
    return start + AffineExpr.dimension(rank + wide.index(axis)) * windows.dilations[axis]
