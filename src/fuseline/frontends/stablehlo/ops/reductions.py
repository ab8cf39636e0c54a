"""Reductions with any region."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator, is_half
from fuseline.frontends.onnx.emission import broadcast_to, cast, filled, reduce, result
from fuseline.frontends.onnx.scalars import convert
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.ops.elementwise import as_operand
from fuseline.frontends.stablehlo.regions import Region, region_of
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import PARALLEL, REDUCTION, Body, dims_map


@hlo_op("reduce")
def reduce_op(hlo: Hlo) -> Tensor | list[Tensor]:
    """One or more operands reduced together, along the same axes."""
    count = len(hlo.inputs) // 2
    axes = sorted(hlo.integers("dimensions"))
    if not count or any(axis >= hlo[0].rank for axis in axes):
        raise FuselineError("E0302", f"{hlo.op.name}: axes {axes} of {hlo[0].rank}", node=hlo.location)
    region = region_of(hlo, 0)
    if count == 1:
        return _single(hlo, region, axes)
    return _several(hlo, region, axes, count)


def _single(hlo: Hlo, region: Region, axes: Sequence[int]) -> Tensor:
    x, start = hlo[0], hlo[1]
    if not axes:
        return x
    wide = accumulator(x.dtype) if region.single == "stablehlo.add" else x.dtype
    kept = [d for axis, d in enumerate(x.dims) if axis not in axes]

    def body(b: Body, e: SSAValue, total: SSAValue) -> SSAValue:
        return region.emit(b, [total, convert(b, e, x.dtype, wide)], wide if is_half(x.dtype) else None)[0]

    out = reduce(hlo.node, [x], axes, _start(hlo, start, kept, wide), body, dtype=wide)
    return cast(hlo.node, out, x.dtype)


def _start(hlo: Hlo, start: Tensor, dims: Sequence[object], dtype: object) -> float | int | Tensor:
    number = scalar_number(start)
    if number is not None:
        return number
    return broadcast_to(cast(hlo.node, start, dtype), dims)  # pyright: ignore[reportArgumentType]


def _several(hlo: Hlo, region: Region, axes: Sequence[int], count: int) -> list[Tensor]:
    """Several results of one walk, as the index of an extreme beside it."""
    values, starts = hlo.inputs[:count], hlo.inputs[count:]
    rank, node = values[0].rank, hlo.node
    kept = [axis for axis in range(rank) if axis not in axes]
    dims = [values[0].dims[axis] for axis in kept]
    inits: list[SSAValue] = []
    for t in starts:
        number = scalar_number(t)
        inits.append(filled(node, number, dims, t.dtype) if number is not None else node.ssa(broadcast_to(t, dims)))
    node.ssa(values[0])  # some operand must spell every axis, which views that repeat do not
    reads = [hlo.program.read(t, list(range(t.rank)), rank, node.emit) for t in map(as_operand, values)]
    small = dims_map(rank, kept)
    iterators = [REDUCTION if axis in axes else PARALLEL for axis in range(rank)]

    def body(b: Body) -> Sequence[SSAValue]:
        return region.emit(b, [*b.args[count:], *b.args[:count]])

    op = node.emit.generic([v for v, _ in reads], inits, [*(m for _, m in reads), *[small] * count], iterators, body)
    return [result(value, dims, t.dtype) for value, t in zip(op.results, values, strict=True)]
