"""Ops that compute each element by itself: one structured op, whose body `scalars.py` writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.cell import Cell, Scalar
from fuseline.frontends.stablehlo.conversions import ROUNDED, reduced_format
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.frontends.stablehlo.scalars import SCALARS
from fuseline.frontends.stablehlo.types import DType
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim


def as_operand(t: Tensor) -> Tensor:
    """What a view repeats where that is one number, so that bodies hold it; else the tensor itself."""
    base = t
    while base.value is None and base.base is not None:
        base = base.base
    if base is t or not base.is_scalar_constant or base.array is None:
        return t
    return Tensor(base.dtype, (), array=base.array.reshape(()), name=base.name)


def common_dims(hlo: Hlo, tensors: Sequence[Tensor], index: int = 0) -> tuple[Dim, ...]:
    """The sizes of a result as large as those operands that have its rank."""
    rank = len(hlo.shape(index))
    whole = [t for t in tensors if t.rank == rank]
    chosen: list[Dim] = []
    for axis, size in enumerate(hlo.shape(index)):
        sizes: list[Dim] = [t.dims[axis] for t in whole]
        numbers = [item for item in sizes if isinstance(item, int)]
        chosen.append(size if size >= 0 else numbers[0] if numbers else sizes[0])
    return tuple(chosen)


def computed(hlo: Hlo, tensors: Sequence[Tensor], dims: Sequence[Dim], dtype: DType, scalar: Scalar) -> Tensor:
    """`scalar` at every point of `dims`; operands are as large, or single numbers."""
    operands = [as_operand(t if t.rank != len(dims) else hlo.with_dims(t, dims)) for t in tensors]

    def body(b: Body, *elements: SSAValue) -> SSAValue:
        return scalar(Cell(b, [t.dtype for t in tensors], dtype, hlo.op), *elements)

    return elementwise(hlo.node, operands, dtype, body, dims)


def _elementwise(hlo: Hlo, *, scalar: Scalar) -> Tensor:
    return computed(hlo, hlo.inputs, common_dims(hlo, hlo.inputs), hlo.dtype(), scalar)


_WITH_CHECKS = ("stablehlo.reduce_precision", "stablehlo.convert")
for _name, _scalar in SCALARS.items():
    if _name not in _WITH_CHECKS:
        hlo_op(_name)(partial(_elementwise, scalar=_scalar))


@hlo_op("convert")
def convert(hlo: Hlo) -> Tensor:
    """Elements of another type."""
    if hlo[0].dtype == hlo.dtype():
        return hlo[0]
    return _elementwise(hlo, scalar=SCALARS["stablehlo.convert"])


@hlo_op("reduce_precision")
def reduce_precision(hlo: Hlo) -> Tensor:
    """Rounded to fewer bits and back. Raises FuselineError (E0306) for a format that no type has."""
    cell: Any = Cell(None, [], hlo.dtype(), hlo.op)  # pyright: ignore[reportArgumentType]
    kept = reduced_format(cell)
    if kept not in (*ROUNDED, (8, 7)):
        raise hlo.refusal(f"no type has {kept[0]} bits of exponent and {kept[1]} of mantissa")
    return _elementwise(hlo, scalar=SCALARS["stablehlo.reduce_precision"])


@hlo_op("bitcast_convert")
def bitcast_convert(hlo: Hlo) -> Tensor:
    """The same bits as another type of that width. Raises FuselineError (E0306) for another width."""
    source, target = hlo[0].dtype, hlo.dtype()
    if source.itemsize != target.itemsize or "b" in (source.kind, target.kind):
        raise hlo.refusal(f"bits of {source.name} as {target.name}, of another width")
    if source.kind in "iu" and target.kind in "iu":
        return elementwise(hlo.node, [hlo[0]], target, lambda b, x: x, hlo[0].dims)

    def body(b: Body, x: SSAValue) -> SSAValue:
        return b.op(arith.BitcastOp, x, mlir_element(target))

    return elementwise(hlo.node, [hlo[0]], target, body, common_dims(hlo, hlo.inputs))
