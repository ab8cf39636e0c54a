"""Tensors selected by position: one-hot rows, reversed sequences."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, is_float, mlir_element
from fuseline.frontends.onnx.emission import cast, mapped, reshape
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import sub


@onnx_op("OneHot", since=9)
def one_hot(node: OnnxNode) -> Tensor:
    """`on` where the new axis equals the index (negative ones count from the end), else `off`; the depth must be
    known."""
    indices, depth, values = cast(node, node[0], INDEX_DTYPE), node[1], node[2]
    count = depth.sizes()[0] if not is_float(depth.dtype) else int(depth.numbers().reshape(-1)[0])
    axis = normal_axis(node.integer("axis", -1), indices.rank + 1)
    dims = (*indices.dims[:axis], count, *indices.dims[axis:])
    off, on = (
        reshape(node, slice_of(node, values, [i], [1], [1]), ()) if not values.is_constant else _item(values, i)
        for i in range(2)
    )
    element = mlir_element(INDEX_DTYPE)
    size = node.program.integer(count, element, node.emit)

    def body(b: Body, index: SSAValue, no: SSAValue, yes: SSAValue) -> SSAValue:
        negative = scalars.compare(b, INDEX_DTYPE, "lt", index, b.constant(0, element))
        counted = scalars.select(b, negative, b.op(arith.AddiOp, index, size), index)
        here = b.op(arith.IndexCastOp, scalars.loop_index(b, axis), element)
        return scalars.select(b, b.op(arith.CmpiOp, here, counted, "eq"), yes, no)

    loops: list[int | None] = [a if a < axis else a + 1 for a in range(indices.rank)]
    return mapped(node, [(indices, loops), (off, []), (on, [])], dims, values.dtype, body)


def _item(values: Tensor, index: int) -> Tensor:
    return Tensor(values.dtype, (), array=values.numbers().reshape(-1)[index : index + 1].reshape(()))


@onnx_op("ReverseSequence")
def reverse_sequence(node: OnnxNode) -> Tensor:
    """The first `length` elements along the time axis of each batch entry in reverse, the rest as they are."""
    x, lengths = node[0], cast(node, node[1], INDEX_DTYPE)
    time, batch = normal_axis(node.integer("time_axis", 0), x.rank), normal_axis(node.integer("batch_axis", 1), x.rank)
    if time == batch:
        raise NoNativeLowering("axis-out-of-range", "one axis for time and batch")
    node.program.require_equal(lengths.dims[0], x.dims[batch], node.label)
    element = mlir_element(INDEX_DTYPE)

    def position(b: Body, length: SSAValue) -> list[SSAValue]:
        here = b.op(arith.IndexCastOp, scalars.loop_index(b, time), element)
        mirrored = b.op(arith.SubiOp, b.op(arith.SubiOp, length, b.constant(1, element)), here)
        inside = scalars.compare(b, INDEX_DTYPE, "ge", mirrored, b.constant(0, element))
        at = scalars.select(b, inside, b.op(arith.MinSIOp, mirrored, last), here)
        return [scalars.as_index(b, at) if axis == time else scalars.loop_index(b, axis) for axis in range(x.rank)]

    last = node.program.integer(sub(x.dims[time], 1), element, node.emit)
    return gather_at(node, x, [(lengths, [batch])], x.dims, position)


@onnx_op("BitCast")
def bit_cast(node: OnnxNode) -> Tensor:
    """The same bits as another type of the same width."""
    import onnx_ir as ir

    from fuseline.frontends.onnx.dtypes import from_onnx, holds
    from fuseline.frontends.onnx.emission import elementwise

    x, wanted = node[0], ir.DataType(node.integer("to"))
    if (
        not holds(wanted)
        or from_onnx(wanted).itemsize != x.dtype.itemsize
        or "b" in (from_onnx(wanted).kind, x.dtype.kind)
    ):
        raise NoNativeLowering("element-type", wanted.name)
    target = from_onnx(wanted)
    if mlir_element(target) == mlir_element(x.dtype):
        return elementwise(node, [x], target, lambda b, p: p)
    return elementwise(node, [x], target, lambda b, p: b.op(arith.BitcastOp, p, mlir_element(target)))
