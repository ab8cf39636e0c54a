"""Constants, counters and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import mapped
from fuseline.frontends.onnx.tensors import Tensor, known, view
from fuseline.frontends.stablehlo.conversions import convert
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.reading import array_of
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim
from fuseline.ir.splats import single_value

KNOWN_COUNTERS = 64
"""Elements of a counter that is known while reading; larger ones are counted where they are read."""


@hlo_op("constant", "chlo.constant")
def constant(hlo: Hlo) -> Tensor:
    """The elements of the attribute; one number everywhere is kept as that number."""
    value = hlo.op.attribute("value")
    if isinstance(value, DenseResourceAttr):
        return _resource(hlo, value)
    if not isinstance(value, DenseIntOrFPElementsAttr):
        raise hlo.refusal("a constant of a kind that is not read")
    try:
        array = array_of(value)
    except ValueError as error:
        raise FuselineError("E0302", f"a constant of another size: {error}", node=hlo.location) from error
    return constant_tensor(hlo, array)


def _resource(hlo: Hlo, value: DenseResourceAttr) -> Tensor:
    """A constant whose elements are an array already; they get another name with the op that holds them."""
    found = hlo.importer.ctx.resources.get(value.resource_handle.data)
    if found is None:
        raise hlo.refusal("its elements lie beside the text", "print them, as jax.export and iree-opt do")
    return constant_tensor(hlo, found if found.dtype == hlo.dtype() else found.view(hlo.dtype()))


def constant_tensor(hlo: Hlo, array: np.ndarray) -> Tensor:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    """`array` as a known tensor, or a view of its only number."""
    same = array.size > 1 and single_value(array) is not None
    if same:
        one = known(np.array(array.reshape(-1)[:1].reshape(())), array.dtype)
        return view(one, array.shape, [])
    return known(np.asarray(array), array.dtype, hlo.label)


@hlo_op("chlo.constant_like")
def constant_like(hlo: Hlo) -> Tensor:
    """One number, as large as the operand."""
    value = hlo.op.attribute("value")
    number = getattr(getattr(value, "value", None), "data", None)
    if number is None:
        raise hlo.refusal("a constant of a kind that is not read")
    return view(known(np.asarray(number, hlo.dtype())), hlo[0].dims, [])


@hlo_op("iota")
def iota(hlo: Hlo) -> Tensor:
    """The position along one axis."""
    return counted(hlo, hlo.static_shape())


@hlo_op("dynamic_iota")
def dynamic_iota(hlo: Hlo) -> Tensor:
    """The position along one axis of sizes that are computed."""
    return counted(hlo, hlo.dims(hlo[0].sizes()))


def counted(hlo: Hlo, dims: Sequence[Dim]) -> Tensor:
    """The position along the axis that the op names, at every point of `dims`."""
    axis, dtype = hlo.integer("iota_dimension"), hlo.dtype()
    if axis >= len(dims):
        raise FuselineError("E0302", f"{hlo.op.name}: axis {axis} of {len(dims)}", node=hlo.location)
    size = dims[axis]
    if isinstance(size, int) and size <= KNOWN_COUNTERS:
        return view(known(np.arange(size).astype(dtype)), dims, [axis])

    def body(b: Body) -> SSAValue:
        number = b.op(arith.IndexCastOp, s.loop_index(b, 0), mlir_element(INDEX_DTYPE))
        return convert(b, number, INDEX_DTYPE, dtype)

    return view(mapped(hlo.node, [], [size], dtype, body), dims, [axis])


@hlo_op("get_dimension_size")
def get_dimension_size(hlo: Hlo) -> Tensor:
    """The size of an axis, known or symbolic."""
    array = np.empty((), object)
    array[()] = hlo[0].dims[hlo.integer("dimension")]
    return known(array, hlo.dtype())


@hlo_op("partition_id", "replica_id")
def only_one(hlo: Hlo) -> Tensor:
    """Of one process that computes everything: 0."""
    return known(np.asarray(0, hlo.dtype()))
