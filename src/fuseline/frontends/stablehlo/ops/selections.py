"""`select_and_scatter`, the gradient of pooling: each window selects one element, to which its number of the source
goes.

    selected[w] = the element that window w selects        out[i] = start + sum of source[w] where selected[w] = i
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import filled, mapped, reshape, result
from fuseline.frontends.onnx.tensors import Tensor, known, static_sizes, view
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.ops.padding import padded
from fuseline.frontends.stablehlo.ops.scatters import put_rows, reduction_of
from fuseline.frontends.stablehlo.ops.windows import Windows, positions_of, read_of, windows_of
from fuseline.frontends.stablehlo.regions import region_of
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import PARALLEL, REDUCTION, Body
from fuseline.ir.dim import product


@hlo_op("select_and_scatter")
def select_and_scatter(hlo: Hlo) -> Tensor:
    """The source's numbers where their windows select an element, combined where several meet. Raises FuselineError:
    E0306 for a start that is computed, E0302 for a source of another shape."""
    x, source, start = hlo.inputs
    number = scalar_number(start)
    if number is None:
        raise hlo.refusal("a start that is computed")
    windows = windows_of(hlo, x.rank)
    selected = _selected(hlo, x, windows)
    if selected.dims != source.dims:
        raise FuselineError("E0302", f"{hlo.op.name}: a source of another shape than its windows", node=hlo.location)
    count = product(source.dims)
    data = view(known(np.asarray(number, x.dtype)), (product(x.dims),), [])
    rows, at = reshape(hlo.node, source, (count,)), reshape(hlo.node, selected, (count,))
    return reshape(hlo.node, put_rows(hlo, data, at, rows, reduction_of(hlo, x, 1)), x.dims)


def _selected(hlo: Hlo, x: Tensor, windows: Windows) -> Tensor:
    """Which element of `x`, all axes as one, each window selects."""
    node, rank, region = hlo.node, x.rank, region_of(hlo, 0)
    low, high = [pair[0] for pair in windows.pads], [pair[1] for pair in windows.pads]
    image = padded(hlo, x, known(np.zeros((), x.dtype)), low, high, [0] * rank)
    numbers = padded(hlo, _numbers(hlo, x), known(np.asarray(-1, INDEX_DTYPE)), low, high, [0] * rank)
    out = [positions_of(image.dims[axis], windows, axis) for axis in range(rank)]
    wide = [axis for axis, size in enumerate(windows.sizes) if size != 1]
    loops = rank + len(wide)
    read = AffineMap(loops, 0, tuple(read_of(axis, windows, wide, rank) for axis in range(rank)))
    window = AffineMap(loops, 0, tuple(AffineExpr.dimension(rank + i) for i in range(len(wide))))
    element = AffineMap(loops, 0, tuple(AffineExpr.dimension(axis) for axis in range(rank)))
    shape = node.emit.empty(mlir_element(x.dtype), [windows.sizes[axis] for axis in wide])
    inits = [filled(node, 0, out, x.dtype), filled(node, -1, out, INDEX_DTYPE)]

    def body(b: Body) -> Sequence[SSAValue]:
        element, number, _, best, at = b.args
        zero = b.constant(0, mlir_element(INDEX_DTYPE))
        kept = region.emit(b, [best, element])[0]
        first = s.compare(b, INDEX_DTYPE, "lt", at, zero)
        better = b.op(arith.OrIOp, first, b.op(arith.XOrIOp, kept, b.constant(1, kept.type)))
        taken = b.op(arith.AndIOp, better, s.compare(b, INDEX_DTYPE, "ge", number, zero))
        return [s.select(b, taken, element, best), s.select(b, taken, number, at)]

    iterators = [PARALLEL] * rank + [REDUCTION] * len(wide)
    maps = [read, read, window, element, element]
    op = node.emit.generic([node.ssa(image), node.ssa(numbers), shape], inits, maps, iterators, body)
    return result(op.results[1], out, INDEX_DTYPE)


def _numbers(hlo: Hlo, x: Tensor) -> Tensor:
    """The number of each element, all axes as one. Raises NoNativeLowering for sizes that only the run tells."""
    sizes = static_sizes(x.dims)

    def body(b: Body) -> SSAValue:
        total = s.index_constant(b, 0)
        for axis, size in enumerate(sizes):
            total = b.op(arith.MuliOp, total, s.index_constant(b, size))
            total = b.op(arith.AddiOp, total, s.loop_index(b, axis))
        return b.op(arith.IndexCastOp, total, mlir_element(INDEX_DTYPE))

    return mapped(hlo.node, [], x.dims, INDEX_DTYPE, body)
